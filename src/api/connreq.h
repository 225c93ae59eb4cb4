/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection requests: fi_info.handle of an FI_CONNREQ event. The event owns the request until the application reads the
 * event; then the application owns it, then the endpoint that is opened with it. A request may outlive the passive
 * endpoint that received it. fi_cm(3), fi_eq(3).
 */
#ifndef WEFT_API_CONNREQ_H
#define WEFT_API_CONNREQ_H

#include <rdma/fabric.h>
#include <stdbool.h>

#include "conn/acceptor.h"

struct cm_listener;
struct offload_cm;
struct offload_request;
struct worker;

struct connreq {
	struct fid fid;
	bool taken;         /* an endpoint was opened with the request, and frees it */
	bool answered;      /* accepted or rejected: the fields below were given away */
	unsigned int forks; /* forked_count of the receiving process; not valid in others */
	const struct offload_cm *cm; /* of `offload`; the other fields are then unused. Or NULL */
	struct offload_request *offload;
	struct accepted conn;
	struct addr name; /* the requester's */
	struct addr own;  /* the address that it came to; ADDR_NONE: the listener's */
};

/* A connection that has come to the listener, taken over. NULL: no valid request, or no memory; it is refused. */
struct connreq *connreq_new(struct cm_listener *l, struct accepted *conn);
/* The next request to the listener of a device. NULL: none, or no memory; it is rejected. */
struct connreq *connreq_next(struct cm_listener *l);
/* Returns the request behind a handle; NULL: the handle is none, or the parent process's. */
struct connreq *connreq_of(struct fid *handle);

/* Of a request that is not answered: address and data of the requester; the name it used for us, NULL: the listener's. */
const struct addr *connreq_name(const struct connreq *c);
const struct addr *connreq_own_name(const struct connreq *c);
const void *connreq_data(const struct connreq *c, size_t *len);

/* Implements cm_accept. */
int connreq_accept(struct connreq *c, struct worker *worker, const void *data, size_t len);
/*
 * Rejects the request, with `len` bytes of data; frees it unless an endpoint has it. From any thread. 0, or -FI_EINVAL: it
 * was answered already.
 */
int connreq_reject(struct connreq *c, const void *data, size_t len);
/* Rejects the request unless it was answered, and frees it. */
void connreq_free(struct connreq *c);

#endif
