/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection of an endpoint. See rc.h for its states. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LOG_PROV "verbs"
#include "base/env.h"
#include "base/log.h"
#include "hw/verbs/rc/rc.h"

/* The connection manager's reasons for a rejection. */
#define NOBODY_LISTENS 8
#define ITS_WORD       28

static int rc_cm_failed(const struct rc *rc, const char *what)
{
	int err = errno ? errno : FI_EIO;
	char text[ADDR_STR_MAX];

	addr_print(&rc->offload.peer, text, sizeof(text));
	LOG_WARN(LOG_EP_CTRL, "%s: %s: %s", text, what, fi_strerror(err));
	return -err;
}

/* As failed; EINVAL after the request means that the peer has gone. */
static int rc_cm_disconnected(const struct rc *rc, const char *what)
{
	if (errno != EINVAL || rc->state == RC_RESOLVING)
		return rc_cm_failed(rc, what);
	LOG_INFO(LOG_EP_CTRL, "%s: the peer has gone", what);
	return -FI_ECONNABORTED;
}

/* Moves the queue pair to `state`, as both sides agreed. 0 or a negative error. */
static int rc_cm_step(struct rc *rc, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask = 0;

	if (rc->lib->init_qp_attr(rc->id, &attr, &mask))
		return rc_cm_disconnected(rc, "no attributes for a queue pair");
	if (state != IBV_QPS_RTS) {
		attr.qp_access_flags = RC_ACCESS;
		mask |= IBV_QP_ACCESS_FLAGS;
	}
	if (state == IBV_QPS_RTR) {
		attr.max_dest_rd_atomic = rc->writes_back;
		attr.min_rnr_timer = RC_RNR_TIMER; /* the default is the longest */
		mask |= IBV_QP_MIN_RNR_TIMER;
	}
	if (state == IBV_QPS_RTS)
		attr.max_rd_atomic = rc->reads;
	errno = rc->path->dev->lib->modify_qp(rc->qp, &attr, mask);
	return errno ? rc_cm_failed(rc, "a queue pair does not get on") : 0;
}

/* The request was answered, or the attempt has ended. */
static void stop_timer(struct rc *rc)
{
	if (rc->timer >= 0)
		close(rc->timer);
	rc->timer = -1;
}

/* Wakes a sleeping waiter when the answer is overdue. */
static int start_timer(struct rc *rc)
{
	int ms = env_get()->peer_timeout;
	struct itimerspec when = {.it_value = {ms / 1000, ms % 1000 * 1000000L}};
	struct epoll_event ev = {.events = EPOLLIN};

	if (ms <= 0)
		return 0;
	rc->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (rc->timer < 0 || timerfd_settime(rc->timer, 0, &when, NULL) ||
	    epoll_ctl(rc->news_fd, EPOLL_CTL_ADD, rc->timer, &ev))
		return rc_cm_failed(rc, "no timer");
	return 0;
}

/* Flushes the queue pair: all requests, later ones too, complete as flushed. */
static void rc_cm_flush(struct rc *rc)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	stop_timer(rc);
	if (rc->batch_count)
		rc_flush_batch(rc);
	rc->state = RC_OVER;
	rc->tx.limit = rc->gate = rc->tx.posted;
	rc->rx.limit = rc->rx.posted;
	if (rc->qp && rc->path->dev->lib->modify_qp(rc->qp, &attr, IBV_QP_STATE))
		LOG_INFO(LOG_EP_CTRL, "a queue pair is not flushed: %s", fi_strerror(errno));
}

static void rc_cm_end(struct rc *rc, int err, const void *data, size_t len)
{
	enum rc_state was = rc->state;

	rc_cm_flush(rc);
	if (was == RC_UP || was == RC_ANSWERING)
		rc->lib->disconnect(rc->id);
	if (was != RC_OVER)
		rc->offload.events->ended(&rc->offload, err, data, len);
}

void rc_end(struct rc *rc, int err)
{
	rc_cm_end(rc, err, NULL, 0);
}

static void rc_cm_up(struct rc *rc, const void *data, size_t len)
{
	stop_timer(rc);
	rc->state = RC_UP;
	rc->tx.limit = rc->tx.over + rc->tx.size;
	rc_set_gate(rc);
	rc->offload.events->connected(&rc->offload, data, len);
}

static struct rdma_conn_param rc_cm_param(const struct rc *rc, const void *data, size_t len)
{
	return (struct rdma_conn_param){.private_data = data,
					.private_data_len = (uint8_t)len,
					.responder_resources = rc->writes_back,
					.initiator_depth = rc->reads,
					.retry_count = RC_RETRIES,
					.rnr_retry_count = RC_RNR_WAITS,
					.qp_num = rc->qp->qp_num};
}

