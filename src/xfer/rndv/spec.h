/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Speculative fragments: the first fragments of a long message follow its RTS at once. Sender and receiver then
 * copy at the same time, through memory that stays in their caches: twice as fast as one copy by the kernel, page
 * by page. If the sender finds no space or is interrupted, the receiver fetches the remaining bytes by CMA or asks
 * for them. Domain locked.
 */
#ifndef WEFT_XFER_SPEC_H
#define WEFT_XFER_SPEC_H

#include "xfer/rndv/rxreq.h"
#include "xfer/peer.h"

/* Receives the fragments of an RTS into `r` as they come. False: no memory, nothing is done. */
bool spec_begin(struct rx *rx, struct recv *r, const struct message *m, const struct wire_rts *rts,
		size_t capacity, void *base);
/* At the begin of a progress call. True if progress calls are rare; the oldest message is then fetched. */
bool spec_poll(struct worker *worker);
/*
 * At the end of a progress call: fetches the oldest message if no fragment of it has come for long; if calls are
 * rare, all messages whose fragments this call has not brought. True: one was fetched.
 */
bool spec_progress(struct worker *worker, bool rare);
/* The thread is about to sleep: fetches all messages whose fragments have not come. True: there was one. */
bool spec_release_idle(struct worker *worker);
/* A message of the peer is complete: first completes those that were matched before it. */
void spec_overtaken(struct peer *peer, const struct rxreq *by);
/* The request that a speculative fragment of the peer's RTS `id` belongs to, or NULL. */
struct rxreq *spec_find(struct worker *worker, const struct peer *peer, uint32_t id);
/* Another fragment has come: asks (CTS) for the bytes beyond the speculative ones when it is time. */
void spec_advance(struct rxreq *a);

#endif
