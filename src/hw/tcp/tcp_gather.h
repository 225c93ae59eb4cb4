/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gathering: within a stream short packets of a link wait in a buffer and go out by one call. They
 * go out at the next progress call, when the buffer is full, before any packet that does not wait,
 * when the link closes, at exit(), or by the flusher a moment later. While the link gathers,
 * link.zcopy_min is 0: messages whose end is reported go by link_zcopy_ops.sendv, which says when
 * they are out.
 */
#ifndef WEFT_HW_TCP_GATHER_H
#define WEFT_HW_TCP_GATHER_H

#include "hw/tcp/tcp.h"

#define TCP_GATHER_LEN 2048u /* longest payload (bytes) of a packet that waits */
/*
 * Packets in a row, without a progress call, that make a stream: the following ones wait. If the
 * last row was as long, one is enough.
 */
#define TCP_STREAM 16u

/* Does gathering suit a packet? Answers do not wait. */
static inline bool tcp_gathers(uint64_t head, size_t len)
{
	const unsigned int ops = 1u << WIRE_MSG | 1u << WIRE_PUT | 1u << WIRE_GET | 1u << WIRE_AMO;

	return ops >> wire_op(head) & 1 && len <= TCP_GATHER_LEN;
}

/* Begins a new row if there was a progress call since the last packet. */
static inline void tcp_gather_row(struct tcp_link *l)
{
	if (l->burst_call == l->own->progress_calls)
		return;
	l->burst_call = l->own->progress_calls;
	l->stream_from = l->burst >= TCP_STREAM ? 1 : TCP_STREAM;
	l->burst = 0;
}

/* Makes the link gather from now on, if it may. */
void tcp_gather_begin(struct tcp_link *l);

/* Counts a packet that was sent at once and that gathering suits. */
static inline void tcp_gather_count(struct tcp_link *l)
{
	tcp_gather_row(l);
	if (__builtin_expect(++l->burst >= l->stream_from, 0))
		tcp_gather_begin(l);
}

/*
 * Adds a packet that tcp_gathers to what the link, which must gather, has. With `counted` it counts
 * in link.zcopy_posted until it is out. 0 or -FI_EAGAIN.
 */
int tcp_gather_add(struct tcp_link *l, const struct packet *p, const struct iovec *iov,
		   size_t count, bool counted);
/* Sends what is gathered, and ends gathering. What the kernel does not take becomes the rest. */
void tcp_gather_end(struct tcp_link *l);
/* Ends gathering of all links, likewise. True: there were such links. */
bool tcp_gather_end_all(struct tcp *t);
/* Drops what is gathered, if anything is: the link has failed. */
void tcp_gather_drop(struct tcp_link *l);
/* Implement link_zcopy_ops.more and flush. */
void tcp_gather_more(struct link *link);
void tcp_gather_flush(struct link *link);

#endif