static int rc_cm_adopt(struct rc *rc, struct rdma_event_channel *events, struct rdma_cm_id *id)
{
	struct epoll_event ev = {.events = EPOLLIN};

	rc->events = events;
	rc->id = id;
	rc->reads = (uint8_t)rc_least(rc->path->dev->attr.max_qp_init_rd_atom, RC_READS);
	rc->writes_back = (uint8_t)rc_least(rc->path->dev->attr.max_qp_rd_atom, RC_READS);
	return epoll_ctl(rc->news_fd, EPOLL_CTL_ADD, events->fd, &ev) ? -errno : 0;
}

void rc_leave(struct rc *rc)
{
	stop_timer(rc);
	if (!rc->events)
		return;
	if (rc->state == RC_UP || rc->state == RC_ANSWERING)
		rc->lib->disconnect(rc->id);
	if (rc->id)
		rc->lib->destroy_id(rc->id);
	verbs_cmlib_drop(rc->events);
	rc->id = NULL;
	rc->events = NULL;
}

/* Does the connection use the device that the domain's memory is registered with? */
static bool rc_cm_is_ours(const struct rc *rc, const struct rdma_cm_id *id)
{
	if (id->verbs && id->port_num == rc->path->port.port &&
	    strcmp(rc->path->dev->lib->get_device_name(id->verbs->device), rc->path->dev->name) ==
		    0)
		return true;
	LOG_WARN(LOG_EP_CTRL, "the connection does not use the domain's device, %s port %u",
		 rc->path->dev->name, rc->path->port.port);
	return false;
}

/* ---- Connecting ------------------------------------------------------------------------------ */

static int rc_cm_resolve(struct rc *rc, const struct addr *to)
{
	struct sockaddr_storage src = {0}, dest = {0};
	size_t src_len = sizeof(src), dest_len = sizeof(dest);

	addr_to_user(rc->offload.opener->name, &src, &src_len);
	addr_to_user(to, &dest, &dest_len);
	if (rc->lib->resolve_addr(rc->id, (struct sockaddr *)&src, (struct sockaddr *)&dest,
				  RC_RESOLVE_MS))
		return rc_cm_failed(rc, "cannot be resolved");
	rc->state = RC_RESOLVING;
	return 0;
}

int rc_connect(struct offload *n, const struct addr *to, const void *data, size_t len)
{
	struct rc *rc = rc_of(n);
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	int err;

	if (len > RC_ASK_MOST)
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL, "connect: %zu bytes of data, %d at most",
				  len, RC_ASK_MOST);
	n->peer = *to;
	events = verbs_cmlib_channel();
	if (!events)
		return rc_cm_failed(rc, "no channel for events");
	if (rc->lib->create_id(events, &id, rc, RDMA_PS_TCP)) {
		err = rc_cm_failed(rc, "no connection manager");
		verbs_cmlib_drop(events);
		return err;
	}
	rc->say_len = len;
	if (len)
		memcpy(rc->say, data, len);
	err = rc_cm_adopt(rc, events, id);
	if (!err)
		err = start_timer(rc);
	if (!err)
		err = rc_cm_resolve(rc, to);
	if (err)
		rc_cm_flush(rc);
	return err;
}

static void addr_resolved(struct rc *rc)
{
	if (!rc_cm_is_ours(rc, rc->id)) {
		rc_end(rc, FI_EHOSTUNREACH);
		return;
	}
	rc->offload.opener->name->port = ntohs(rc->lib->get_src_port(rc->id));
	if (rc->lib->resolve_route(rc->id, RC_RESOLVE_MS))
		rc_end(rc, -rc_cm_failed(rc, "no route"));
}

static void route_resolved(struct rc *rc)
{
	struct rdma_conn_param p = rc_cm_param(rc, rc->say, rc->say_len);
	int err = rc_cm_step(rc, IBV_QPS_INIT);

	if (!err && rc->lib->connect(rc->id, &p))
		err = rc_cm_failed(rc, "cannot be asked");
	if (err)
		rc_end(rc, -err);
	else
		rc->state = RC_ASKING;
}

/* The peer has accepted, and waits until we establish the connection. */
static void rc_cm_answered(struct rc *rc, const struct rdma_conn_param *conn)
{
	int err;

	rc->writes_back = (uint8_t)rc_least(conn->responder_resources, rc->writes_back);
	rc->reads = (uint8_t)rc_least(conn->initiator_depth, rc->reads);
	err = rc_cm_step(rc, IBV_QPS_RTR);
	if (!err)
		err = rc_cm_step(rc, IBV_QPS_RTS);
	if (!err && rc->lib->establish(rc->id))
		err = rc_cm_disconnected(rc, "the connection is not established");
	if (err) {
		rc->lib->reject(rc->id, NULL, 0);
		rc_end(rc, -err);
		return;
	}
	rc_cm_up(rc, conn->private_data, conn->private_data ? conn->private_data_len : 0);
}

