/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners (acceptor, listen), and the one connection of a worker (conn_single). */
#include "api/cm.h"

#include <errno.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/forked.h"
#include "base/log.h"
#include "api/connreq.h"
#include "api/ep_cm.h"
#include "info/providers.h"
#include "conn/conn.h"
#include "conn/connect.h"
#include "conn/hello.h"
#include "conn/listen.h"
#include "link/offload.h"
#include "link/transports.h"
#include "xfer/worker.h"

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

struct connreq *cm_next(struct cm_listener *l)
{
	struct connreq *req = NULL;
	struct epoll_event event;
	struct accepted conn;

	if (l->cm)
		return connreq_next(l);
	for (unsigned int i = 0; i < EVENTS_PER_CALL && !req; i++) {
		if (epoll_wait(l->epfd, &event, 1, 0) != 1)
			break;
		if (acceptor_event(&l->acceptor, event.data.u64, &conn))
			req = connreq_new(l, &conn);
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

int cm_accept(struct worker *worker, struct connreq *req, const void *data, size_t len)
{
	int err = connreq_accept(req, worker, data, len);

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
