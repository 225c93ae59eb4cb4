/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may connect: the levels open, closed and keyed (docs/PROTOCOL.md).
 *
 * Endpoints with a key prove to each other that they know it, before anything else counts:
 *   initiator: HELLO_GREETING with a random nonce, by whose code a target of several keys finds the one it is made with
 *   target:    HELLO_CHALLENGE with a nonce of its own
 *   initiator: HELLO_CONNECT or HELLO_REQUEST; HELLO_JOIN on a further socket of a link
 *   target:    HELLO_ACCEPT, HELLO_CROSSED or HELLO_REJECT; HELLO_JOINED
 * Each hello carries the HMAC-SHA-256, under the key, of a label of the sender's role, the code of the
 * hello before it and the hello itself. So each code covers all hellos up to it: both nonces, names, incarnations,
 * versions, and the ends of an RDMA link. Descriptors and application data go out with the third hello, to a target that
 * has proven its knowledge. A code of another connection, of the other role or of a changed hello is never good.
 */
#ifndef WEFT_CONN_AUTH_H
#define WEFT_CONN_AUTH_H

#include "base/addr.h"
#include "base/hmac.h"
#include "base/tls.h"
#include "info/job_key.h"
#include "link/wire.h"

struct accepted;
struct av;
struct contact;
struct station;

_Static_assert(WIRE_PROOF == HMAC_LEN, "a code fits its field");

/* The proof on one connection, in either role. */
struct auth {
	struct job_key key;
	unsigned int slot;         /* of auth_own: which of its keys that is */
	uint8_t chain[WIRE_PROOF]; /* the code of the last hello, sent or received */
	uint8_t asked
		[WIRE_PROOF]; /* that of the third hello: the key of the socket is made of it */
	bool encrypts;        /* WIRE_HELLO_ENCRYPTS */
	bool challenged;      /* the initiator has seen the target's proof */
	struct addr from;     /* the target: where the greeting came from, across the network */
};

/* What an endpoint or a listener of connected endpoints asks of those who connect. */
struct auth_own {
	struct job_key key; /* of its own; len 0: none */
	bool keyed;         /* a key has to be proven */
	bool by_av;         /* its keys are those of its address vector (FI_AV_AUTH_KEY) */
	/* `key`, or those of the vector; NULL: no vector is bound yet, and nobody is answered. */
	const struct job_key *keys;
	uint32_t slots;          /* which of `keys` it has, a bit each */
	bool closed;             /* FI_WEFT_CLOSED */
	bool encrypts;           /* FI_WEFT_AUTH; across the network */
	struct station *station; /* NULL: a listener of connected endpoints */
	unsigned int refused;    /* connections refused by all of this, either way */
};

/* Fills in *own, which stays where it is, for what is opened with `info`. */
void auth_open(struct auth_own *own, const struct fi_info *info, struct station *station);
/* What *own is a part of is to be freed: wipes the key. */
void auth_close(struct auth_own *own);
/* A new proof; NULL: no memory. auth_end frees it, if there is one, and sets the pointer to NULL. */
struct auth *auth_new(const struct job_key *key, bool encrypts);
void auth_end(struct auth **auth);
/*
 * The next hello of the proof: auth_seal completes one that we send, with nonce and code; 0 or -FI_EIO. auth_check
 * returns whether a received one is good.
 */
int auth_seal(struct auth *auth, struct wire_hello *hello);
bool auth_check(struct auth *auth, const struct wire_hello *hello);
/* Is this hello the third one, which says what the initiator wants? */
static inline bool auth_asks(const struct wire_hello *hello)
{
	return hello->kind == HELLO_CONNECT || hello->kind == HELLO_REQUEST ||
	       hello->kind == HELLO_JOIN;
}
/*
 * Makes the key that encrypts the socket, after the proof; both ends make the same, which no other socket ever has. False:
 * the library has failed.
 */
bool auth_link_key(const struct auth *auth, uint8_t key[TLS_KEY]);

/* ---- keys of an address vector ---- */

/* The endpoint is enabled with the vector, whose keys it has from now on; auth_unbind: it is closed. */
void auth_bind(struct auth_own *own, struct av *av);
void auth_unbind(struct auth_own *own, struct av *av);
/* The key in this slot, or NULL. An endpoint with a key of its own has it in slot 0. */
const struct job_key *auth_key(const struct auth_own *own, unsigned int slot);

/* ---- auth_accept.c: the target ---- */

/*
 * Handles what hello_recv returned (not 0) for an accepted connection. *held: its proof, NULL until it has
 * greeted. `own` may be NULL: nothing is asked. 1: the hello in *conn counts; 0: the challenge is sent, another hello
 * must come; else the connection is to be closed: `ret`, or -FI_EACCES: it was refused.
 */
int auth_accept(struct auth_own *own, struct auth **held, struct accepted *conn, int ret);
/* Counts and logs that the connection is refused, and why. */
void auth_refuse(struct auth_own *own, const struct accepted *conn, const char *why);
/* Does the connection come from this IP address? All addresses of this host count as one. */
bool auth_comes_from(const struct accepted *conn, const struct addr *name);
/*
 * Level closed: does the connection come from the address that it names, and is that in the address vector of the
 * endpoint, if it has one? False: it has to be refused; counted and logged.
 */
bool auth_admits(struct auth_own *own, const struct accepted *conn, const struct addr *name);

/* Does the endpoint have the key that the connection was asked to prove by its listener? Else logged. */
bool auth_fits(const struct auth_own *own, const struct accepted *conn);

/* ---- the initiator ---- */

/* Begins the proof with HELLO_GREETING on a socket to the peer: *auth is made. 0 or a negative error. */
int auth_greet(struct contact *peer, int sock, bool inside, struct auth **auth);
/*
 * Checks the target's hello in *conn against the proof; NULL: there is none, and all is good. False: it is not good,
 * which is logged and counted; its descriptors are closed.
 */
bool auth_hear(struct contact *peer, struct auth *auth, struct accepted *conn);

#endif
