/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a worker keeps of answers that its peers do not read: control messages and results of one-sided reads that wait
 * for space on a link. Each peer of the address vector may have WIRE_ANSWERS_MAX, more than any peer of this library
 * can ask for. All others share as much as for their messages (budget_half); beyond it the one of them that has most is
 * disconnected. What is kept ends with its connection. Domain locked.
 */
#ifndef WEFT_XFER_ANSWERS_H
#define WEFT_XFER_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fi_weft_stats;
struct peer;

struct answers {
	size_t bytes;          /* kept for all peers: sum of peer.tx.reply_bytes */
	size_t unknown;        /* part of it: for peers that the address vector does not hold */
	uint64_t disconnected; /* peers */
};

/*
 * Adds an answer of `bytes` bytes that must wait. False: it must be dropped, as the peer is about
 * to be disconnected. May disconnect others.
 */
bool answers_add(struct peer *peer, size_t bytes);
/* An answer of `bytes` bytes was sent or dropped. */
void answers_remove(struct peer *peer, size_t bytes);
/* The address vector has lost the peer's entry. */
void answers_forget_addr(struct peer *peer);
void answers_stats(const struct answers *a, struct fi_weft_stats *stats);

#endif
