/* SPDX-License-Identifier: BSD-2-Clause */
/* Hellos: made, sent, received and checked. */
#ifndef WEFT_XFER_HELLO_H
#define WEFT_XFER_HELLO_H

#include "link/link.h"
#include "link/wire.h"
#include "xfer/worker.h"

/* The fields of a hello that differ between hellos of one worker. */
struct hello_fields {
	enum hello_kind kind;
	uint32_t id;      /* by which the receiver's packets name it */
	int error;        /* of HELLO_REJECT, positive */
	const void *data; /* the application's, at most WIRE_CM_DATA_MAX bytes */
	size_t data_len;
	struct wire_nic nic; /* our end of a path between RDMA devices */
};

/*
 * Sends one on `sock`, inside a host with our transport's descriptors. `worker` may be NULL where there is
 * none: HELLO_REJECT. 0 or a negative error.
 */
int hello_send(struct worker *worker, int sock, bool inside, const struct hello_fields *fields);

/*
 * Receives one from `sock`. 1: *hello is valid and `fds` are the descriptors that came, then -1, the
 * caller's; 0: nothing there yet; negative: -FI_ECONNRESET at the end, -FI_EPROTO for anything that
 * is not a hello of ours (logged with both sides' figures).
 */
int hello_recv(int sock, bool inside, struct wire_hello *hello, int fds[WIRE_FDS]);

/* Copies of the descriptors our own hello brings, the caller's. 0 or a negative error. */
int hello_own_fds(struct worker *worker, int fds[WIRE_FDS]);

/* Closes the descriptors and sets all to -1. */
void hello_close_fds(int fds[WIRE_FDS]);

/* The address in a hello, to be freed by addr_free. 0, -FI_EPROTO or -FI_ENOMEM. */
int hello_name(const struct wire_hello *hello, struct addr *name);

#endif
