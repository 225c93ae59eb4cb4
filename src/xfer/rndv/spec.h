/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Offered messages whose first fragments come with the offer. Both sides copy at the same time, through memory that
 * stays in their caches: twice as fast as one copy by the kernel, page by page. Whatever does not come so
 * - the sender found no room, or was interrupted - is fetched as if nothing had come. Domain locked.
 */
#ifndef WEFT_XFER_SPEC_H
#define WEFT_XFER_SPEC_H

#include "xfer/rndv/rxreq.h"
#include "xfer/peer.h"

/* Takes the fragments of an offer that meets `r` as they come. False: not possible, nothing done. */
bool spec_begin(struct rx *rx, struct recv *r, const struct message *m,
		const struct wire_rts *offer, size_t room, void *base);
/* A progress call begins. True where they are rare; then the oldest message is fetched. */
bool spec_poll(struct worker *worker);
/*
 * A progress call is over: where no fragment has come for long, the oldest is fetched; where the calls are rare, all that have
 * not come with this one. True when there was one.
 */
bool spec_progress(struct worker *worker, bool rare);
/* No progress call will look for fragments: all that has not come is fetched. True when there was any. */
bool spec_release_idle(struct worker *worker);
/* One of the peer's messages is complete: those that met a receive before it are to be so first. */
void spec_overtaken(struct peer *peer, const struct rxreq *by);
/* The request that a speculative fragment of the peer's RTS `id` belongs to, or NULL. */
struct rxreq *spec_find(struct worker *worker, const struct peer *peer, uint32_t id);
/* Another fragment of it has come: its sender may go on beyond what it may send speculatively. */
void spec_advance(struct rxreq *a);

#endif
