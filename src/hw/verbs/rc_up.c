/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a queue pair: the port is there from the start, the queues once their sizes are known. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define LOG_PROV "verbs"
#include "base/forked.h"
#include "base/log.h"
#include "core/views.h"
#include "hw/link.h"
#include "hw/verbs/rc.h"

#define USUAL_SIZE 256 /* work requests, where the application does not say */
#define SPARSE_MIN 64  /* from here on not every send has to tell of its end */
#define SPARSE     15

static int failed(const char *what)
{
	int err = errno ? errno : FI_ENOMEM;

	LOG_WARN(LOG_EP_CTRL, "cannot make %s: %s", what, fi_strerror(err));
	return -err;
}

static const struct native_ops ops = {
	.connect = rc_connect,
	.accept = rc_accept,
	.shutdown = rc_shutdown,
	.fd = rc_fd,
	.enable = rc_enable,
};

/* 0 or a negative error. */
static int watch(int epfd, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	return fd >= 0 && !epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev) ? 0 : -errno;
}

static int open_fds(struct rc *rc)
{
	int err;

	rc->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (rc->epfd < 0)
		return -errno;
	rc->news_fd = epoll_create1(EPOLL_CLOEXEC);
	err = watch(rc->epfd, rc->news_fd);
	if (!err)
		return 0;
	if (rc->news_fd >= 0)
		close(rc->news_fd);
	close(rc->epfd);
	return err;
}

static int rc_open(struct port *port, void **state)
{
	struct rc *rc;
	int err;

	if (port->dom->device_ops != &rc_device) {
		LOG_WARN(LOG_EP_CTRL, "the domain is of another provider");
		return -FI_EINVAL;
	}
	if (!verbs_cmlib())
		return -FI_ENOSYS;
	rc = calloc(1, sizeof(*rc));
	if (!rc)
		return -FI_ENOMEM;
	err = open_fds(rc);
	if (err) {
		free(rc);
		return err;
	}
	rc->timer = -1;
	rc->lib = verbs_cmlib();
	rc->path = port->dom->device;
	rc->native = (struct native){.ops = &ops,
				     .msg = &rc_msg_ops,
				     .rma = &rc_rma_ops,
				     .atomic = &rc_atomic_ops,
				     .port = port};
	port->native = &rc->native;
	*state = rc;
	return 0;
}

/* ---- Queues ------------------------------------------------------------------------------------ */

static int make_channel(struct rc *rc)
{
	const struct verbs_dev *dev = rc->path->dev;
	int fd, err;

	rc->channel = dev->lib->create_comp_channel(dev->ctx);
	if (!rc->channel)
		return failed("a completion channel");
	fd = rc->channel->fd;
	err = forked_guard(fd);
	if (!err && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		err = -errno;
	return err ? err : watch(rc->epfd, fd);
}

static int make_ring(struct rc_ring *ring, size_t size, const struct verbs_dev *dev)
{
	uint32_t slots = 1, most = (uint32_t)dev->attr.max_qp_wr;

	ring->size = size > RULES_RC_SIZE_MAX ? RULES_RC_SIZE_MAX : (uint32_t)size;
	if (!ring->size)
		ring->size = USUAL_SIZE;
	if (ring->size > most)
		ring->size = most;
	while (slots < ring->size)
		slots *= 2;
	ring->mask = slots - 1;
	ring->work = calloc(slots, sizeof(*ring->work));
	return ring->work ? 0 : -FI_ENOMEM;
}

static uint32_t segments(const struct verbs_dev *dev)
{
	return dev->attr.max_sge < RULES_RC_IOV_MAX ? (uint32_t)dev->attr.max_sge
						    : RULES_RC_IOV_MAX;
}

static int make_qp(struct rc *rc)
{
	const struct verbs_dev *dev = rc->path->dev;
	struct ibv_qp_init_attr init = {.send_cq = rc->cq,
					.recv_cq = rc->cq,
					.cap = {.max_send_wr = rc->tx.size,
						.max_recv_wr = rc->rx.size,
						.max_send_sge = segments(dev),
						.max_recv_sge = segments(dev),
						.max_inline_data = RULES_RC_INJECT},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = rc->path->port.port,
				   .qp_access_flags = RC_ACCESS};

	rc->qp = dev->lib->create_qp(dev->pd, &init);
	if (!rc->qp)
		return failed("a queue pair");
	rc->inline_most = init.cap.max_inline_data;
	/* Receives may be posted from now on. */
	errno = dev->lib->modify_qp(rc->qp, &attr,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					    IBV_QP_ACCESS_FLAGS);
	return errno ? failed("a queue pair ready") : 0;
}

static int make_queues(struct rc *rc, const struct fi_info *info)
{
	const struct verbs_dev *dev = rc->path->dev;
	int err = make_ring(&rc->tx, info->tx_attr->size, dev);

	if (!err)
		err = make_ring(&rc->rx, info->rx_attr->size, dev);
	if (!err)
		err = make_channel(rc);
	if (err)
		return err;
	rc->cq = dev->lib->create_cq(dev->ctx, (int)(rc->tx.size + rc->rx.size), NULL, rc->channel,
				     0);
	return rc->cq ? make_qp(rc) : failed("a completion queue");
}

static void drop_queues(struct rc *rc)
{
	const struct verbs_lib *lib = rc->path->dev->lib;

	if (rc->qp)
		lib->destroy_qp(rc->qp);
	if (rc->cq)
		lib->destroy_cq(rc->cq);
	if (rc->channel) {
		forked_release(rc->channel->fd);
		lib->destroy_comp_channel(rc->channel);
	}
	free(rc->tx.work);
	free(rc->rx.work);
	rc->qp = NULL;
	rc->cq = NULL;
	rc->channel = NULL;
	rc->tx.work = rc->rx.work = NULL;
}

int rc_enable(struct native *n, struct ep *ep)
{
	struct rc *rc = rc_of(n);
	int err = make_queues(rc, ep->info);

	if (err) {
		drop_queues(rc);
		return err;
	}
	rc->ep = ep;
	rc->rx.limit = rc->rx.size;
	rc->unsignaled = rc->tx.size >= SPARSE_MIN ? SPARSE : 0;
	rc->signal = ep->cntrs[0] || ep->cntrs[2] || ep->cntrs[3] ? IBV_SEND_SIGNALED : 0;
	if (ep->inject_max > rc->inline_most)
		ep->inject_max = rc->inline_most;
	return 0;
}

static void rc_close(void *state)
{
	struct rc *rc = state;

	rc->native.port->native = NULL;
	drop_queues(rc);
	rc_leave(rc);
	close(rc->news_fd);
	close(rc->epfd);
	free(rc);
}

static int rc_epfd(void *state)
{
	return ((struct rc *)state)->epfd;
}

const struct transport rc_transport = {
	.name = "rc",
	.bit = VIEW_RC,
	.open = rc_open,
	.close = rc_close,
	.turn = rc_turn,
	.arm = rc_arm,
	.fd = rc_epfd,
	.device = &rc_device,
	.cm = &rc_cm,
};
