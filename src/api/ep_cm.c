/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of endpoints, and the connection of an FI_EP_MSG endpoint. fi_cm(3). */
#include "api/ep.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/cm.h"
#include "api/pep.h"
#include "api/refused.h"
#include "base/clock.h"
#include "base/log.h"
#include "info/providers.h"
#include "xfer/engine.h"

static int ep_name_get(fid_t fid, void *addr, size_t *addrlen)
{
	struct ep *ep = (struct ep *)fid;
	int err;

	if (!addrlen || (*addrlen && !addr))
		return -FI_EINVAL;
	domain_lock(ep->dom);
	err = ep_worker(ep);
	if (!err)
		err = addr_to_format(worker_name(ep->worker), provider_format(ep->base->info), addr,
				     addrlen);
	domain_unlock(ep->dom);
	return err;
}

/* Returns -FI_EADDRINUSE if the worker has another string than the one asked for. */
static int check_name(const struct ep *ep, const void *wanted, size_t wanted_len)
{
	const struct addr *name = worker_name(ep->worker);
	struct addr a;
	int err = addr_from_user(&a, provider_format(ep->info), wanted, wanted_len);

	if (err)
		return err;
	err = name->kind != ADDR_STR || strcmp(name->str, a.str) == 0 ? 0 : -FI_EADDRINUSE;
	addr_free(&a);
	return err;
}

/* Opens the worker under the name of ep->info, to report a name in use at once. Locked. */
static int ep_name_take_name(struct ep *ep)
{
	int err = ep_worker(ep);

	if (err)
		return err;
	err = check_name(ep, ep->info->src_addr, ep->info->src_addrlen);
	if (err)
		ep_drop_worker(ep);
	return err;
}

/* An FI_EP_MSG endpoint binds only when it connects. */
static int ep_name_set_name(struct ep *ep, void *addr, size_t addrlen)
{
	struct fi_info *info = ep->info;
	void *old = info->src_addr;
	size_t old_len = info->src_addrlen;
	int err;

	if (ep->worker)
		return -FI_EOPBADSTATE;
	info->src_addr = addr;
	info->src_addrlen = addrlen;
	err = ep->cm ? 0 : ep_name_take_name(ep);
	if (err) {
		info->src_addr = old;
		info->src_addrlen = old_len;
		return err;
	}
	free(old);
	return 0;
}

/* Permitted only before the endpoint has a worker. */
static int ep_name_set(fid_t fid, void *addr, size_t addrlen)
{
	struct ep *ep = (struct ep *)fid;
	void *copy;
	int err;

	if (!addr || !addrlen || ep->base != ep)
		return -FI_EINVAL;
	copy = malloc(addrlen);
	if (!copy)
		return -FI_ENOMEM;
	memcpy(copy, addr, addrlen);
	domain_lock(ep->dom);
	err = ep_name_set_name(ep, copy, addrlen);
	domain_unlock(ep->dom);
	if (err)
		free(copy);
	return err;
}

/* Returns whether it is time to check that the peer is alive. */
static bool poll_due(struct ep_cm *cm)
{
	uint64_t now;

	if (!cm->poll_ms)
		return false;
	now = clock_coarse_ms();
	if (now < cm->next_poll)
		return false;
	cm->next_poll = now + (uint64_t)cm->poll_ms / 2;
	return true;
}

static void call_driver(struct eq_driver *driver)
{
	struct ep *ep = ((struct ep_cm *)driver)->ep;

	if (domain_foreign(ep->dom))
		return;
	domain_lock(ep->dom);
	if (poll_due(ep->cm))
		cm_poll(ep->worker);
	else
		cm_progress(ep->worker);
	domain_unlock(ep->dom);
}

/*
 * Selects what wakes sleepers on the event queue: the outcome of the connect attempt, then the end
 * of the connection, but not every message. Domain locked.
 */
static void ep_cm_watch(struct ep *ep)
{
	enum ep_cm_state state = ep->cm->state;
	int news;

	if (!ep->cm->driven)
		return;
	news = cm_news_fd(ep->worker);
	if (news >= 0) {
		eq_driver_watch(ep->eq, &ep->cm->driver, state == EP_CM_ENDED ? -1 : news);
		return;
	}
	eq_driver_watch(ep->eq, &ep->cm->driver,
			state == EP_CM_CONNECTING ? worker_driven(ep->worker)->fd : -1);
	if (state != EP_CM_CONNECTED)
		return;
	eq_watch_end(ep->eq, cm_sock(ep->worker));
	ep->cm->poll_ms = cm_poll_ms(ep->worker);
	ep->cm->next_poll = clock_coarse_ms() + (uint64_t)ep->cm->poll_ms / 2;
	if (ep->cm->poll_ms)
		eq_tick(ep->eq, ep->cm->poll_ms);
}

