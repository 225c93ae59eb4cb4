/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connected endpoints: the calls of link/engine.h for listeners (acceptor, listen), connection
 * requests, and the one connection of a worker (conn_single).
 */
#include <errno.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/forked.h"
#include "base/log.h"
#include "api/ep_cm.h"
#include "info/providers.h"
#include "xfer/conn/conn_own.h"
#include "xfer/conn/connect.h"
#include "xfer/conn/hello.h"
#include "xfer/conn/listen.h"
#include "link/offload.h"
#include "link/transports.h"

#define EVENTS_PER_CALL 256 /* events of the acceptor handled in one call */

_Static_assert(XFER_CM_DATA == WIRE_CM_DATA_MAX, "what is promised travels");

struct cm_listener {
	/* Connection manager of `offload`; the other fields are then unused. Or NULL. */
	const struct offload_cm *cm;
	struct offload_listener *offload;
	struct acceptor acceptor;
	struct auth_own auth;
	int epfd;
	struct listen_how how;
	int socks[2]; /* bound sockets until the acceptor takes them; -1: none */
	uint8_t kind; /* address kind of its name; requests must have the same kind */
	bool all;     /* bound to the wildcard; that of IPv6 may take IPv4, too */
};

/* A connection request that awaits its answer. */
struct cm_request {
	const struct offload_cm *cm; /* of `offload`; `conn` and `name` are then unused. Or NULL */
	struct offload_request *offload;
	struct accepted conn;
	struct addr name;
	struct addr own; /* the address that it came to; ADDR_NONE: the listener's */
};

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

static int bind_name(struct cm_listener *l, const struct fi_info *info, struct addr *name)
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

	if (!err && !l->cm)
		err = -FI_ENOSYS;
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

int cm_open(const struct fi_info *info, struct addr *name, struct cm_listener **out)
{
	struct cm_listener *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -FI_ENOMEM;
	l->cm = offload_of(provider_wanted(info));
	if (l->cm) {
		err = open_offload(l, info, name);
		if (err)
			free(l);
		else
			*out = l;
		return err;
	}
	l->socks[0] = l->socks[1] = -1;
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epfd < 0) {
		err = -errno;
		free(l);
		return err;
	}
	acceptor_init(&l->acceptor, l->epfd);
	auth_open(&l->auth, info, NULL);
	l->acceptor.auth = &l->auth;
	err = bind_name(l, info, name);
	if (err)
		cm_close(l);
	else
		*out = l;
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
	} else {
		listen_drop(l->socks);
		acceptor_close(&l->acceptor);
		auth_close(&l->auth);
		close(l->epfd);
	}
	free(l);
}

static void refuse(struct accepted *conn, int error, const void *data, size_t len)
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
static int check_request(struct cm_listener *l, const struct accepted *conn, struct addr *name)
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

/* Fills in the request's addresses as its listener has them. */
static void complete(const struct cm_listener *l, struct cm_request *req)
{
	addr_map(&req->name, l->kind);
	if (l->all && !req->conn.inside)
		connect_local(req->conn.sock, &req->own);
}

/* NULL: no valid request; the accepted connection is closed. */
static struct cm_request *receive(struct cm_listener *l, struct accepted *conn)
{
	struct cm_request *req = calloc(1, sizeof(*req));
	bool affordable = req && !connect_is_spare(conn->sock) && !accepted_lacks_fds(conn);
	int err = affordable ? check_request(l, conn, &req->name) : FI_EAGAIN;

	if (!err) {
		req->conn = *conn;
		complete(l, req);
		return req;
	}
	refuse(conn, err, NULL, 0);
	if (req)
		addr_free(&req->name);
	free(req);
	return NULL;
}

static struct cm_request *next_offload(struct cm_listener *l)
{
	struct offload_request *offload = l->cm->next(l->offload);
	struct cm_request *req;

	if (!offload)
		return NULL;
	req = calloc(1, sizeof(*req));
	if (!req) {
		l->cm->reject(offload, NULL, 0);
		return NULL;
	}
	req->cm = l->cm;
	req->offload = offload;
	return req;
}

struct cm_request *cm_next(struct cm_listener *l)
{
	struct cm_request *req = NULL;
	struct epoll_event event;
	struct accepted conn;

	if (l->cm)
		return next_offload(l);
	for (unsigned int i = 0; i < EVENTS_PER_CALL && !req; i++) {
		if (epoll_wait(l->epfd, &event, 1, 0) != 1)
			break;
		if (acceptor_event(&l->acceptor, event.data.u64, &conn))
			req = receive(l, &conn);
	}
	if (l->acceptor.count)
		acceptor_expire(&l->acceptor);
	return req;
}

