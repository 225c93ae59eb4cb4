/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Speculative fragments: the sender sends the first fragments of a long message right after its
 * RTS. Sender and receiver then copy at the same time, through memory that stays in their caches:
 * twice as fast as one page-wise copy by the kernel. If the sender finds no space or is
 * descheduled, the receiver reads the remaining bytes by CMA or asks for them (CTS). Domain locked.
 */
#ifndef WEFT_XFER_SPEC_H
#define WEFT_XFER_SPEC_H

#include "xfer/rndv/rxreq.h"
#include "xfer/peer.h"

/*
 * Makes a receive request for the speculative fragments of an RTS. False: no memory, nothing was
 * done.
 */
bool spec_begin(struct rx *rx, struct recv *r, const struct message *m, const struct wire_rts *rts,
		size_t capacity, void *base);
/*
 * Called at the start of a progress call. Returns true if progress calls are rare; the oldest
 * message is then read by CMA.
 */
bool spec_poll(struct worker *worker);
/*
 * Called at the end of a progress call. Reads by CMA the oldest message whose sender has been quiet
 * too long; if calls are `rare`, all incomplete messages. True: there was one.
 */
bool spec_progress(struct worker *worker, bool rare);
/* Reads all incomplete messages by CMA: the thread is about to sleep. True: there was one. */
bool spec_release_idle(struct worker *worker);
/*
 * Completes the peer's messages that were matched before `by` (NULL: all), because a later message
 * is complete.
 */
void spec_overtaken(struct peer *peer, const struct rxreq *by);
/* Returns the request that speculative fragments of the peer's RTS `id` belong to, or NULL. */
struct rxreq *spec_find(struct worker *worker, const struct peer *peer, uint32_t id);
/*
 * Handles the arrival of a fragment: sends CTS for the bytes beyond the speculative ones when it is
 * time.
 */
void spec_advance(struct rxreq *a);

#endif