/* ---- Accepting ------------------------------------------------------------------------------- */

static int say_yes(struct rc *rc, const void *data, size_t len)
{
	struct rdma_conn_param p = rc_cm_param(rc, data, len);
	int err = rc_cm_step(rc, IBV_QPS_INIT);

	if (!err)
		err = rc_cm_step(rc, IBV_QPS_RTR);
	if (!err)
		err = rc_cm_step(rc, IBV_QPS_RTS);
	if (!err && rc->lib->accept(rc->id, &p))
		err = rc_cm_disconnected(rc, "cannot be accepted");
	return err;
}

int rc_accept(struct offload *n, struct offload_request *req, const void *data, size_t len)
{
	struct rc *rc = rc_of(n);
	int err;

	if (len > RC_ANSWER)
		LOG_WARN(LOG_EP_CTRL, "accept: %zu bytes of data, %d at most", len, RC_ANSWER);
	if (len > RC_ANSWER || !rc_cm_is_ours(rc, req->id)) {
		rc_reject(req, NULL, 0);
		rc_cm_flush(rc);
		return -FI_EINVAL;
	}
	n->peer = req->name;
	err = rc_cm_adopt(rc, req->events, req->id);
	rc->reads = (uint8_t)rc_least(req->reads, rc->reads);
	rc->writes_back = (uint8_t)rc_least(req->writes_back, rc->writes_back);
	free(req);
	if (!err)
		err = say_yes(rc, data, len);
	if (err)
		rc_cm_flush(rc);
	else
		rc->state = RC_ANSWERING;
	return err;
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* The peer has rejected our request or, at the accepting side, given up. */
static void rc_cm_rejected(struct rc *rc, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	bool word = event->status == ITS_WORD && conn->private_data;

	if (rc->state == RC_ANSWERING) {
		rc_end(rc, FI_ECONNABORTED);
		return;
	}
	if (event->status != NOBODY_LISTENS && event->status != ITS_WORD)
		LOG_INFO(LOG_EP_CTRL, "rejected for reason %d", event->status);
	rc_cm_end(rc, FI_ECONNREFUSED, word ? conn->private_data : NULL,
		  word ? conn->private_data_len : 0);
}

/* Returns the positive error of an event, `usual` if the status names none. */
static int rc_cm_reason(const struct rdma_cm_event *event, int usual)
{
	return event->status < 0 && event->status != -ETIMEDOUT ? -event->status : usual;
}

static void rc_cm_handle(struct rc *rc, const struct rdma_cm_event *event)
{
	LOG_DEBUG(LOG_EP_CTRL, "%s, status %d", rc->lib->event_str(event->event), event->status);
	if (rc->state == RC_OVER) {
		/* Rejects a late acceptance of an attempt that has ended. */
		if (event->event == RDMA_CM_EVENT_CONNECT_RESPONSE)
			rc->lib->reject(rc->id, NULL, 0);
		return;
	}
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		addr_resolved(rc);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		route_resolved(rc);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		rc_cm_answered(rc, &event->param.conn);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (rc->state == RC_ANSWERING)
			rc_cm_up(rc, NULL, 0);
		break;
	case RDMA_CM_EVENT_REJECTED:
		rc_cm_rejected(rc, event);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		rc_end(rc, rc_cm_reason(event, FI_EHOSTUNREACH));
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		/* The peer's hardware address is unknown: in state UP retries decide. */
		if (rc->state != RC_UP)
			rc_end(rc, rc_cm_reason(event, FI_ETIMEDOUT));
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		rc_end(rc, rc_cm_reason(event, FI_ETIMEDOUT));
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rc_end(rc, rc->state == RC_UP ? FI_ESHUTDOWN : FI_ECONNABORTED);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		rc_removed(rc);
		break;
	default:
		break;
	}
}

bool rc_news(struct rc *rc)
{
	struct rdma_cm_event *event;
	uint64_t times;
	bool any = rc->timer >= 0 && read(rc->timer, &times, sizeof(times)) > 0;

	if (any) {
		LOG_WARN(LOG_EP_CTRL, "the peer did not answer within %d ms (FI_WEFT_PEER_TIMEOUT)",
			 env_get()->peer_timeout);
		rc_end(rc, FI_ETIMEDOUT);
	}
	while (!rc->lib->get_cm_event(rc->events, &event)) {
		any = true;
		rc_cm_handle(rc, event);
		rc->lib->ack_cm_event(event);
	}
	return any;
}

void rc_shutdown(struct offload *n)
{
	struct rc *rc = rc_of(n);
	bool answers = rc->state == RC_UP || rc->state == RC_ANSWERING;

	rc_cm_flush(rc);
	if (answers)
		rc->lib->disconnect(rc->id);
}

int rc_fd(const struct offload *n)
{
	return ((const struct rc *)n)->news_fd;
}
