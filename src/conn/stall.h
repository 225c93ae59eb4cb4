/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receive ring in shared memory whose next packet is claimed and never comes: all packets behind it
 * wait. Also wakes the station's sleepers once a second while it has peers on this host, since a word that
 * any of these can write says whether a sender wakes them. Domain locked.
 */
#ifndef WEFT_CONN_STALL_H
#define WEFT_CONN_STALL_H

#include <stdint.h>

struct threads;
struct station;

struct stall {
	uint64_t looked;         /* ms: time of the last look at the ring */
	uint64_t mark;           /* what the ring waits for, if `since` */
	uint64_t since;          /* ms: first seen; 0: not seen */
	uint64_t judge;          /* ms: next look at the process that claimed the packet */
	uint64_t say;            /* ms: next log line */
	struct threads *threads; /* of that process; or NULL */
	int timer;               /* in driven.fd; -1: none */
};

/* The station has a new peer whose packets come by a transport that can be blocked. */
void stall_begin(struct station *station);
/* The timer has expired. */
void stall_tick(struct station *station);

/*
 * Called often. Makes the ring go on without a packet that has not come for twice FI_WEFT_ACCESS_TIMEOUT, once
 * it is known that no connected peer is about to write it, and disconnects the peer that claimed it.
 */
void stall_watch(struct station *station);
void stall_close(struct station *station);

#endif
