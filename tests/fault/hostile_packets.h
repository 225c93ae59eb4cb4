/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of a hostile peer: any kind with any fields. Remote CQ data is FOE_DATA where the packet
 * has a right to an event and FORGED_DATA elsewhere, so that the endpoint can judge its events.
 */
#ifndef FAULT_HOSTILE_PACKETS_H
#define FAULT_HOSTILE_PACKETS_H

#include "honest.h"
#include "raw_link.h"

struct raw_range {
	uint64_t addr, len, key;
};

/* How a one-sided packet stands to the endpoint's memory. */
enum claim_of { RIGHT, WRONG_KEY, WRONG_RANGE };

struct hostile_packet {
	struct frame f;
	enum claim_of claim;
	bool strange_tags; /* messages may have tags that nobody receives */
	uint64_t total;    /* bytes of its ranges */
	bool writes;       /* the access changes memory: READ_KEY does not grant it */
	unsigned char payload[PACKET_MAX + 8];
};

static struct hostile_packet hostile;
static unsigned char foe_source[1 << 16]; /* what a truthful RTS announces */

/* An id: of one of the link's own requests or the endpoint's, a likely one of others, or any. */
static inline uint32_t hostile_id(struct rng *r, const struct raw_link *l)
{
	const struct frame *f = &l->seen[1 + rng_below(r, 16)];

	switch (rng_below(r, 6)) {
	case 0:
		return (uint32_t)(f->head >> 32);
	case 1:
		return (uint32_t)f->tag;
	case 2:
		return rng_below(r, 4) << 20 | rng_below(r, 40);
	case 3:
		return l->id + rng_below(r, 3) - 1;
	case 4:
		return (uint32_t)rng_bits(r, 32);
	default:
		return 1 + rng_below(r, 8);
	}
}

/* A length or offset: small, near a limit, or any. */
static inline uint64_t hostile_number(struct rng *r)
{
	static const uint64_t edges[] = {0,        1,          8,          4096,        9216,
					 16384,    16385,      FOE_LEN,    FOE_LEN - 1, FOE_LEN + 1,
					 1u << 20, PACKET_MAX, UINT32_MAX, INT64_MAX,   UINT64_MAX};

	return rng_one_in(r, 2) ? RNG_CHOOSE(r, edges) : rng_bits(r, rng_one_in(r, 3) ? 64 : 17);
}

static inline struct raw_range hostile_range(struct rng *r, enum claim_of claim)
{
	static const uint64_t wrong[] = {0, 1, FOE_KEY - 1, HONEST_KEY + 1, UINT64_MAX};
	struct raw_range a = {.key = FOE_KEY};

	a.addr = rng_below(r, FOE_LEN);
	a.len = rng_below(r, (uint32_t)(FOE_LEN - a.addr + 1));
	if (claim == RIGHT && rng_one_in(r, 2))
		a.len = a.len < 64 ? a.len : 64;
	if (claim == WRONG_KEY)
		a.key = hostile.writes && rng_one_in(r, 3) ? READ_KEY : RNG_CHOOSE(r, wrong);
	if (claim == WRONG_RANGE) {
		a.len = FOE_LEN - a.addr + 1 + rng_bits(r, 62);
		if (rng_one_in(r, 3))
			a = (struct raw_range){UINT64_MAX - rng_below(r, 100), 200, FOE_KEY};
	}
	return a;
}

/* ---- Payloads: each returns its length ---- */

static inline size_t put_word(size_t at, uint64_t word)
{
	memcpy(hostile.payload + at, &word, sizeof(word));
	return at + sizeof(word);
}

/* Ranges; the first one is as the packet's claim says. */
static inline size_t put_ranges(struct rng *r, size_t at, size_t count)
{
	hostile.total = 0;
	for (size_t i = 0; i < count; i++) {
		struct raw_range a = hostile_range(r, i ? RIGHT : hostile.claim);

		memcpy(hostile.payload + at, &a, sizeof(a));
		at += sizeof(a);
		hostile.total += a.len;
	}
	return at;
}

