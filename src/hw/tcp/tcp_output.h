/* SPDX-License-Identifier: BSD-2-Clause */
/* What a link has to send: the rest of packets, those that are gathered, and the thread that sends both. */
#ifndef WEFT_HW_TCP_OUTPUT_H
#define WEFT_HW_TCP_OUTPUT_H

#include "hw/tcp/tcp.h"

/*
 * Rest of a link: bytes of packets that the kernel has not taken yet. A rest is a copy or, for
 * zero-copy packets, a list of segments in the owners' memory. Progress calls send the rest, or else
 * the flusher; no later packet overtakes it. Guarded by the lock of the link's output (tcp_flusher.c).
 */

/* Unsent bytes of packets that all have the same number of segments. */
struct tcp_rest {
	int err;              /* errno of the send that failed; 0: none has */
	size_t left;          /* bytes */
	unsigned int packets; /* of a batch that has not begun to go out; else 0 */
	size_t each;          /* segments per packet */
	uint64_t before;      /* link.zcopy_done when the rest came about */
	size_t first, count;
	struct iovec iov[]; /* followed by copied bytes and frames */
};

/* A packet as passed to sendmsg; iov[0] begins with the frame. */
struct tcp_outgoing {
	const struct iovec *iov;
	size_t count;
	size_t len;
	uint64_t head;
	bool zcopy;
};

/*
 * Keeps all but the first `sent` bytes as the link's rest. Without memory, fails the connection, as
 * the stream would break within a packet, and returns -FI_EAGAIN.
 */
int tcp_rest_keep(struct tcp_link *l, const struct tcp_outgoing *o, size_t sent);
/* Appends bytes to the rest. 0 or -FI_EAGAIN: no memory. */
int tcp_rest_end(struct tcp_link *l, const void *bytes, size_t len);
/*
 * Adds a zero-copy packet of one segment to the batch. The batch goes out by one call when it has
 * as many bytes as went since the last progress call, or with the next progress call. 0 or
 * -FI_EAGAIN: no memory, or there is a rest that is no such batch.
 */
int tcp_rest_batch(struct tcp_link *l, const struct tcp_frame *f, const struct iovec *payload);

/* Frees the rest, if there is one. */
void tcp_rest_drop(struct tcp_link *l);

/*
 * Gathering: within a stream short packets of a link wait in a buffer and go out by one call. They
 * go out at the next progress call, when the buffer is full, before any packet that does not wait,
 * when the link closes, at exit(), or by the flusher a moment later. Meanwhile link.zcopy_min is 0:
 * messages whose end is reported go by link_zcopy_ops.sendv, which says when they are out.
 */

#define TCP_GATHER_LEN 2048u  /* longest payload (bytes) of a packet that waits */
#define TCP_GATHER_MAX 16384u /* bytes of packets that go out by one call */
#define TCP_STREAM_MIN 16u    /* packets without a progress call between them that make a stream */

/* Bytes of packets that one link has gathered, guarded by the lock of its output (tcp_flusher.c). */
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

/*
 * The flusher: a thread of the process that sends what links have gathered, and what the kernel did not take of their
 * packets, if their owner does not call progress soon: what a call has accepted arrives, whatever its process does then. It
 * sends at exit(), too. Gathered packets, a rest, and the windows of rails are touched with the link's output locked.
 */

/* Has the worker the thread, from now on? Without it nothing is gathered, and rests wait for progress calls. */
bool tcp_flusher_open(struct tcp *t);
/* The worker closes. The thread runs while there is one that has opened it. */
void tcp_flusher_close(struct tcp *t);

/* Enters the link, whose output is locked, in the list of that pace. */
void tcp_flusher_set(struct tcp_link *l, enum tcp_pace pace);

/* The owner locks the output; it may do so again within that. */
static inline void tcp_flusher_lock(struct tcp_link *l)
{
	if (!l->output.depth++)
		lock_take(&l->output.lock);
}

static inline enum tcp_pace tcp_flusher_pace(const struct tcp_link *l)
{
	if (l->gather)
		return TCP_TICKS;
	return l->tx == TCP_REST && l->sock >= 0 ? TCP_LOOKS : TCP_NEVER;
}

static inline void tcp_flusher_unlock(struct tcp_link *l)
{
	enum tcp_pace pace = tcp_flusher_pace(l);

	if (--l->output.depth)
		return;
	if (__builtin_expect(pace != l->output.pace || pace == TCP_LOOKS, 0))
		tcp_flusher_set(l, pace);
	lock_give(&l->output.lock);
}

static inline void tcp_flusher_release(struct tcp_link *const *l)
{
	tcp_flusher_unlock(*l);
}

/* The owner holds the lock from here to the end of the block, whatever leads there. */
#define TCP_OUTPUT_LOCKED(l)                                                                       \
	struct tcp_link *locked __attribute__((cleanup(tcp_flusher_release), unused)) = (l);       \
	tcp_flusher_lock(locked)

#endif
