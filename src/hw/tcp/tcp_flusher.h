/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flusher: a thread of the process that sends what links have gathered, if their owner does not
 * call progress soon. It sends at exit(), too. All functions may be called with any domain locked.
 */
#ifndef WEFT_HW_TCP_FLUSHER_H
#define WEFT_HW_TCP_FLUSHER_H

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

/* One more worker gathers, one less: the thread runs while there is any. 0 or a negative error. */
int tcp_flusher_open(void);
void tcp_flusher_close(void);

/* From now on the flusher sends what is gathered. */
void tcp_flusher_add(struct tcp_gather *g);
/* When this returns, the flusher knows nothing of it any more. */
void tcp_flusher_remove(struct tcp_gather *g);

/* Sends as much as the kernel takes. Locked, or not known to the flusher. */
void tcp_flusher_send(struct tcp_gather *g);

#endif
