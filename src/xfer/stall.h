/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receive ring in shared memory whose next packet is claimed and never comes: all packets behind it
 * wait. Domain locked.
 */
#ifndef WEFT_XFER_STALL_H
#define WEFT_XFER_STALL_H

#include <stdint.h>

struct threads;
struct worker;

struct stall {
	uint64_t look;           /* ms: time of the next look at the ring */
	uint64_t mark;           /* what the ring waits for, if `since` */
	uint64_t since;          /* ms: first seen */
	uint64_t say;            /* ms: next log line */
	struct threads *threads; /* of the process that claimed the packet; or NULL */
};

/*
 * Called often. Makes the ring go on without a packet that has not come for FI_WEFT_CLAIM_TIMEOUT, once
 * it is known that no connected peer is about to write it, and disconnects the peer that claimed it.
 */
void stall_watch(struct worker *worker);
void stall_end(struct worker *worker);

#endif
