/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flusher: a thread of the process that sends what links have gathered, and what the kernel did not take of their
 * packets, if their owner does not call progress soon: what a call has accepted arrives, whatever its process does then. It
 * sends at exit(), too. Gathered packets, a rest, and the windows of rails are touched with the link's output locked.
 */
#ifndef WEFT_HW_TCP_FLUSHER_H
#define WEFT_HW_TCP_FLUSHER_H

#include "hw/tcp/tcp.h"

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
