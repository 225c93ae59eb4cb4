/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the queue pair for datagrams, and resets it when it breaks. */
#include <errno.h>
#include <rdma/fi_errno.h>

#define LOG_PROV "verbs"
#include "base/log.h"
#include "hw/verbs/ud/ud.h"

static int ud_qp_make_queues(struct ud *u)
{
	const struct verbs_dev *dev = u->path.dev;
	struct ibv_qp_init_attr init = {.qp_context = &u->note,
					.cap = {.max_send_wr = UD_SENDS,
						.max_recv_wr = UD_RECVS,
						.max_send_sge = 1,
						.max_recv_sge = 1},
					.qp_type = IBV_QPT_UD};

	u->recv_cq = dev->lib->create_cq(dev->ctx, UD_RECVS, &u->note, u->channel, 0);
	if (u->recv_cq)
		u->send_cq = dev->lib->create_cq(dev->ctx, UD_SENDS, &u->note, NULL, 0);
	if (!u->send_cq)
		return verbs_failed("a completion queue");
	init.recv_cq = u->recv_cq;
	init.send_cq = u->send_cq;
	u->qp = dev->lib->create_qp(dev->pd, &init);
	return u->qp ? 0 : verbs_failed("a queue pair for datagrams");
}

static int ud_qp_step(struct ud *u, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = {
		.qp_state = state, .port_num = u->path.port.port, .qkey = UD_QKEY};

	errno = u->path.dev->lib->modify_qp(u->qp, &attr, mask | IBV_QP_STATE);
	return errno ? verbs_failed("a queue pair for datagrams ready") : 0;
}

static int get_ready(struct ud *u)
{
	int err = ud_qp_step(u, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	for (uint32_t i = 0; i < UD_RECVS && !err; i++)
		err = -ud_post(u, i);
	if (!err)
		err = ud_qp_step(u, IBV_QPS_RTR, 0);
	return err ? err : ud_qp_step(u, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

int ud_make_pair(struct ud *u)
{
	int err = ud_qp_make_queues(u);

	return err ? err : get_ready(u);
}

static void drain_cq(struct ibv_cq *cq)
{
	struct ibv_wc wc[UD_BATCH];

	while (ibv_poll_cq(cq, UD_BATCH, wc) > 0)
		;
}

int ud_mend(struct ud *u)
{
	int err;

	if (u->dead)
		return -u->dead;
	err = ud_qp_step(u, IBV_QPS_RESET, 0);
	if (!err) {
		/* The device has no slots now. Rounds `sent` up to the start of a group of UD_TELLS sends. */
		drain_cq(u->send_cq);
		drain_cq(u->recv_cq);
		u->at = u->got = 0;
		u->sent = (u->sent + UD_TELLS - 1) / UD_TELLS * UD_TELLS;
		u->over = u->sent;
		err = get_ready(u);
	}
	u->broken = err != 0;
	u->dead = err ? FI_EIO : 0;
	if (err)
		LOG_PEER(LOG_EP_DATA, "the queue pair is broken and cannot be reset: %s",
			 fi_strerror(-err));
	else
		LOG_INFO(LOG_EP_DATA, "the queue pair was broken and is reset");
	return -u->dead;
}

void ud_poll_device(struct ud *u)
{
	struct verbs_dev *dev = u->path.dev;

	verbs_news_read(dev);
	if (verbs_dev_removed(dev) && u->dead != FI_ENODEV) {
		verbs_news_remove(dev, u->epfd);
		u->broken = true;
		u->dead = FI_ENODEV;
	}
	if (__atomic_exchange_n(&u->note.broken, false, __ATOMIC_RELAXED))
		u->broken = true;
}
