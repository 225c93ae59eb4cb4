/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flusher: a thread of the process that sends what links have gathered, and what the kernel did not take of their
 * packets, if their owner does not call progress soon: what a call has accepted arrives, whatever its process does then. It
 * sends at exit(), too. What is to go out belongs to whoever has the link's turn.
 */
#ifndef WEFT_HW_TCP_FLUSHER_H
#define WEFT_HW_TCP_FLUSHER_H

#include "hw/tcp/tcp.h"

/* Has the worker the thread, from now on? Without it nothing is gathered, and rests wait for progress calls. */
bool tcp_flusher_open(struct tcp *t);
/* The worker closes. The thread runs while there is one that has opened it. */
void tcp_flusher_close(struct tcp *t);

/* The owner's turn ends, with something to send or nothing any more: enters the link in the list of that pace. */
void tcp_flusher_set(struct tcp_link *l, enum tcp_pace pace);

/* The owner's turn begins. Turns may be nested. */
static inline void tcp_flusher_enter(struct tcp_link *l)
{
	if (!l->turn.depth++)
		lock_take(&l->turn.lock);
}

static inline enum tcp_pace tcp_flusher_pace(const struct tcp_link *l)
{
	if (l->gather)
		return TCP_TICKS;
	return l->tx == TCP_REST && l->sock >= 0 ? TCP_LOOKS : TCP_NEVER;
}

static inline void tcp_flusher_leave(struct tcp_link *l)
{
	enum tcp_pace pace = tcp_flusher_pace(l);

	if (--l->turn.depth)
		return;
	if (__builtin_expect(pace != l->turn.pace || pace == TCP_LOOKS, 0))
		tcp_flusher_set(l, pace);
	lock_give(&l->turn.lock);
}

#endif
