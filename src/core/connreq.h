/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to be connected, as applications hold them: fi_info.handle of FI_CONNREQ. They belong to
 * the event while that waits, then to the application, and to the endpoint that is opened with them. A
 * request outlives the passive endpoint it came to. fi_cm(3), fi_eq(3).
 */
#ifndef WEFT_CORE_CONNREQ_H
#define WEFT_CORE_CONNREQ_H

#include <rdma/fabric.h>
#include <stdbool.h>

struct addr;
struct cm_request;

struct connreq {
	struct fid fid;
	struct cm_request *req; /* NULL: answered */
	bool taken;             /* an endpoint was opened with it, and frees it */
	unsigned int forks;     /* forked_count of the process it came to: for others it is none */
};

/* Takes the request. NULL: no memory, and it is refused. */
struct connreq *connreq_new(struct cm_request *req);
/* What a handle is; NULL: no request. */
struct connreq *connreq_of(struct fid *handle);
/* Says no; frees it unless an endpoint has it. 0, or -FI_EINVAL: it was answered. */
int connreq_reject(struct connreq *c, const void *data, size_t len);
/* Refuses it, if there was no answer, and frees it. */
void connreq_free(struct connreq *c);

#endif
