/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/connreq.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/forked.h"
#include "base/log.h"
#include "base/fid.h"
#include "link/engine.h"

/* In a forked child the request is the parent's. */
static bool is_foreign(const struct connreq *c)
{
	return c->forks != forked_count();
}

static int connreq_close(struct fid *fid)
{
	struct connreq *c = (struct connreq *)fid;

	if (is_foreign(c))
		return 0;
	if (c->taken) {
		LOG_WARN(LOG_EP_CTRL,
			 "close: an endpoint owns the connection request: close that one");
		return -FI_EBUSY;
	}
	connreq_free(c);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = connreq_close,
	.bind = fid_no_bind,
	.control = fid_no_control,
	.ops_open = fid_no_ops_open,
	.tostr = fid_no_tostr,
	.ops_set = fid_no_ops_set,
};

struct connreq *connreq_new(struct cm_request *req)
{
	struct connreq *c = calloc(1, sizeof(*c));

	if (!c) {
		cm_reject(req, NULL, 0);
		return NULL;
	}
	c->fid = (struct fid){FI_CLASS_CONNREQ, NULL, &fid_ops};
	c->req = req;
	c->forks = forked_count();
	return c;
}

struct connreq *connreq_of(struct fid *handle)
{
	struct connreq *c = (struct connreq *)handle;

	return c && c->fid.fclass == FI_CLASS_CONNREQ && !is_foreign(c) ? c : NULL;
}

int connreq_reject(struct connreq *c, const void *data, size_t len)
{
	struct cm_request *req = c->req;

	if (!req)
		return -FI_EINVAL;
	c->req = NULL;
	cm_reject(req, data, len);
	if (!c->taken)
		fid_free(&c->fid);
	return 0;
}

void connreq_free(struct connreq *c)
{
	if (is_foreign(c))
		return;
	if (c->req)
		cm_reject(c->req, NULL, 0);
	fid_free(&c->fid);
}