/* Takes over info->handle: a passive endpoint's name, or a connection request to accept. */
static int take_handle(struct ep *ep, struct fid *handle)
{
	struct cm_request *request = cm_request_of(handle);

	if (request && !request->taken) {
		request->taken = true;
		ep->cm->request = request;
		return 0;
	}
	if (!request && handle->fclass == FI_CLASS_PEP)
		return pep_give_name((struct fid_pep *)handle, ep->info);
	return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL, "info->handle is %s (class %zu)",
			  request ? "a request that another endpoint has" : "not of a connection",
			  handle->fclass);
}

int ep_cm_open(struct ep *ep, const struct fi_info *info)
{
	int err;

	ep->cm = calloc(1, sizeof(*ep->cm));
	if (!ep->cm)
		return -FI_ENOMEM;
	list_init(&ep->cm->driver.link);
	ep->cm->driver.progress = call_driver;
	ep->cm->driver.fd = -1;
	ep->cm->ep = ep;
	ep->info->handle = NULL;
	err = info->handle ? take_handle(ep, info->handle) : 0;
	if (err) {
		ep_cm_free(ep);
		return err;
	}
	/* Event queues belong to no domain: other threads may read them. */
	domain_lock(ep->dom);
	domain_use_locks(ep->dom);
	domain_unlock(ep->dom);
	return 0;
}

void ep_cm_leave(struct ep *ep)
{
	bool driven;

	if (!ep->cm)
		return;
	domain_lock(ep->dom);
	driven = ep->cm->driven;
	ep->cm->driven = false;
	domain_unlock(ep->dom);
	if (driven)
		eq_del_driver(ep->eq, &ep->cm->driver);
}

void ep_cm_free(struct ep *ep)
{
	if (ep->cm && ep->cm->request)
		cm_request_free(ep->cm->request);
	free(ep->cm);
	ep->cm = NULL;
}

static void post_event(struct ep *ep, uint32_t event, const void *data, size_t len)
{
	union {
		struct fi_eq_cm_entry entry;
		unsigned char bytes[sizeof(struct fi_eq_cm_entry) + XFER_CM_DATA];
	} e = {.entry = {.fid = &ep->fid.fid}};

	if (len)
		memcpy(e.bytes + sizeof(e.entry), data, len);
	eq_post(ep->eq, event, &e, sizeof(e.entry) + len);
}

static void post_failure(struct ep *ep, int err, const void *data, size_t len)
{
	struct fi_eq_err_entry entry = {.fid = &ep->fid.fid,
					.context = ep->fid.fid.context,
					.err = err,
					.prov_errno = err,
					.err_data = (void *)(uintptr_t)data,
					.err_data_size = len};

	eq_post_error(ep->eq, &entry);
}

void ep_cm_connected(struct ep *ep, const void *data, size_t len)
{
	ep->cm->state = EP_CM_CONNECTED;
	ep_cm_watch(ep);
	post_event(ep, FI_CONNECTED, data, len);
}

void ep_cm_ended(struct ep *ep, int err, const void *data, size_t len)
{
	enum ep_cm_state was = ep->cm->state;

	ep->cm->state = EP_CM_ENDED;
	ep_cm_watch(ep);
	ep_end_receives(ep);
	if (was == EP_CM_CONNECTED)
		post_event(ep, FI_SHUTDOWN, NULL, 0);
	else if (was == EP_CM_NEW && ep->eq) /* the device was removed */
		post_failure(ep, err, NULL, 0);
	else if (was == EP_CM_CONNECTING) /* a closing listener resets pending connections */
		post_failure(ep, err == FI_ECONNRESET ? FI_ECONNREFUSED : err, data, len);
}

/* The common part of fi_connect and fi_accept. Enables the endpoint if it is not. */
static int ep_cm_prepare(struct ep *ep, const void *param, size_t paramlen)
{
	if (!ep->cm)
		return -FI_ENOSYS;
	if (paramlen && !param)
		return -FI_EINVAL;
	if (!ep->eq)
		return LOG_REFUSE(
			-FI_ENOEQ, LOG_EP_CTRL,
			"no event queue is bound to the endpoint: call fi_ep_bind with one first");
	return ep->enabled ? 0 : ep_enable(ep);
}

/*
 * Adds the driver, so that reads of the event queue alone make progress. No lock held: drivers take the domain's lock.
 */
static int ep_cm_drive(struct ep *ep)
{
	int err = 0;

	if (!ep->cm->driven)
		err = eq_add_driver(ep->eq, &ep->cm->driver);
	if (!err)
		ep->cm->driven = true;
	return err;
}

