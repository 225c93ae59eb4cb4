/* SPDX-License-Identifier: BSD-2-Clause */
/* Life of a queue pair: rc_open makes the state; rc_enable makes the queues, by size. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define LOG_PROV "verbs"
#include "base/log.h"
#include "info/providers.h"
#include "hw/transports.h"
#include "hw/verbs/rc/rc.h"

#define USUAL_SIZE 256 /* work requests, if the application asks for no size */
#define SPARSE_MIN 64  /* queues of this size signal one send of SPARSE + 1 */
#define SPARSE     15

#define ATOMIC_QP_OPS                                                                              \
	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |          \
	 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                           \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |                 \
	 IBV_QP_EX_WITH_ATOMIC_WRITE)

static const struct offload_ops ops = {
	.connect = rc_connect,
	.accept = rc_accept,
	.shutdown = rc_shutdown,
	.fd = rc_fd,
	.cancel = rc_cancel,
	.enable = rc_enable,
};

static int rc_up_open_fds(struct rc *rc)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int err;

	rc->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (rc->epfd < 0)
		return -errno;
	rc->news_fd = epoll_create1(EPOLL_CLOEXEC);
	if (rc->news_fd >= 0 && !epoll_ctl(rc->epfd, EPOLL_CTL_ADD, rc->news_fd, &ev))
		return 0;
	err = -errno;
	if (rc->news_fd >= 0)
		close(rc->news_fd);
	close(rc->epfd);
	return err;
}

static int rc_open(struct opener *opener, void **state)
{
	struct rc *rc;
	int err;

	if (opener->dom->device_ops != &rc_device)
		return LOG_REFUSE(
			-FI_EINVAL, LOG_EP_CTRL,
			"the domain belongs to another provider: open it with the info of the endpoint");
	if (!verbs_cmlib())
		return -FI_ENOSYS;
	rc = calloc(1, sizeof(*rc));
	if (!rc)
		return -FI_ENOMEM;
	err = rc_up_open_fds(rc);
	if (err) {
		free(rc);
		return err;
	}
	rc->timer = -1;
	rc->lock = &opener->dom->main_shard->lock;
	rc->lib = verbs_cmlib();
	rc->path = opener->dom->device;
	rc->offload = (struct offload){.ops = &ops, .entries = &rc_entries};
	*state = rc;
	return 0;
}

/* ---- Queues ---------------------------------------------------------------------------------- */

static int make_ring(struct rc_ring *ring, size_t size, const struct verbs_dev *dev)
{
	uint32_t slots = 1, most = (uint32_t)dev->attr.max_qp_wr;

	ring->size = size > RULES_RC_SIZE_MAX ? RULES_RC_SIZE_MAX : (uint32_t)size;
	if (!ring->size)
		ring->size = USUAL_SIZE;
	if (ring->size == 1) /* a confirmed write takes two requests */
		ring->size = 2;
	if (ring->size > most)
		ring->size = most;
	while (slots < ring->size)
		slots *= 2;
	ring->mask = slots - 1;
	ring->work = calloc(slots, sizeof(*ring->work));
	return ring->work ? 0 : -FI_ENOMEM;
}

static uint32_t rc_up_segments(const struct verbs_dev *dev)
{
	return dev->attr.max_sge < RULES_RC_IOV_MAX ? (uint32_t)dev->attr.max_sge
						    : RULES_RC_IOV_MAX;
}

static struct ibv_qp *create_atomic(const struct verbs_dev *dev,
				    const struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex attr = {.qp_context = init->qp_context,
					   .send_cq = init->send_cq,
					   .recv_cq = init->recv_cq,
					   .srq = init->srq,
					   .cap = init->cap,
					   .qp_type = init->qp_type,
					   .comp_mask = IBV_QP_INIT_ATTR_PD |
							IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					   .pd = dev->pd,
					   .send_ops_flags = ATOMIC_QP_OPS};

	return verbs_get_ctx(dev->ctx)->create_qp_ex(dev->ctx, &attr);
}

static void rc_up_create(struct rc *rc, struct ibv_qp_init_attr *init)
{
	const struct verbs_dev *dev = rc->path->dev;

	if (dev->writes_atomically) {
		rc->qp = create_atomic(dev, init);
		rc->ex = rc->qp ? dev->lib->qp_to_qp_ex(rc->qp) : NULL;
	}
	if (!rc->qp)
		rc->qp = dev->lib->create_qp(dev->pd, init);
}

