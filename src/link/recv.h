/* SPDX-License-Identifier: BSD-2-Clause */
/* A posted receive, which a transport of datagrams fills by itself. */
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
	fi_addr_t src; /* FI_ADDR_UNSPEC: from anybody */
	uint64_t tag, ignore;
	uint64_t flags; /* FI_MULTI_RECV, FI_COMPLETION, FI_CLAIM ... */
	void *context;
	struct work *work;     /* deferred work it belongs to, or NULL */
	size_t len;            /* room left in all segments */
	unsigned int arriving; /* messages being received into it */
	bool exhausted;        /* multi-receive: no further message fits */
	unsigned int iov_count;
	struct iovec iov[RX_IOV_MAX];
};

#endif
