/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a link: our half is made when a hello is to be sent or answered (its queue pair takes nothing
 * in), connect joins it to the peer's. Whoever asked hears that the other end is ready by the
 * answer, whoever was asked by the first thing that comes.
 */
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define LOG_PROV "verbs"
#include "base/clock.h"
#include "base/forked.h"
#include "base/log.h"
#include "hw/verbs/verbs.h"
#include "xfer/port.h"

#define ACK_TIMEOUT 14 /* 4.096 us * 2^14: 67 ms until a send is repeated */
#define RETRIES     7
#define RNR_FOREVER 7
#define RNR_TIMER   12 /* 0.64 ms until a send is repeated that found no slot */
#define HOPS        64
#define PSN_MASK    0xffffffu
#define NAP_NS      20000

static const struct link_ops verbs_link_ops;

static int refused(const struct verbs_link *l, const char *what, int err)
{
	LOG_WARN(LOG_EP_CTRL, "%s: %s: %s", l->own->path.port.device, what, fi_strerror(err));
	return -err;
}

static int make_qp(struct verbs_link *l)
{
	struct verbs *v = l->own;
	struct ibv_qp_init_attr init = {.send_cq = v->cq,
					.recv_cq = v->cq,
					.srq = v->srq,
					.cap = {.max_send_wr = VERBS_FLIGHT,
						.max_send_sge = VERBS_SEGMENTS,
						.max_inline_data = VERBS_INLINE},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = v->path.port.port};
	int err;

	l->qp = v->path.dev->lib->create_qp(v->path.dev->pd, &init);
	if (!l->qp) {
		init.cap.max_inline_data = sizeof(struct verbs_head); /* words about room need it */
		l->qp = v->path.dev->lib->create_qp(v->path.dev->pd, &init);
	}
	if (!l->qp)
		return refused(l, "cannot make a queue pair", FI_ENOMEM);
	l->inline_max = init.cap.max_inline_data;
	err = v->path.dev->lib->modify_qp(
		l->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (!err)
		return 0;
	v->path.dev->lib->destroy_qp(l->qp);
	return refused(l, "cannot prepare a queue pair", err);
}

static struct verbs_link *link_new(struct verbs *v)
{
	struct verbs_link *l = pool_get(&v->links);

	if (!l)
		return NULL;
	*l = (struct verbs_link){.link = {.ops = &verbs_link_ops,
					  .eager_max = VERBS_PACKET_MAX,
					  .packet_max = VERBS_PACKET_MAX,
					  .lend_min = SIZE_MAX},
				 .own = v};
	memset(l->slots, 0xff, sizeof(l->slots));
	list_init(&l->in_attend);
	list_init(&l->in_all);
	l->window = verbs_grant(v);
	if (!l->window) {
		pool_put(&v->links, l);
		return NULL;
	}
	return l;
}

static void link_free(struct verbs_link *l)
{
	struct verbs *v = l->own;

	if (v->path.dev->forked == forked_count())
		v->path.dev->lib->destroy_qp(l->qp);
	verbs_sent(l, l->posted);
	verbs_revoke(v, l->window);
	list_remove(&l->in_all);
	list_remove(&l->in_attend);
	pool_put(&v->links, l);
}

static bool same_fabric(const struct verbs *v, const struct wire_nic *theirs)
{
	return theirs->infiniband == v->path.port.infiniband;
}

int verbs_offer(void *state, const struct wire_nic *theirs, struct wire_nic *ours, void **half)
{
	struct verbs *v = state;
	struct verbs_link *l;
	int err = verbs_up(v);

	if (err)
		return err;
	if (theirs && !same_fabric(v, theirs))
		return -FI_EHOSTUNREACH;
	l = link_new(v);
	if (!l)
		return -FI_ENOMEM;
	err = make_qp(l);
	if (err) {
		verbs_revoke(v, l->window);
		pool_put(&v->links, l);
		return err;
	}
	list_push(&v->all, &l->in_all);
	l->heard = !theirs;
	if (getrandom(&l->psn, sizeof(l->psn), 0) < 0)
		l->psn = (uint32_t)clock_us();
	l->psn &= PSN_MASK;
	*ours = (struct wire_nic){.qpn = l->qp->qp_num,
				  .psn = l->psn,
				  .number = pool_id(l),
				  .window = l->window,
				  .lid = v->path.lid,
				  .mtu = (uint8_t)v->path.mtu,
				  .infiniband = v->path.port.infiniband};
	memcpy(ours->gid, v->path.port.gid, sizeof(ours->gid));
	*half = l;
	return 0;
}

void verbs_abandon(void *state, void *half)
{
	(void)state;
	link_free(half);
}

static int ready_to_receive(struct verbs_link *l, const struct wire_nic *theirs)
{
	struct verbs_path *path = &l->own->path;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = theirs->mtu < path->mtu ? (enum ibv_mtu)theirs->mtu : path->mtu,
		.dest_qp_num = theirs->qpn,
		.rq_psn = theirs->psn & PSN_MASK,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = {.is_global = 1,
			    .grh = {.sgid_index = (uint8_t)path->port.gid_index, .hop_limit = HOPS},
			    .dlid = theirs->lid,
			    .port_num = path->port.port}};

	memcpy(attr.ah_attr.grh.dgid.raw, theirs->gid, sizeof(theirs->gid));
	return path->dev->lib->modify_qp(l->qp, &attr,
					 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int ready_to_send(struct verbs_link *l)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .sq_psn = l->psn,
				   .timeout = ACK_TIMEOUT,
				   .retry_cnt = RETRIES,
				   .rnr_retry = RNR_FOREVER};

	return l->own->path.dev->lib->modify_qp(l->qp, &attr,
						IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
							IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
							IBV_QP_MAX_QP_RD_ATOMIC);
}

