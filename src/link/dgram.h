/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contract between the engine and a transport of datagrams (FI_EP_DGRAM): messages that go out whole,
 * unreliably and without a connection, nothing of ours around them. Domain locked throughout.
 */
#ifndef WEFT_LINK_DGRAM_H
#define WEFT_LINK_DGRAM_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "base/addr.h"
#include "base/list.h"
#include "base/pool.h"
#include "link/wire.h"

#define DGRAM_BATCH_MAX 32 /* datagrams that wait to go out together */

/* Upper bits of a group's fi_addr_t, below the 16 that may name a receive context: no entry of an
 * address vector has any of them. The lower 32 are its pool_id. */
#define DGRAM_GROUP (UINT64_C(1) << 47)

struct dgram;
struct ep;
struct worker;

/* A multicast group as the endpoint joined it. */
struct dgram_group {
	struct list link; /* dgram->groups */
	struct addr addr;
	bool sends, receives;
	int fd; /* the transport's: where its datagrams come in; -1: nowhere, or elsewhere */
	uint32_t watched; /* the transport's */
};

/* A datagram that was accepted and is not out yet. */
struct dgram_out {
	struct ep *ep; /* whom to tell */
	struct addr to;
	uint64_t flags;
	void *context;
	size_t len, count;
	struct iovec iov[WIRE_IOV_MAX];
};

struct dgram_ops {
	/*
	 * One datagram. 0; -FI_EAGAIN: no room; another negative error: it cannot be sent at all; a
	 * positive one: there is no way to that address.
	 */
	int (*send)(struct dgram *d, const struct addr *to, const struct iovec *iov, size_t count);
	/* Several, in order: how many went out; if it is none, negative, why the first did not. */
	int (*send_many)(struct dgram *d, const struct dgram_out *outs, unsigned int count);
	/*
	 * From now on datagrams to the group come in; what is sent to a group leaves by the interface
	 * of the endpoint's address. 0 or a negative error.
	 */
	int (*join)(struct dgram *d, struct dgram_group *g);
	void (*leave)(struct dgram *d, struct dgram_group *g);
};

/* Embedded at the start of the transport's state, which it opens with dgram_init. */
struct dgram {
	const struct dgram_ops *ops;
	struct worker *worker;
	size_t max; /* bytes of the longest datagram */
	struct list groups;
	struct pool group_pool;
	struct dgram_out *batch; /* DGRAM_BATCH_MAX of them, NULL before the first */
	unsigned int batch_count;
};

#endif