static inline size_t some_count(struct rng *r)
{
	static const size_t counts[] = {1, 1, 1, 2, 3, 16, 17, 0};

	return RNG_CHOOSE(r, counts);
}

static inline size_t payload_rts(struct rng *r)
{
	size_t count = some_count(r), at = 16;
	uint64_t sum = 0;
	bool truthful = rng_one_in(r, 2);

	for (size_t i = 0; i < count; i++) {
		uint64_t len = truthful ? 1 + rng_below(r, sizeof(foe_source)) : hostile_number(r);

		at = put_word(at, truthful ? (uintptr_t)foe_source : rng_bits(r, 64));
		at = put_word(at, len);
		at = put_word(at, truthful || rng_one_in(r, 2) ? 0 : rng_bits(r, 64));
		sum += len;
	}
	put_word(0, rng_one_in(r, 5) ? hostile_number(r) : sum);
	put_word(8, rng_one_in(r, 10) ? hostile_number(r) : count);
	return at;
}

static inline size_t payload_group(struct rng *r)
{
	uint32_t words[6] = {rng_below(r, 10), rng_below(r, 3) ? 0 : (uint32_t)rng_bits(r, 32),
			     rng_below(r, 4),  rng_below(r, 5),
			     rng_below(r, 3),  0x10001};
	size_t at = sizeof(words);

	memcpy(hostile.payload, words, sizeof(words));
	at = put_word(at, rng_bits(r, rng_one_in(r, 2) ? 3 : 64));
	return put_word(at, rng_bits(r, rng_one_in(r, 2) ? 3 : 64));
}

/* The ranges of a one-sided request in the long form. */
static inline size_t payload_ranges(struct rng *r)
{
	bool lies = rng_one_in(r, 10); /* about their number */
	size_t at = 0, count = some_count(r);

	if (hostile.claim == RIGHT && (lies || !count))
		hostile.claim = WRONG_KEY;
	at = put_word(at, rng_one_in(r, 8) ? hostile_number(r) : 0);
	at = put_word(at, lies ? hostile_number(r) : count);
	return put_ranges(r, at, count);
}

/* Heads and data of a one-sided request. */
static inline size_t payload_request(struct rng *r, unsigned int op, unsigned int flags)
{
	size_t at = flags & LONG ? payload_ranges(r) : 0;
	uint64_t data = hostile.claim == RIGHT ? FOE_DATA : FORGED_DATA;
	uint32_t bytes = rng_below(r, 200);

	if (flags & LONG && hostile.total < 8192 && !rng_one_in(r, 4))
		bytes = (uint32_t)hostile.total;
	if (flags & CQ)
		at = put_word(at, data);
	if (op == WIRE_AMO)
		at = put_word(at, rng_below(r, 25) | rng_below(r, 20) << 8 | rng_below(r, 4) << 16 |
					  (uint64_t)bytes << 32);
	if (op == WIRE_GET && !(flags & LONG))
		return put_word(at, rng_one_in(r, 4) ? hostile_number(r) : rng_below(r, FOE_LEN));
	if (op == WIRE_GET && !rng_one_in(r, 4))
		return at;
	for (uint32_t i = 0; i < bytes; i += 8)
		put_word(at + i, data);
	return at + bytes;
}

/* A joint copy: our memory, its length, its number and the length of a part. */
static inline size_t payload_joint(struct rng *r)
{
	size_t at = put_word(0, rng_one_in(r, 2) ? (uintptr_t)&hostile : rng_bits(r, 48));

	at = put_word(at, rng_one_in(r, 4) ? hostile_number(r) : rng_below(r, 2 * FOE_LEN));
	return put_word(at, rng_below(r, 3) | (uint64_t)(rng_one_in(r, 2) ? 65536 : rng_bits(r, 32))
						      << 32);
}

