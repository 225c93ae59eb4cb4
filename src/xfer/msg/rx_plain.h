/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plain message, a whole one that no answer is due to, that finds a plain receive: it only has to be copied and
 * reported. rx_deliver reports it to the queue, rx_read to the reader of the queue. Domain locked.
 */
#ifndef WEFT_XFER_RX_PLAIN_H
#define WEFT_XFER_RX_PLAIN_H

#include "core/cq.h"
#include "xfer/msg/rx.h"

/* The head of a plain message for one of the receive contexts 0 to `last` has, besides WIRE_MSG, no bits but these. */
#define RX_PLAIN_BITS(last) WIRE_HEAD(0, WIRE_TAGGED | WIRE_DATA, last, UINT32_MAX)

/* Returns the posted receive for a plain message of `src`. NULL: there is none, or one that rx_message has to look at. */
static inline struct recv *rx_plain_find(const struct rx *rx, fi_addr_t src, const struct packet *p)
{
	struct recv *r = rx_find_posted(rx, wire_flags(p->head) & WIRE_TAGGED, src, p->tag);

	if (r && (ssize_t)p->len <= r->plain && (rx->complete_all || r->flags & FI_COMPLETION))
		return r;
	return NULL;
}

/* Ends the receive once the message is copied. Returns its completion; `src` is its source. */
static inline struct cq_slot rx_plain_end(struct rx *rx, struct recv *r, fi_addr_t src,
					  const struct packet *p)
{
	static const uint64_t kinds[] = {
		[0] = FI_RECV | FI_MSG,
		[WIRE_TAGGED] = FI_RECV | FI_TAGGED,
		[WIRE_DATA] = FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA,
		[WIRE_TAGGED | WIRE_DATA] = FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA,
	};
	void *context = r->context;

	list_unlink(&r->link);
	pool_put(&rx->q->recv_pool, r);
	return (struct cq_slot){.context = context,
				.flags = kinds[wire_flags(p->head)],
				.len = p->len,
				.data = p->data,
				.tag = p->tag,
				.src = src};
}

#endif
