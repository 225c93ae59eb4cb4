/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flusher: a thread of the process that sends what links have gathered, and the rests of links, if
 * their owner does not call progress soon: what a call has accepted arrives, whatever its process does
 * then. It sends at exit(), too. All functions may be called with any domain locked.
 */
#ifndef WEFT_HW_TCP_FLUSHER_H
#define WEFT_HW_TCP_FLUSHER_H

#include <stdbool.h>

#include "base/list.h"
#include "base/lock.h"

#define TCP_GATHER_MAX 16384u /* bytes of packets that go out by one call */

/* Bytes of packets that one link has gathered. */
struct tcp_gather {
	struct list in_flusher;
	struct lock lock; /* guards what follows, against the flusher */
	int sock;
	int err;     /* errno of the send that failed; 0: none has */
	size_t sent; /* bytes that the kernel has taken */
	size_t len;  /* bytes in the buffer, those sent included */
	unsigned char bytes[TCP_GATHER_MAX];
};

struct tcp;
struct tcp_rest;

/* Has the worker the thread, from now on? Without it nothing is gathered, and rests wait for progress calls. */
bool tcp_flusher_open(struct tcp *t);
/* The worker closes. The thread runs while there is one that has opened it. */
void tcp_flusher_close(struct tcp *t);

/* From now on the flusher sends what is gathered. */
void tcp_flusher_add(struct tcp_gather *g);
/* When this returns, the flusher knows nothing of it any more. */
void tcp_flusher_remove(struct tcp_gather *g);

/* Sends as much as the kernel takes. Locked, or not known to the flusher. */
void tcp_flusher_send(struct tcp_gather *g);

/* From now on the flusher may send the rest, and its owner does not touch it. */
void tcp_flusher_add_rest(struct tcp_rest *r);
/* When this returns, the flusher knows nothing of the rest any more. */
void tcp_flusher_remove_rest(struct tcp_rest *r);

#endif
