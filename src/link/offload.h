/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connected endpoints whose operations a device performs, without a protocol of the library on the
 * wire. Such a transport (LINK_OFFLOAD) makes no links: it has its own entry functions, which call the device directly,
 * and implements the connection calls of xfer/engine.h (cm_...). Domain locked throughout, except for listeners and requests.
 */
#ifndef WEFT_LINK_OFFLOAD_H
#define WEFT_LINK_OFFLOAD_H

#include <stddef.h>

#include "base/addr.h"

struct entry_tables;
struct ep;
struct offload;
struct offload_listener;
struct offload_request;
struct opener;

/* See the functions of the same name in xfer/engine.h, which have checked the arguments. */
struct offload_ops {
	/* 0: offload_events.connected or .ended will follow; -FI_ENOMEM: nothing done; or an error. */
	int (*connect)(struct offload *n, const struct addr *to, const void *data, size_t len);
	/* Accepts `req` and frees it, even on failure. Returns as `connect` does. */
	int (*accept)(struct offload *n, struct offload_request *req, const void *data, size_t len);
	/* Ends the connection or the attempt: no event will follow. */
	void (*shutdown)(struct offload *n);
	/* Readable on news of the connection. The same descriptor for the worker's life. */
	int (*fd)(const struct offload *n);
	/* -FI_EOPNOTSUPP: the device already has that operation; -FI_ENOENT: no such operation. */
	int (*cancel)(const struct offload *n, void *context);
	/* The endpoint is enabled: its queues and counters are final. Returns 0 or an error. */
	int (*enable)(struct offload *n, struct ep *ep);
};

/* Listeners and requests. A listener's owner serializes its calls; requests are independent. */
struct offload_cm {
	int (*open)(struct addr *name, struct offload_listener **l);
	int (*listen)(struct offload_listener *l, int backlog);
	int (*fd)(const struct offload_listener *l);
	struct offload_request *(*next)(struct offload_listener *l);
	void (*close)(struct offload_listener *l);
	/* Addresses of the requester and of the requested endpoint; never strings. */
	const struct addr *(*name)(const struct offload_request *req);
	const struct addr *(*own_name)(const struct offload_request *req);
	const void *(*data)(const struct offload_request *req, size_t *len);
	void (*reject)(struct offload_request *req, const void *data, size_t len);
};

/* What the transport tells the engine from `progress`; see struct station_cm. */
struct offload_events {
	void (*connected)(struct offload *n, const void *data, size_t len);
	/* `err` is positive. */
	void (*ended)(struct offload *n, int err, const void *data, size_t len);
};

/* Embedded at the start of the transport's state. */
struct offload {
	const struct offload_ops *ops;
	const struct entry_tables *entries; /* they take the domain's lock */
	struct addr peer;                   /* the peer's address; ADDR_NONE while there is none */
	/* The engine fills these in after the transport's `open`. */
	const struct offload_events *events;
	struct opener *opener;
};

#endif
