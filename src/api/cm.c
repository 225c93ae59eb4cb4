/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests, listeners (acceptor, listen), and the one connection of a worker (conn_single). */
#include "api/cm.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "api/ep.h"
#include "base/fid.h"
#include "base/forked.h"
#include "base/log.h"
#include "info/providers.h"
#include "link/offload.h"
#include "link/link.h"
#include "conn/conn.h"
#include "conn/connect.h"
#include "conn/hello.h"
#include "xfer/worker.h"

/* In a forked child the request is the parent's. */
static bool is_foreign(const struct cm_request *c)
{
	return c->forks != forked_count();
}

static int cm_request_close(struct fid *fid)
{
	struct cm_request *c = (struct cm_request *)fid;

	if (is_foreign(c))
		return 0;
	if (c->taken)
		return LOG_REFUSE(-FI_EBUSY, LOG_EP_CTRL,
				  "close: an endpoint owns the connection request: close that one");
	cm_request_free(c);
	return 0;
}

static struct fi_ops fid_ops = FID_OPS(cm_request_close, fid_no_bind, fid_no_control);

/* NULL: no memory. */
static struct cm_request *cm_request_make(void)
{
	struct cm_request *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fid = (struct fid){FI_CLASS_CONNREQ, NULL, &fid_ops};
	c->forks = forked_count();
	return c;
}

static void cm_request_refuse(struct accepted *conn, int error, const void *data, size_t len)
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
static int cm_request_check(struct cm_listener *l, const struct accepted *conn, struct addr *name)
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

/* A connection that has come to the listener, taken over. NULL: no valid request, or no memory; it is refused. */
static struct cm_request *cm_request_new(struct cm_listener *l, struct accepted *conn)
{
	struct cm_request *c = cm_request_make();
	bool affordable = c && !connect_is_spare(conn->sock) && !accepted_lacks_fds(conn);
	int err = affordable ? cm_request_check(l, conn, &c->name) : FI_EAGAIN;

	if (!err) {
		c->conn = *conn;
		addr_map(&c->name, l->kind);
		if (l->all && !conn->inside)
			connect_local(c->conn.sock, &c->own);
		return c;
	}
	cm_request_refuse(conn, err, NULL, 0);
	if (c)
		addr_free(&c->name);
	free(c);
	return NULL;
}

/* The next request to the listener of a device. NULL: none, or no memory; it is rejected. */
static struct cm_request *cm_request_next(struct cm_listener *l)
{
	struct offload_request *offload = l->cm->next(l->offload);
	struct cm_request *c = offload ? cm_request_make() : NULL;

	if (c) {
		c->cm = l->cm;
		c->offload = offload;
	} else if (offload) {
		l->cm->reject(offload, NULL, 0);
	}
	return c;
}

struct cm_request *cm_request_of(struct fid *handle)
{
	struct cm_request *c = (struct cm_request *)handle;

	return c && c->fid.fclass == FI_CLASS_CONNREQ && !is_foreign(c) ? c : NULL;
}

const struct addr *cm_request_name(const struct cm_request *c)
{
	return c->cm ? c->cm->name(c->offload) : &c->name;
}

const struct addr *cm_request_own_name(const struct cm_request *c)
{
	if (c->cm)
		return c->cm->own_name(c->offload);
	return c->own.kind != ADDR_NONE ? &c->own : NULL;
}

const void *cm_request_data(const struct cm_request *c, size_t *len)
{
	if (c->cm)
		return c->cm->data(c->offload, len);
	*len = c->conn.hello.data_len;
	return c->conn.hello.data;
}

/* What was given away is known no more, a key least of all. */
static void cm_request_leave(struct cm_request *c)
{
	addr_free(&c->name);
	explicit_bzero(&c->conn, sizeof(c->conn));
	c->answered = true;
}

static void cm_request_send_reject(struct cm_request *c, const void *data, size_t len)
{
	if (c->cm)
		c->cm->reject(c->offload, data, len);
	else
		cm_request_refuse(&c->conn, FI_ECONNREFUSED, data, len);
	cm_request_leave(c);
}