static int make_qp(struct rc *rc)
{
	const struct verbs_dev *dev = rc->path->dev;
	struct ibv_qp_init_attr init = {.qp_context = &rc->note,
					.send_cq = rc->cq,
					.recv_cq = rc->cq,
					.srq = rc->srx ? rc->srx->srq : NULL,
					.cap = {.max_send_wr = rc->tx.size,
						.max_recv_wr = rc->rx.size,
						.max_send_sge = rc_up_segments(dev),
						.max_recv_sge = rc_up_segments(dev),
						.max_inline_data = RULES_RC_INJECT},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = rc->path->port.port,
				   .qp_access_flags = RC_ACCESS};

	rc_up_create(rc, &init);
	if (!rc->qp)
		return verbs_failed("a queue pair");
	rc->inline_most = init.cap.max_inline_data;
	/* In state INIT receives can be posted. */
	errno = dev->lib->modify_qp(rc->qp, &attr,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					    IBV_QP_ACCESS_FLAGS);
	return errno ? verbs_failed("a queue pair ready") : 0;
}

static int rc_up_make_queues(struct rc *rc, const struct fi_info *info)
{
	const struct verbs_dev *dev = rc->path->dev;
	int err = make_ring(&rc->tx, info->tx_attr->size, dev);

	if (rc->srx)
		rc->rx.size = rc->srx->size;
	else if (!err)
		err = make_ring(&rc->rx, info->rx_attr->size, dev);
	if (!err)
		err = verbs_channel_open(dev, rc->epfd, rc->news_fd, &rc->channel);
	if (err)
		return err;
	rc->cq = dev->lib->create_cq(dev->ctx, (int)(rc->tx.size + rc->rx.size), &rc->note,
				     rc->channel, 0);
	return rc->cq ? make_qp(rc) : verbs_failed("a completion queue");
}

static void return_slot(struct rc *rc, const struct ibv_wc *wc)
{
	if (wc->wr_id & RC_RECEIVE)
		rc_came(rc, wc);
}

/* Has the device reported that all receives taken by the queue pair are in the completion queue, or are all back? */
static bool has_all_slots(const struct rc *rc)
{
	verbs_news_read(rc->path->dev);
	return verbs_note_read(&rc->note.last) || rc->srx->free_count == rc->srx->size;
}

/*
 * The shared receive queue outlives the queue pair: reports the messages that came, and frees the
 * slots of receives that the device had taken.
 */
static void return_slots(struct rc *rc)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	rc->path->dev->lib->modify_qp(rc->qp, &attr, IBV_QP_STATE);
	for (unsigned int i = 0; i < rc->got; i++)
		return_slot(rc, &rc->wc[i]);
	rc->got = 0;
	if (rc->state >= RC_ANSWERING)
		rc_collect(rc, has_all_slots, return_slot);
}

static void drop_queues(struct rc *rc)
{
	const struct verbs_lib *lib = rc->path->dev->lib;

	if (rc->srx && rc->qp)
		return_slots(rc);
	if (rc->qp)
		lib->destroy_qp(rc->qp);
	if (rc->cq)
		lib->destroy_cq(rc->cq);
	if (rc->channel)
		verbs_channel_close(rc->path->dev, rc->channel, rc->news_fd);
	if (rc->ping_mr)
		lib->dereg_mr(rc->ping_mr);
	free(rc->tx.work);
	free(rc->rx.work);
	free(rc->batch);
	rc->batch = NULL;
	rc->batch_count = 0;
	rc->ping_mr = NULL;
	rc->qp = NULL;
	rc->ex = NULL;
	rc->cq = NULL;
	rc->channel = NULL;
	rc->tx.work = rc->rx.work = NULL;
}

int rc_enable(struct offload *n, struct ep *ep)
{
	struct rc *rc = rc_of(n);
	bool counted;
	int err;

	if (verbs_dev_removed(rc->path->dev))
		return -FI_ENODEV;
	rc->srx = ep->srx ? ep->srx->device_srx : NULL;
	err = rc_up_make_queues(rc, ep->info);

	if (err) {
		drop_queues(rc);
		return err;
	}
	rc->ep = ep;
	ep->offload = &rc->offload;
	rc->message_most = rc->path->message_max;
	rc->one =
		(struct ibv_send_wr){.sg_list = &rc->one_sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	rc->rx.limit = rc->rx.size;
	counted = ep->cntrs[0] || ep->cntrs[2] || ep->cntrs[3];
	rc->unsignaled = rc->tx.size >= SPARSE_MIN && !counted ? SPARSE : 0;
	ep_limit_inject(ep, rc->inline_most);
	return 0;
}

static void rc_close(void *state)
{
	struct rc *rc = state;

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
	.bit = PROVIDER_RC,
	.kind = LINK_OFFLOAD,
	.open = rc_open,
	.close = rc_close,
	.progress = rc_progress,
	.arm = rc_arm,
	.fd = rc_epfd,
	.device = &rc_device,
	.cm = &rc_cm,
};