const struct addr *cm_request_name(const struct cm_request *req)
{
	return req->cm ? req->cm->name(req->offload) : &req->name;
}

const struct addr *cm_request_own_name(const struct cm_request *req)
{
	if (req->cm)
		return req->cm->own_name(req->offload);
	return req->own.kind != ADDR_NONE ? &req->own : NULL;
}

const void *cm_request_data(const struct cm_request *req, size_t *len)
{
	if (req->cm)
		return req->cm->data(req->offload, len);
	*len = req->conn.hello.data_len;
	return req->conn.hello.data;
}

static struct accepted leave(struct cm_request *req)
{
	struct accepted conn = req->conn;

	addr_free(&req->name);
	explicit_bzero(&req->conn.auth, sizeof(req->conn.auth));
	free(req);
	return conn;
}

static struct offload_request *leave_offload(struct cm_request *req)
{
	struct offload_request *offload = req->offload;

	free(req);
	return offload;
}

void cm_reject(struct cm_request *req, const void *data, size_t len)
{
	const struct offload_cm *cm = req->cm;
	struct accepted conn;

	if (cm) {
		cm->reject(leave_offload(req), data, len);
		return;
	}
	conn = leave(req);
	refuse(&conn, FI_ECONNREFUSED, data, len);
}

/* Ends posted receives with the connection; those of a shared context stay. */
static void cancel_receives(struct worker *worker)
{
	for (unsigned int i = 0; i < WORKER_RX_MAX; i++)
		if (worker->rx[i])
			rx_fail_posted(worker->rx[i], FI_ECANCELED);
}

/* Accepts the request on a worker of ours, and frees it. 0 or a negative error. */
static int adopt(struct worker *worker, struct cm_request *req, const void *data, size_t len)
{
	struct accepted conn = leave(req);

	if (conn.inside ? !worker->via[LINK_HOST].state : !worker_on_network(worker)) {
		LOG_WARN(LOG_EP_CTRL,
			 "accept: the request came by %s, which the endpoint does not use: open it "
			 "with the info of the request",
			 conn.inside ? "shared memory" : "the network");
		refuse(&conn, FI_ECONNREFUSED, NULL, 0);
		return -FI_EINVAL;
	}
	if (!auth_fits(&worker->auth, &conn)) {
		refuse(&conn, FI_EACCES, NULL, 0);
		return -FI_EACCES;
	}
	if (connect_closed(conn.sock)) {
		acceptor_dismiss(&conn);
		return -FI_ECONNABORTED;
	}
	return conn_adopt(worker, &conn, data, len < XFER_CM_DATA ? len : XFER_CM_DATA);
}

int cm_accept(struct worker *worker, struct cm_request *req, const void *data, size_t len)
{
	struct offload *n = worker->offload;
	int err;

	if (!n != !req->cm) {
		LOG_WARN(
			LOG_EP_CTRL,
			"accept: the request came to a listener of %s: open the endpoint with the info of the request",
			req->cm ? "a device" : "sockets");
		cm_reject(req, NULL, 0);
		return -FI_EINVAL;
	}
	if (n) {
		err = n->ops->accept(n, leave_offload(req), data, len);
		return err ? err : CM_LATER;
	}
	err = adopt(worker, req, data, len);
	if (err)
		cancel_receives(worker);
	return err;
}

size_t cm_data_most(const struct fi_info *info)
{
	return provider_wanted(info) & PROVIDER_RC ? CM_OFFLOAD_DATA : XFER_CM_DATA;
}

static void connected(struct worker *worker, const void *data, size_t len)
{
	ep_cm_connected(worker->cm_arg, data, len);
}

static void ended(struct worker *worker, int err, const void *data, size_t len)
{
	if (!worker->offload) {
		conn_timer_clear(worker);
		cancel_receives(worker);
	}
	ep_cm_ended(worker->cm_arg, err, data, len);
}

void cm_own(struct worker *worker, struct ep *ep)
{
	static const struct worker_cm cm = {connected, ended};

	worker->cm = &cm;
	worker->cm_arg = ep;
}

int cm_connect(struct worker *worker, const struct addr *to, const void *data, size_t len)
{
	struct offload *n = worker->offload;
	int err;

	if (n)
		return n->ops->connect(n, to, data, len);
	err = conn_request(worker, to, data, len < XFER_CM_DATA ? len : XFER_CM_DATA);

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
	conn_shutdown(worker);
	conn_timer_clear(worker);
	cancel_receives(worker);
}

const struct addr *cm_peer_name(const struct worker *worker)
{
	return worker->offload ? &worker->offload->peer : &conn_peer(worker)->name;
}
