/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gathering: within a stream short packets of a link wait in a buffer and go out by one call. They
 * go out at the next progress call, when the buffer is full, before any packet that does not wait,
 * when the link closes, at exit(), or by the flusher a moment later. Meanwhile link.zcopy_min is 0:
 * messages whose end is reported go by link_zcopy_ops.sendv, which says when they are out.
 */
#ifndef WEFT_HW_TCP_GATHER_H
#define WEFT_HW_TCP_GATHER_H

#include "hw/tcp/tcp.h"

#define TCP_GATHER_LEN 2048u  /* longest payload (bytes) of a packet that waits */
#define TCP_GATHER_MAX 16384u /* bytes of packets that go out by one call */
#define TCP_STREAM_MIN 16u    /* packets without a progress call between them that make a stream */

/* Bytes of packets that one link has gathered, guarded by the lock of its output (tcp_flusher.h). */
struct tcp_gather {
	int err;     /* errno of the send that failed; 0: none has */
	size_t sent; /* bytes that the kernel has taken */
	size_t len;  /* bytes in the buffer, those sent included */
	unsigned char bytes[TCP_GATHER_MAX];
};

/* Does gathering suit a packet? Answers do not wait. */
static inline bool tcp_gathers(uint64_t head, size_t len)
{
	const unsigned int ops = 1u << WIRE_MSG | 1u << WIRE_PUT | 1u << WIRE_GET | 1u << WIRE_AMO;

	return ops >> wire_op(head) & 1 && len <= TCP_GATHER_LEN;
}

/* From now on short packets wait, unless the flusher or the link cannot. */
void tcp_gather_begin(struct tcp_link *l, enum tcp_waits waits);
/* From now on they go at once. What waits still does. */
void tcp_gather_stop(struct tcp_link *l);

/* Begins to count anew after a progress call. A stream ends if the last count was short of it. */
static inline void tcp_gather_row(struct tcp_link *l)
{
	if (l->burst_call == l->own->progress_calls)
		return;
	l->burst_call = l->own->progress_calls;
	if (l->burst < TCP_STREAM_MIN && l->waits)
		tcp_gather_stop(l);
	l->burst = 0;
}

/* Does the next packet, if gathering suits it, wait? */
static inline bool tcp_gather_waits(struct tcp_link *l)
{
	if (__builtin_expect(!l->waits, 1))
		return false;
	tcp_gather_row(l);
	return l->waits;
}

/* Counts a packet that was sent at once and that gathering suits. */
static inline void tcp_gather_count(struct tcp_link *l)
{
	tcp_gather_row(l);
	if (__builtin_expect(++l->burst >= TCP_STREAM_MIN, 0))
		tcp_gather_begin(l, TCP_STREAM);
}

/*
 * Adds a packet that tcp_gathers to those that wait. With `counted` it counts in link.zcopy_posted
 * until it is out. 0 or -FI_EAGAIN: it cannot wait now, nor can others.
 */
int tcp_gather_add(struct tcp_link *l, const struct packet *p, const struct iovec *iov,
		   size_t count, bool counted);
/* Sends what waits, if anything does. What the kernel does not take becomes the rest. */
void tcp_gather_end(struct tcp_link *l);
/* The same for all links. True: something waited. */
bool tcp_gather_end_all(struct tcp *t);
/* Sends as much of it as the kernel takes. Locked. */
void tcp_gather_send(struct tcp_link *l);
/* Drops what waits: the link has failed. */
void tcp_gather_drop(struct tcp_link *l);
/* Implements link_zcopy_ops.cork. */
void tcp_gather_cork(struct link *link, bool more);

#endif
