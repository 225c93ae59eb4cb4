/* SPDX-License-Identifier: BSD-2-Clause */
/* A posted receive. Datagram transports fill it directly. */
#ifndef WEFT_LINK_RECV_H
#define WEFT_LINK_RECV_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "base/list.h"

#define RX_IOV_MAX 16

struct work;

struct recv {
	struct list link;
	fi_addr_t src; /* FI_ADDR_UNSPEC: from any peer */
	uint64_t tag, ignore;
	ssize_t plain; /* a whole message of up to so many bytes only has to be copied to iov[0]; -1: none */
	void *context;
	uint64_t flags;        /* FI_MULTI_RECV, FI_COMPLETION, FI_CLAIM ... */
	struct work *work;     /* deferred work that posted the receive, or NULL */
	size_t len;            /* free bytes in all segments */
	uint16_t iov_count;    /* with the next two a single store of a new receive */
	uint16_t exhausted;    /* 1: multi-receive without space for another message */
	unsigned int arriving; /* messages being received into this receive */
	struct iovec iov[RX_IOV_MAX];
};

#endif
