/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of a link's packets is not out yet: a copy of it or, of zero-copy payloads, a list of where it lies.
 * Progress calls go on with it, and nothing overtakes it.
 */
#ifndef WEFT_HW_TCP_REST_H
#define WEFT_HW_TCP_REST_H

#include "hw/tcp/tcp.h"

/* Of packets that are alike in the number of their segments. */
struct tcp_rest {
	size_t left;          /* bytes */
	unsigned int packets; /* of a batch that more may join: not a byte of it is out; else 0 */
	size_t each;          /* segments of a packet */
	uint64_t before;      /* packets sent zero-copy earlier */
	size_t first, count;
	struct iovec iov[]; /* then the memory of what is copied */
};

/* A packet as it goes out; the frame is iov[0]. */
struct tcp_outgoing {
	const struct iovec *iov;
	size_t count;
	size_t len;
	uint64_t head;
	bool zcopy;
};

/* Is there one that no batch can join? */
static inline bool tcp_rest_bars(const struct tcp_link *l)
{
	return l->rest && !l->rest->packets;
}

/* Of this packet `sent` bytes are out. Half a packet must not stay: without memory the connection is over. */
int tcp_rest_keep(struct tcp_link *l, const struct tcp_outgoing *o, size_t sent);
/* A frame becomes the end of what there is. 0 or -FI_EAGAIN: no memory. */
int tcp_rest_end(struct tcp_link *l, const struct tcp_frame *f);
/*
 * A zero-copy packet of one segment that waits for others like it: they go by one call when they are as many
 * as went since the last progress call, or with the next one. Nothing bars it. 0 or -FI_EAGAIN: no memory.
 */
int tcp_rest_batch(struct tcp_link *l, const struct tcp_frame *f, const struct iovec *payload);

#endif