static bool is_new(const struct ep *ep)
{
	if (ep->cm->state == EP_CM_NEW)
		return true;
	return LOG_REFUSE(false, LOG_EP_CTRL,
			  "an endpoint can be connected only once: open another one");
}

static int connect_locked(struct ep *ep, const struct addr *to, const void *param, size_t paramlen)
{
	int err;

	if (!is_new(ep) || ep->cm->request)
		return -FI_EINVAL;
	err = cm_connect(ep->worker, to, param, paramlen);
	if (err == -FI_ENOMEM)
		return err;
	ep->cm->state = EP_CM_CONNECTING;
	ep_cm_watch(ep);
	if (err)
		ep_cm_ended(ep, -err, NULL, 0);
	return 0;
}

static int ep_connect(struct fid_ep *fid, const void *addr, const void *param, size_t paramlen)
{
	struct ep *ep = ep_of(fid)->base;
	struct addr to;
	int err = ep_cm_prepare(ep, param, paramlen);

	if (!err)
		err = addr ? addr_from_user(&to, provider_format(ep->info), addr, 0) : -FI_EINVAL;
	if (err)
		return err;
	err = ep_cm_drive(ep);
	if (!err) {
		domain_lock(ep->dom);
		err = connect_locked(ep, &to, param, paramlen);
		domain_unlock(ep->dom);
	}
	addr_free(&to);
	return err;
}

/* Errors of the connection itself are reported by an event, as with fi_connect. */
static int accept_locked(struct ep *ep, const void *param, size_t paramlen)
{
	struct cm_request *request = ep->cm->request;
	int err;

	if (!request || request->answered || !is_new(ep))
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
				  "fi_accept: the endpoint has no connection request, or it was "
				  "answered");
	ep->cm->state = EP_CM_CONNECTING;
	err = cm_accept(ep->worker, request, param, paramlen);
	if (err == CM_LATER)
		ep_cm_watch(ep);
	else if (err)
		ep_cm_ended(ep, -err, NULL, 0);
	else
		ep_cm_connected(ep, NULL, 0);
	return 0;
}

static int ep_accept(struct fid_ep *fid, const void *param, size_t paramlen)
{
	struct ep *ep = ep_of(fid)->base;
	int err = ep_cm_prepare(ep, param, paramlen);

	if (!err)
		err = ep_cm_drive(ep);
	if (err)
		return err;
	domain_lock(ep->dom);
	err = accept_locked(ep, param, paramlen);
	domain_unlock(ep->dom);
	return err;
}

static int shutdown_locked(struct ep *ep)
{
	enum ep_cm_state was = ep->cm->state;

	if (was == EP_CM_NEW)
		return -FI_ENOTCONN;
	if (was == EP_CM_ENDED)
		return 0;
	cm_shutdown(ep->worker);
	ep_cm_ended(ep, FI_ECANCELED, NULL, 0);
	return 0;
}

static int ep_shutdown(struct fid_ep *fid, uint64_t flags)
{
	struct ep *ep = ep_of(fid)->base;
	int err;

	if (!ep->cm)
		return -FI_ENOSYS;
	if (flags)
		return -FI_EINVAL;
	ep_serve_last(ep);
	domain_lock(ep->dom);
	err = shutdown_locked(ep);
	domain_unlock(ep->dom);
	return err;
}

/* Returns the peer's address; NULL: neither connected nor connecting. */
static const struct addr *peer_name(const struct ep *ep)
{
	const struct ep_cm *cm = ep->cm;

	if (!cm)
		return NULL;
	if (cm->state == EP_CM_CONNECTING || cm->state == EP_CM_CONNECTED)
		return cm_peer_name(ep->worker);
	return cm->request && !cm->request->answered ? cm_request_name(cm->request) : NULL;
}

static int ep_getpeer(struct fid_ep *fid, void *addr, size_t *addrlen)
{
	struct ep *ep = ep_of(fid)->base;
	const struct addr *name;
	int err;

	if (!addrlen || (*addrlen && !addr))
		return -FI_EINVAL;
	domain_lock(ep->dom);
	name = peer_name(ep);
	err = name ? addr_to_format(name, provider_format(ep->info), addr, addrlen) : -FI_ENOTCONN;
	domain_unlock(ep->dom);
	return err;
}

struct fi_ops_cm ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_name_set,
	.getname = ep_name_get,
	.getpeer = ep_getpeer,
	.connect = ep_connect,
	.listen = refused_listen,
	.accept = ep_accept,
	.reject = refused_reject,
	.shutdown = ep_shutdown,
	.join = mc_join,
};
