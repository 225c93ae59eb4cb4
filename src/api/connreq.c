/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/connreq.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/cm.h"
#include "base/fid.h"
#include "base/forked.h"
#include "base/log.h"
#include "link/offload.h"
#include "conn/conn.h"
#include "conn/connect.h"
#include "conn/hello.h"
#include "xfer/worker.h"

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
	if (c->taken)
		return LOG_REFUSE(-FI_EBUSY, LOG_EP_CTRL,
				  "close: an endpoint owns the connection request: close that one");
	connreq_free(c);
	return 0;
}

static struct fi_ops fid_ops = FID_OPS(connreq_close, fid_no_bind, fid_no_control);

/* NULL: no memory. */
static struct connreq *connreq_make(void)
{
	struct connreq *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fid = (struct fid){FI_CLASS_CONNREQ, NULL, &fid_ops};
	c->forks = forked_count();
	return c;
}

static void connreq_refuse(struct accepted *conn, int error, const void *data, size_t len)
{
	hello_send(NULL, conn->sock, conn->inside,
		   &(struct hello_fields){.kind = HELLO_REJECT,
					  .error = error,
					  .auth = &conn->auth,
					  .data = data,
					  .data_len = len < XFER_CM_DATA ? len : XFER_CM_DATA});
	acceptor_dismiss(conn);
}

/* 0: a valid request, whose name is noted; else the positive error that refuses it. */
static int connreq_check(struct cm_listener *l, const struct accepted *conn, struct addr *name)
{
	int err = conn->hello.kind == HELLO_REQUEST && !hello_name(&conn->hello, name)
			  ? 0
			  : FI_ECONNREFUSED;

	if (!err && name->kind != l->kind && !(l->all && name->kind == ADDR_IN)) {
		LOG_PEER(LOG_EP_CTRL,
			 "connection request refused: address format %u is not the listener's",
			 conn->hello.name_format);
		err = FI_ECONNREFUSED;
	}
	if (!err && !auth_admits(&l->auth, conn, name))
		err = FI_EACCES;
	return err;
}

/* Fills in the addresses as the listener has them. */
static void connreq_complete(const struct cm_listener *l, struct connreq *c)
{
	addr_map(&c->name, l->kind);
	if (l->all && !c->conn.inside)
		connect_local(c->conn.sock, &c->own);
}

struct connreq *connreq_new(struct cm_listener *l, struct accepted *conn)
{
	struct connreq *c = connreq_make();
	bool affordable = c && !connect_is_spare(conn->sock) && !accepted_lacks_fds(conn);
	int err = affordable ? connreq_check(l, conn, &c->name) : FI_EAGAIN;

	if (!err) {
		c->conn = *conn;
		connreq_complete(l, c);
		return c;
	}
	connreq_refuse(conn, err, NULL, 0);
	if (c)
		addr_free(&c->name);
	free(c);
	return NULL;
}

struct connreq *connreq_next(struct cm_listener *l)
{
	struct offload_request *offload = l->cm->next(l->offload);
	struct connreq *c = offload ? connreq_make() : NULL;

	if (c) {
		c->cm = l->cm;
		c->offload = offload;
	} else if (offload) {
		l->cm->reject(offload, NULL, 0);
	}
	return c;
}

struct connreq *connreq_of(struct fid *handle)
{
	struct connreq *c = (struct connreq *)handle;

	return c && c->fid.fclass == FI_CLASS_CONNREQ && !is_foreign(c) ? c : NULL;
}

const struct addr *connreq_name(const struct connreq *c)
{
	return c->cm ? c->cm->name(c->offload) : &c->name;
}

const struct addr *connreq_own_name(const struct connreq *c)
{
	if (c->cm)
		return c->cm->own_name(c->offload);
	return c->own.kind != ADDR_NONE ? &c->own : NULL;
}

const void *connreq_data(const struct connreq *c, size_t *len)
{
	if (c->cm)
		return c->cm->data(c->offload, len);
	*len = c->conn.hello.data_len;
	return c->conn.hello.data;
}

/* What was given away is known no more, a key least of all. */
static void connreq_leave(struct connreq *c)
{
	addr_free(&c->name);
	explicit_bzero(&c->conn, sizeof(c->conn));
	c->answered = true;
}

static void connreq_send_reject(struct connreq *c, const void *data, size_t len)
{
	if (c->cm)
		c->cm->reject(c->offload, data, len);
	else
		connreq_refuse(&c->conn, FI_ECONNREFUSED, data, len);
	connreq_leave(c);
}

/* Accepts the request on a worker of ours. 0 or a negative error. */
static int connreq_adopt(struct worker *worker, struct accepted *conn, const void *data, size_t len)
{
	if (conn->inside ? !worker->conn.via[LINK_HOST].state
			 : !station_on_network(&worker->conn)) {
		LOG_WARN(LOG_EP_CTRL,
			 "accept: the request came by %s, which the endpoint does not use: open it "
			 "with the info of the request",
			 conn->inside ? "shared memory" : "the network");
		connreq_refuse(conn, FI_ECONNREFUSED, NULL, 0);
		return -FI_EINVAL;
	}
	if (!auth_fits(&worker->conn.auth, conn)) {
		connreq_refuse(conn, FI_EACCES, NULL, 0);
		return -FI_EACCES;
	}
	if (connect_closed(conn->sock)) {
		acceptor_dismiss(conn);
		return -FI_ECONNABORTED;
	}
	return conn_adopt(&worker->conn, conn, data, len < XFER_CM_DATA ? len : XFER_CM_DATA);
}

int connreq_accept(struct connreq *c, struct worker *worker, const void *data, size_t len)
{
	struct offload *n = worker->offload;
	int err;

	if (!n != !c->cm) {
		LOG_WARN(
			LOG_EP_CTRL,
			"accept: the request came to a listener of %s: open the endpoint with the info of the request",
			c->cm ? "a device" : "sockets");
		connreq_send_reject(c, NULL, 0);
		return -FI_EINVAL;
	}
	if (n) {
		err = n->ops->accept(n, c->offload, data, len);
		err = err ? err : CM_LATER;
	} else {
		err = connreq_adopt(worker, &c->conn, data, len);
	}
	connreq_leave(c);
	return err;
}

int connreq_reject(struct connreq *c, const void *data, size_t len)
{
	if (c->answered)
		return -FI_EINVAL;
	connreq_send_reject(c, data, len);
	if (!c->taken)
		fid_free(&c->fid);
	return 0;
}

void connreq_free(struct connreq *c)
{
	if (is_foreign(c))
		return;
	if (!c->answered)
		connreq_send_reject(c, NULL, 0);
	fid_free(&c->fid);
}