/* Accepts the request on a worker of ours. 0 or a negative error. */
static int cm_request_adopt(struct worker *worker, struct accepted *conn, const void *data,
			    size_t len)
{
	if (conn->inside ? !worker->conn.via[LINK_HOST].state
			 : !station_on_network(&worker->conn)) {
		LOG_WARN(LOG_EP_CTRL,
			 "accept: the request came by %s, which the endpoint does not use: open it "
			 "with the info of the request",
			 conn->inside ? "shared memory" : "the network");
		cm_request_refuse(conn, FI_ECONNREFUSED, NULL, 0);
		return -FI_EINVAL;
	}
	if (!auth_fits(&worker->conn.auth, conn)) {
		cm_request_refuse(conn, FI_EACCES, NULL, 0);
		return -FI_EACCES;
	}
	if (connect_closed(conn->sock)) {
		acceptor_dismiss(conn);
		return -FI_ECONNABORTED;
	}
	return conn_adopt(&worker->conn, conn, data, len < XFER_CM_DATA ? len : XFER_CM_DATA);
}

/* Implements cm_accept. */
static int cm_request_accept(struct cm_request *c, struct worker *worker, const void *data,
			     size_t len)
{
	struct offload *n = worker->offload;
	int err;

	if (!n != !c->cm) {
		LOG_WARN(
			LOG_EP_CTRL,
			"accept: the request came to a listener of %s: open the endpoint with the info of the request",
			c->cm ? "a device" : "sockets");
		cm_request_send_reject(c, NULL, 0);
		return -FI_EINVAL;
	}
	if (n) {
		err = n->ops->accept(n, c->offload, data, len);
		err = err ? err : CM_LATER;
	} else {
		err = cm_request_adopt(worker, &c->conn, data, len);
	}
	cm_request_leave(c);
	return err;
}

int cm_request_reject(struct cm_request *c, const void *data, size_t len)
{
	if (c->answered)
		return -FI_EINVAL;
	cm_request_send_reject(c, data, len);
	if (!c->taken)
		fid_free(&c->fid);
	return 0;
}

void cm_request_free(struct cm_request *c)
{
	if (is_foreign(c))
		return;
	if (!c->answered)
		cm_request_send_reject(c, NULL, 0);
	fid_free(&c->fid);
}

#define EVENTS_PER_CALL 256 /* events of the acceptor handled in one call */

_Static_assert(XFER_CM_DATA == WIRE_CM_DATA_MAX, "what is promised travels");

/* Copies `name`; if there is none, returns a wildcard address. 0 or a negative error. */
static int want_name(const struct fi_info *info, const struct addr *name, struct addr *to)
{
	if (name->kind != ADDR_NONE)
		return addr_dup(to, name);
	if (provider_format(info) == FI_ADDR_STR)
		return addr_of_process(to);
	*to = (struct addr){.kind = info->addr_format == FI_SOCKADDR_IN6 ? ADDR_IN6 : ADDR_IN};
	return 0;
}

static int cm_bind_name(struct cm_listener *l, const struct fi_info *info, struct addr *name)
{
	unsigned int wanted = provider_wanted(info);
	struct addr bound;
	int err = want_name(info, name, &bound);

	l->how = (struct listen_how){.inside = wanted & PROVIDER_SHM,
				     .network = wanted & PROVIDER_TCP,
				     .backlog = LISTEN_LATER};
	if (!err)
		err = listen_bind(&bound, &l->how, l->socks);
	if (err)
		return err;
	l->all = addr_is_any(&bound);
	err = listen_usable(&bound);
	if (err) {
		addr_free(&bound);
		return err;
	}
	addr_free(name);
	*name = bound;
	l->kind = bound.kind;
	return 0;
}

static int open_offload(struct cm_listener *l, const struct fi_info *info, struct addr *name)
{
	struct addr bound;
	int err = want_name(info, name, &bound);

	if (!err)
		err = l->cm->open(&bound, &l->offload);
	if (!err)
		*name = bound;
	return err;
}

/* Returns the connection manager of the device that such endpoints use, or NULL. */
static const struct offload_cm *offload_of(unsigned int wanted)
{
	for (const struct transport *const *t = transports; *t; t++)
		if ((*t)->bit & wanted && (*t)->cm)
			return (*t)->cm;
	return NULL;
}