static inline size_t payload_any(struct rng *r)
{
	uint64_t len = rng_one_in(r, 4) ? hostile_number(r) : rng_bits(r, 14);

	if (len > 65536 && !rng_one_in(r, 10))
		len %= 4096;
	return len < PACKET_MAX ? len : PACKET_MAX;
}

/* An address, of this host or any, that is well formed or not. */
static inline size_t payload_introduce(struct rng *r)
{
	size_t at = put_word(0, rng_one_in(r, 2) ? htonl(INADDR_LOOPBACK) : rng_bits(r, 64));

	at = put_word(at, rng_one_in(r, 2) ? 0 : rng_bits(r, 64));
	put_word(at, rng_bits(r, rng_one_in(r, 2) ? 16 : 18));
	return rng_one_in(r, 8) ? payload_any(r) : 20;
}

static inline size_t hostile_payload(struct rng *r, unsigned int op, unsigned int flags)
{
	switch (op) {
	case WIRE_RTS:
		return payload_rts(r);
	case WIRE_GROUP:
		return payload_group(r);
	case WIRE_JOINT:
		return payload_joint(r);
	case WIRE_INTRODUCE:
		return payload_introduce(r);
	case WIRE_PUT:
	case WIRE_GET:
	case WIRE_AMO:
		return payload_request(r, op, flags);
	case WIRE_NOTIFY:
		return put_ranges(r, 0, some_count(r));
	default:
		return payload_any(r);
	}
}

/* ---- The whole packet ---- */

static inline uint64_t hostile_tag(struct rng *r, const struct raw_link *l, unsigned int op,
				   unsigned int flags)
{
	if ((op == WIRE_RETIRE || op == WIRE_INTRODUCE) && !rng_one_in(r, 4))
		return 1 + rng_below(r, 4);
	if (op > WIRE_RTS) /* an offset, an address, an error, a request */
		return rng_one_in(r, 2) ? hostile_number(r) : hostile_id(r, l);
	if (hostile.strange_tags && rng_one_in(r, 2))
		return rng_one_in(r, 2) ? HONEST_TAG + rng_below(r, PEERS) : rng_bits(r, 64);
	return flags & TAGGED ? FOE_TAG : 0;
}

/* Makes a packet of this kind as hostile.f and hostile.payload. */
static inline void hostile_make(struct rng *r, const struct raw_link *l, unsigned int op,
				unsigned int flags)
{
	bool request = op >= WIRE_PUT && op <= WIRE_NOTIFY;
	uint64_t tag = hostile_tag(r, l, op, flags);
	struct raw_range a;

	hostile.claim = rng_one_in(r, 3) ? RIGHT : rng_one_in(r, 2) ? WRONG_KEY : WRONG_RANGE;
	hostile.writes = op == WIRE_PUT || (op == WIRE_NOTIFY && !(flags & LONG));
	a = hostile_range(r, hostile.claim);
	if (hostile.claim == WRONG_RANGE)
		a.addr = FOE_LEN + 1 + rng_bits(r, 62);
	/* A matched atomic is a message: the key is its tag. */
	if (flags & MATCH && op == WIRE_AMO && !hostile.strange_tags)
		flags &= ~(unsigned int)MATCH;
	hostile.f = (struct frame){.tag = request ? a.addr : tag,
				   .data = hostile.claim == RIGHT ? FOE_DATA : FORGED_DATA};
	if (request && op != WIRE_NOTIFY && !(flags & LONG))
		hostile.f.data = a.key;
	hostile.f.head = HEAD(op, flags, rng_one_in(r, 20) ? rng_bits(r, 16) : 0, hostile_id(r, l));
	hostile.f.len = (uint32_t)hostile_payload(r, op, flags);
	if (rng_one_in(r, 20) && hostile.f.len) /* cut off */
		hostile.f.len -= 1 + rng_below(r, hostile.f.len);
}

#endif
