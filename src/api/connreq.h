/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection requests as applications see them: fi_info.handle of an FI_CONNREQ event. The event
 * owns the request until the application reads the event; then the application owns it, then the
 * endpoint that is opened with it. A request may outlive the passive endpoint that received it.
 * fi_cm(3), fi_eq(3).
 */
#ifndef WEFT_API_CONNREQ_H
#define WEFT_API_CONNREQ_H

#include <rdma/fabric.h>
#include <stdbool.h>

struct addr;
struct cm_request;

struct connreq {
	struct fid fid;
	struct cm_request *req; /* NULL: accepted or rejected already */
	bool taken;             /* an endpoint was opened with the request, and frees it */
	unsigned int forks;     /* forked_count of the receiving process; not valid in others */
};

/* Takes over `req`. Returns NULL if out of memory; the request is rejected then. */
struct connreq *connreq_new(struct cm_request *req);
/* Returns the request behind a handle; NULL: the handle is none, or the parent process's. */
struct connreq *connreq_of(struct fid *handle);
/*
 * Rejects the request, with `len` bytes of data; frees it unless an endpoint has it. 0, or
 * -FI_EINVAL: it was answered already.
 */
int connreq_reject(struct connreq *c, const void *data, size_t len);
/* Rejects the request unless it was answered, and frees it. */
void connreq_free(struct connreq *c);

#endif
