/* SPDX-License-Identifier: BSD-2-Clause */
/* An attempt of ours to connect to a peer. Domain locked. */
#ifndef WEFT_CONN_ATTEMPT_H
#define WEFT_CONN_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>

struct auth;
struct contact;
struct station;

/* Zeroed when it begins. Times are in ms. */
struct attempt {
	bool in_advance;      /* no operation asked for it */
	bool late;            /* our hello was sent long after connect() began */
	bool outward;         /* the advertised address was not found within the host */
	bool no_files;        /* no descriptor was free the last time */
	unsigned int retries; /* after late hellos and crossings */
	unsigned int pauses;  /* before retries, up to PAUSES_MAX */
	unsigned int checks;  /* of worker_stuck.c in a row that found it */
	uint64_t again_ms;    /* no retry before */
	uint64_t deadline;    /* PEER_HANDSHAKE has none */
	uint64_t until;       /* its end, if a third endpoint asked for it; else 0 */
	struct auth *auth;    /* proof under way, with a key; or NULL */
	void *pending;        /* pending link of a LINK_DEVICE, from our hello on; or NULL */
};

/*
 * Begins one; the peer's state tells of it (contact_attempts) as soon as it has a socket or waits. 0 or -FI_ENOMEM, which is
 * logged.
 */
int attempt_begin(struct contact *peer);
/* Ends it, if there is one, with its proof and its pending link, but leaves the socket. */
void attempt_end(struct contact *peer);
/* Has an endpoint that a third one has named, and no entry does, had its time to answer? The attempt is to end then. */
bool attempt_forsaken(const struct contact *peer, uint64_t now);
/* Is it one to such an endpoint? */
bool attempt_introduced(const struct contact *peer);
/* Abandons a pending link between RDMA devices, if *pending is one. */
void attempt_abandon(struct station *station, void **pending);
/* Ends its proof and its pending link: it goes on with another socket. */
void attempt_reset(struct contact *peer);

#endif