int cm_open(struct cm_listener *l, const struct fi_info *info, struct addr *name)
{
	int err;

	*l = (struct cm_listener){.cm = offload_of(provider_wanted(info)), .socks = {-1, -1}};
	if (l->cm)
		return open_offload(l, info, name);
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epfd < 0)
		return -errno;
	acceptor_init(&l->acceptor, l->epfd);
	auth_open(&l->auth, info, NULL);
	l->acceptor.auth = &l->auth;
	err = cm_bind_name(l, info, name);
	if (err)
		cm_close(l);
	return err;
}

int cm_listen(struct cm_listener *l, int backlog)
{
	if (l->cm)
		return l->cm->listen(l->offload, backlog);
	l->how.backlog = backlog;
	return listen_begin(&l->acceptor, &l->how, l->socks);
}

int cm_fd(const struct cm_listener *l)
{
	return l->cm ? l->cm->fd(l->offload) : l->epfd;
}

void cm_close(struct cm_listener *l)
{
	if (l->cm) {
		l->cm->close(l->offload);
		return;
	}
	listen_drop(l->socks);
	acceptor_close(&l->acceptor);
	auth_close(&l->auth);
	close(l->epfd);
}

struct cm_request *cm_next(struct cm_listener *l)
{
	struct cm_request *req = NULL;
	struct epoll_event event;
	struct accepted conn;

	if (l->cm)
		return cm_request_next(l);
	for (unsigned int i = 0; i < EVENTS_PER_CALL && !req; i++) {
		if (epoll_wait(l->epfd, &event, 1, 0) != 1)
			break;
		if (acceptor_event(&l->acceptor, event.data.u64, &conn))
			req = cm_request_new(l, &conn);
	}
	if (l->acceptor.count)
		acceptor_expire(&l->acceptor);
	return req;
}

/* Ends posted receives with the connection; those of a shared context stay. */
static void cancel_receives(struct worker *worker)
{
	for (unsigned int i = 0; i < WORKER_RX_MAX; i++)
		if (worker->rx[i])
			rx_fail_posted(worker->rx[i], FI_ECANCELED);
}

int cm_accept(struct worker *worker, struct cm_request *req, const void *data, size_t len)
{
	int err = cm_request_accept(req, worker, data, len);

	if (err < 0 && !worker->offload)
		cancel_receives(worker);
	return err;
}

size_t cm_data_most(const struct fi_info *info)
{
	return provider_wanted(info) & PROVIDER_RC ? CM_OFFLOAD_DATA : XFER_CM_DATA;
}

static void cm_connected(struct station *s, const void *data, size_t len)
{
	ep_cm_connected(worker_station(s)->cm_arg, data, len);
}

static void cm_ended(struct station *s, int err, const void *data, size_t len)
{
	struct worker *worker = worker_station(s);

	if (!worker->offload) {
		conn_timer_clear(s);
		cancel_receives(worker);
	}
	ep_cm_ended(worker->cm_arg, err, data, len);
}

void cm_own(struct worker *worker, struct ep *ep)
{
	static const struct station_cm cm = {cm_connected, cm_ended};

	worker->conn.cm = &cm;
	worker->cm_arg = ep;
}

int cm_connect(struct worker *worker, const struct addr *to, const void *data, size_t len)
{
	struct offload *n = worker->offload;
	int err;

	if (n)
		return n->ops->connect(n, to, data, len);
	err = conn_request(&worker->conn, to, data, len < XFER_CM_DATA ? len : XFER_CM_DATA);

	if (err && err != -FI_ENOMEM)
		cancel_receives(worker);
	return err;
}

void cm_shutdown(struct worker *worker)
{
	if (worker->offload) {
		worker->offload->ops->shutdown(worker->offload);
		return;
	}
	conn_shutdown(&worker->conn);
	conn_timer_clear(&worker->conn);
	cancel_receives(worker);
}

const struct addr *cm_peer_name(const struct worker *worker)
{
	return worker->offload ? &worker->offload->peer : &conn_peer(&worker->conn)->name;
}
