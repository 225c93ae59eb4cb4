/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rest of a link: bytes of packets that the kernel has not taken yet. A rest is a copy or, for
 * zero-copy packets, a list of segments in the owners' memory. Progress calls send the rest, or else
 * the flusher; no later packet overtakes it. Guarded by the lock of the link's output (tcp_flusher.h).
 */
#ifndef WEFT_HW_TCP_REST_H
#define WEFT_HW_TCP_REST_H

#include "hw/tcp/tcp.h"

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

/* Sends as much of the rest as the kernel takes. Locked. */
void tcp_rest_send(struct tcp_link *l);
/* Frees the rest, if there is one. */
void tcp_rest_drop(struct tcp_link *l);

#endif
