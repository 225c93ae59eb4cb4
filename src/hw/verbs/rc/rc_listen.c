/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners and connection requests. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define LOG_PROV "verbs"
#include "base/log.h"
#include "info/ifaces.h"
#include "info/rdma_ports.h"
#include "hw/verbs/rc/rc.h"

#define EVENTS_PER_CALL 64

struct offload_listener {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
};

static int rc_listen_failed(const char *what, const struct addr *a)
{
	int err = errno ? errno : FI_EIO;
	char text[ADDR_STR_MAX];

	addr_print(a, text, sizeof(text));
	LOG_WARN(LOG_EP_CTRL, "%s %s: %s", what, text, fi_strerror(err));
	return -err;
}

/* If the name is the wildcard address: replaces it by an address of an RDMA device. */
static int rc_listen_usable(struct addr *name)
{
	const struct iface_addr *a = NULL;
	struct rdma_port port;
	struct ifaces all;
	size_t at = 0;
	int err;

	if (!addr_is_any(name))
		return 0;
	err = ifaces_read(&all);
	if (err)
		return err;
	do
		a = ifaces_next(&all, name->kind == ADDR_IN6 ? AF_INET6 : AF_INET, NULL, &at);
	while (a && !rdma_ports_find(&a->addr, &port));
	if (a)
		memcpy(name->ip, a->addr.ip, sizeof(name->ip));
	ifaces_free(&all);
	return a ? 0 : -FI_EADDRNOTAVAIL;
}

static int rc_listen_bind_name(struct offload_listener *l, struct addr *name)
{
	struct sockaddr_storage to = {0};
	size_t len = sizeof(to);

	addr_to_user(name, &to, &len);
	if (verbs_cmlib()->bind_addr(l->id, (struct sockaddr *)&to))
		return rc_listen_failed("cannot bind to", name);
	name->port = ntohs(verbs_cmlib()->get_src_port(l->id));
	return rc_listen_usable(name);
}

static void listener_close(struct offload_listener *l)
{
	if (l->id)
		verbs_cmlib()->destroy_id(l->id);
	if (l->events)
		verbs_cmlib_drop(l->events);
	free(l);
}

static int listener_open(struct addr *name, struct offload_listener **out)
{
	struct offload_listener *l;
	int err;

	if (!verbs_cmlib())
		return -FI_ENOSYS;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -FI_ENOMEM;
	l->events = verbs_cmlib_channel();
	if (!l->events || verbs_cmlib()->create_id(l->events, &l->id, NULL, RDMA_PS_TCP))
		err = rc_listen_failed("no connection manager for", name);
	else
		err = rc_listen_bind_name(l, name);
	if (err)
		listener_close(l);
	else
		*out = l;
	return err;
}

static int listener_listen(struct offload_listener *l, int backlog)
{
	return verbs_cmlib()->listen(l->id, backlog) ? -errno : 0;
}

static int listener_fd(const struct offload_listener *l)
{
	return l->events->fd;
}

static void read_name(struct addr *a, const struct sockaddr *from)
{
	if (addr_from_user(a, FI_SOCKADDR, from, 0))
		*a = (struct addr){.kind = ADDR_NONE};
}

static struct offload_request *request_new(const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	struct offload_request *req = calloc(1, sizeof(*req));

	if (!req)
		return NULL;
	req->id = event->id;
	req->reads = (uint8_t)rc_least(conn->initiator_depth, RC_READS);
	req->writes_back = (uint8_t)rc_least(conn->responder_resources, RC_READS);
	req->len = conn->private_data ? conn->private_data_len : 0;
	if (req->len)
		memcpy(req->data, conn->private_data, req->len);
	read_name(&req->name, rdma_get_peer_addr(event->id));
	read_name(&req->own, rdma_get_local_addr(event->id));
	return req;
}

/* Moves the request from the listener's event channel to one of its own. */
static bool set_apart(struct offload_request *req)
{
	req->events = verbs_cmlib_channel();
	if (!req->events)
		return false;
	if (!verbs_cmlib()->migrate_id(req->id, req->events))
		return true;
	verbs_cmlib_drop(req->events);
	return false;
}

/* Handles and acknowledges the event. Returns its request, or NULL. */
static struct offload_request *rc_listen_receive(struct rdma_cm_event *event)
{
	const struct verbs_cmlib *lib = verbs_cmlib();
	struct rdma_cm_id *id = event->id;
	struct offload_request *req;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		LOG_INFO(LOG_EP_CTRL, "a listener ignores the event %s",
			 lib->event_str(event->event));
		lib->ack_cm_event(event);
		return NULL;
	}
	req = request_new(event);
	lib->ack_cm_event(event);
	if (req && set_apart(req))
		return req;
	LOG_PEER(LOG_EP_CTRL, "a request is refused: %s", fi_strerror(errno));
	free(req);
	lib->reject(id, NULL, 0);
	lib->destroy_id(id);
	return NULL;
}

static struct offload_request *listener_next(struct offload_listener *l)
{
	struct offload_request *req = NULL;
	struct rdma_cm_event *event;

	for (unsigned int i = 0; i < EVENTS_PER_CALL && !req; i++) {
		if (verbs_cmlib()->get_cm_event(l->events, &event))
			break;
		req = rc_listen_receive(event);
	}
	return req;
}

static const struct addr *request_name(const struct offload_request *req)
{
	return &req->name;
}

static const struct addr *request_own_name(const struct offload_request *req)
{
	return &req->own;
}

static const void *request_data(const struct offload_request *req, size_t *len)
{
	*len = req->len;
	return req->data;
}

void rc_reject(struct offload_request *req, const void *data, size_t len)
{
	if (len > RC_REJECT) {
		LOG_WARN(LOG_EP_CTRL, "reject: of %zu bytes %d are said", len, RC_REJECT);
		len = RC_REJECT;
	}
	verbs_cmlib()->reject(req->id, data, (uint8_t)len);
	verbs_cmlib()->destroy_id(req->id);
	verbs_cmlib_drop(req->events);
	free(req);
}

const struct offload_cm rc_cm = {
	.open = listener_open,
	.listen = listener_listen,
	.fd = listener_fd,
	.next = listener_next,
	.close = listener_close,
	.name = request_name,
	.own_name = request_own_name,
	.data = request_data,
	.reject = rc_reject,
};
