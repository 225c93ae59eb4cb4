/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conversations of hellos that prove a key, judged by what docs/PROTOCOL.md says: how far has each
 * come, and does a hello continue it? Of the library nothing but HMAC-SHA-256 is used.
 */
#ifndef FUZZ_TALK_H
#define FUZZ_TALK_H

#include "base/hmac.h"
#include "input.h"
#include "link/wire.h"

#define KEY_LEN 32
#define KEYS    2

/* The keys that endpoints have; a listener of connected endpoints has the first. */
static const uint8_t keys[KEYS][KEY_LEN] = {"the key of the job, of 32 bytes",
					    "the second key, of peers alike "};

/* A conversation: what was said on one connection, as the rules have it. */
struct talk {
	bool came;         /* the client began it, so it is the initiator */
	bool at_listener;  /* of connected endpoints */
	unsigned int good; /* good hellos so far, of both sides */
	bool over;         /* the client has said something else: no hello of it counts any more */
	bool wrong;        /* and that was a hello without the proof */
	bool refused;      /* which the endpoint was seen to refuse */
	bool linked;       /* what follows are packets */
	bool joins;        /* a link that there is not */
	bool encrypts;     /* across the network, if the endpoint does */
	unsigned int key;  /* of `keys`: the greeting's */
	uint8_t chain[WIRE_PROOF]; /* the code of the last good hello */
	uint8_t asked[WIRE_PROOF]; /* the code of the third one */
	struct wire_hello heard;   /* the endpoint's last hello */
};

static inline bool carries_ring(uint32_t kind)
{
	return kind == HELLO_CONNECT || kind == HELLO_ACCEPT || kind == HELLO_REQUEST;
}

/* Does the endpoint read it as a hello? */
/* Is a list of interfaces as one must be, if there is one? */
static inline bool rails_formed(const struct wire_hello *h)
{
	struct wire_rails rails;

	memcpy(&rails, h->data, sizeof(rails));
	return !(h->flags & WIRE_HELLO_RAILS) ||
	       (h->data_len == sizeof(rails) && rails.count <= WIRE_RAILS_MAX);
}

static inline bool formed(const struct wire_hello *h, bool inside, bool ring)
{
	return h->magic == WIRE_MAGIC && h->version == WIRE_VERSION && h->size == sizeof(*h) &&
	       h->kind >= HELLO_CONNECT && h->kind < HELLO_KINDS &&
	       h->name_len <= sizeof(h->name) && h->data_len <= sizeof(h->data) &&
	       rails_formed(h) && (h->name_len || !carries_ring(h->kind)) &&
	       (!inside || ring == carries_ring(h->kind));
}

/* The code of a hello. It covers the role of its sender and the code of the hello before it. */
static inline void code(const uint8_t with[KEY_LEN], bool initiator,
			const uint8_t before[WIRE_PROOF], const struct wire_hello *hello,
			uint8_t out[WIRE_PROOF])
{
	struct {
		char role[16];
		uint8_t before[WIRE_PROOF];
		struct wire_hello hello;
	} covered = {.hello = *hello};

	strcpy(covered.role, initiator ? "weft initiator" : "weft target");
	memcpy(covered.before, before, WIRE_PROOF);
	memset(covered.hello.mac, 0, WIRE_PROOF);
	MUST(hmac_sha256(with, KEY_LEN, &covered, sizeof(covered), out));
}

/* May hello `n` of a conversation, counted from 0, be of this kind? */
static inline bool fits(unsigned int n, uint32_t kind)
{
	switch (n) {
	case 0:
		return kind == HELLO_GREETING;
	case 1:
		return kind == HELLO_CHALLENGE;
	case 2:
		return kind == HELLO_CONNECT || kind == HELLO_REQUEST || kind == HELLO_JOIN;
	case 3:
		return kind == HELLO_ACCEPT || kind == HELLO_CROSSED || kind == HELLO_REJECT;
	default:
		return false;
	}
}

/* A challenge that comes from the very endpoint that has greeted: its own hellos, passed back. */
static inline bool reflected(const struct talk *t, const struct wire_hello *hello)
{
	return hello->kind == HELLO_CHALLENGE && hello->incarnation == t->heard.incarnation;
}

/* Is the code of a greeting that of a key? Notes which one. */
static inline bool greets(struct talk *t, const struct wire_hello *hello, uint8_t right[WIRE_PROOF])
{
	for (t->key = 0; t->key < (t->at_listener ? 1 : KEYS); t->key++) {
		code(keys[t->key], true, t->chain, hello, right);
		if (!memcmp(right, hello->mac, WIRE_PROOF))
			return true;
	}
	t->key = 0;
	return false;
}

/* Is this the next hello of a good conversation? If so, the conversation goes on. */
static inline bool advance(struct talk *t, const struct wire_hello *hello, bool by_client)
{
	bool initiator = by_client == t->came;
	uint8_t right[WIRE_PROOF];

	if (initiator != (t->good % 2 == 0) || !fits(t->good, hello->kind) ||
	    t->encrypts != !!(hello->flags & WIRE_HELLO_ENCRYPTS))
		return false;
	code(keys[t->key], initiator, t->chain, hello, right);
	if (t->good == 0 ? !greets(t, hello, right) : memcmp(right, hello->mac, WIRE_PROOF) != 0)
		return false;
	if (by_client && reflected(t, hello))
		return false;
	memcpy(t->chain, right, WIRE_PROOF);
	if (++t->good == 3)
		memcpy(t->asked, right, WIRE_PROOF);
	t->linked = hello->kind == HELLO_ACCEPT;
	t->joins |= hello->kind == HELLO_JOIN;
	return true;
}

/* Has the client proven that it knows the key, so that the endpoint may connect to it? No link has rails to join here. */
static inline bool proven(const struct talk *t)
{
	return t->came ? t->good >= 3 && !t->joins : t->linked;
}

#endif