static bool plausible(const struct wire_nic *theirs)
{
	return theirs->qpn && theirs->qpn <= PSN_MASK && theirs->window &&
	       theirs->mtu >= IBV_MTU_256 && theirs->mtu <= IBV_MTU_4096;
}

int verbs_connect(void *state, const struct link_peer *peer, struct link **link)
{
	const struct wire_nic *theirs = &peer->hello->nic;
	struct verbs_link *l = peer->half;
	int err;

	(void)state;
	if (!plausible(theirs))
		return refused(l, "the peer's hello names no sound queue pair", FI_EPROTO);
	err = ready_to_receive(l, theirs);
	if (!err)
		err = ready_to_send(l);
	if (err)
		return refused(l, "cannot connect a queue pair", err);
	l->id = peer->id;
	l->peer_imm = theirs->number;
	l->promised = theirs->window;
	if (l->heard) {
		l->room = l->promised;
		verbs_say(l, false);
	}
	*link = &l->link;
	return 0;
}

static void verbs_close_link(struct link *link)
{
	link_free((struct verbs_link *)link);
}

static const struct link_ops verbs_link_ops = {
	.send = verbs_send,
	.sendv = verbs_sendv,
	.close = verbs_close_link,
};

/* Is something of it under way that will arrive? */
static bool under_way(const struct verbs_link *l)
{
	return !l->err && l->heard && !l->bye && l->arrived != l->posted;
}

static bool all_arrived(const struct verbs *v)
{
	LIST_EACH (node, &v->all) {
		if (under_way(LIST_ENTRY(node, struct verbs_link, in_all)))
			return false;
	}
	return true;
}

static void drain_some(struct verbs *v)
{
	int n = ibv_poll_cq(v->cq, 1, v->wc);

	if (n <= 0)
		nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
	else
		verbs_last_words(v, &v->wc[0]);
}

void verbs_drain(void *state)
{
	struct verbs *v = state;
	uint64_t until = clock_coarse_ms() + VERBS_LINGER_MS;

	if (!v->up)
		return;
	/* A last send's completion tells that all before it have arrived. */
	LIST_EACH (node, &v->all) {
		struct verbs_link *l = LIST_ENTRY(node, struct verbs_link, in_all);

		if (under_way(l))
			verbs_say(l, true);
	}
	while (!all_arrived(v) && clock_coarse_ms() < until)
		drain_some(v);
}
