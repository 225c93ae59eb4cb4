/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connected endpoints whose operations are the device's own, nothing of ours on the wire: what such a
 * transport gives instead of links, and its way up. Its `open` (link/link.h) sets worker->offload. It brings
 * entries of its own, as nothing of the engine's lies between those and the device, and does what
 * link/engine.h asks of connections (cm_...). Domain locked throughout, but for listeners and requests.
 */
#ifndef WEFT_LINK_OFFLOAD_H
#define WEFT_LINK_OFFLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

struct ep;
struct fi_info;
struct offload;
struct offload_listener;
struct offload_request;
struct worker;

/* See the functions of the same name in link/engine.h; what those check is checked. */
struct offload_ops {
	/* 0: offload_connected or offload_ended will be called; -FI_ENOMEM: nothing was done; or why not. */
	int (*connect)(struct offload *n, const struct addr *to, const void *data, size_t len);
	/* The same of a request, which it takes in any case. */
	int (*accept)(struct offload *n, struct offload_request *req, const void *data, size_t len);
	/* Ends the connection, or the attempt; neither of the two is called any more. */
	void (*shutdown)(struct offload *n);
	/* Readable when there is news of the connection; the same for the worker's life. */
	int (*fd)(const struct offload *n);
	/* -FI_EOPNOTSUPP: the device has an operation of this context; -FI_ENOENT: there is none. */
	int (*cancel)(const struct offload *n, void *context);
	/* The endpoint is enabled: its queues and counters are those it will have. 0 or an error. */
	int (*enable)(struct offload *n, struct ep *ep);
};

/* Those of listeners, whose owner serializes the calls; requests are on their own. */
struct offload_cm {
	int (*open)(struct addr *name, struct offload_listener **l);
	int (*listen)(struct offload_listener *l, int backlog);
	int (*fd)(const struct offload_listener *l);
	struct offload_request *(*next)(struct offload_listener *l);
	void (*close)(struct offload_listener *l);
	/* Who asks, and whom: addresses without strings. */
	const struct addr *(*name)(const struct offload_request *req);
	const struct addr *(*own_name)(const struct offload_request *req);
	const void *(*data)(const struct offload_request *req, size_t *len);
	void (*reject)(struct offload_request *req, const void *data, size_t len);
};

/* Embedded at the start of the transport's state. */
struct offload {
	const struct offload_ops *ops;
	const struct fi_ops_msg *msg; /* complete tables, which take the domain's lock */
	const struct fi_ops_rma *rma;
	const struct fi_ops_atomic *atomic;
	struct worker *worker;
	struct addr peer;    /* of the other side, ADDR_NONE before there is one */
	size_t connect_most; /* bytes that go with a request, an acceptance */
	size_t accept_most;
};

#endif
