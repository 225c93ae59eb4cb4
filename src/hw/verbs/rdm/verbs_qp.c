/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and connects the queue pairs of a link. */
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/random.h>

#define LOG_PROV "verbs"
#include "base/clock.h"
#include "base/log.h"
#include "core/mr_nic.h"
#include "hw/verbs/rdm/verbs.h"

#define ACK_TIMEOUT 16 /* 4.096 us * 2^16 = 0.27 s until a retry */
#define ACK_DIRECT                                                                                 \
	18 /* 1.1 s: read responses to others may fill the wire; packets find peers that are dead */
#define RNR_FOREVER 7
#define RNR_TIMER   12 /* 0.64 ms until a send that found no slot is retried */
#define HOPS        64
#define PSN_MASK    0xffffffu

/* Parameters of one queue pair. */
struct ends {
	struct ibv_qp *qp;
	uint32_t to; /* the peer's queue pair */
	uint8_t timeout;
	uint8_t reads_in, reads_out; /* RDMA reads at a time, as target and as initiator */
	unsigned int access;         /* the peer's, to our memory */
};

static int verbs_qp_refused(const struct verbs_link *l, const char *what, int err)
{
	LOG_PEER(LOG_EP_CTRL, "%s: %s: %s", l->own->path.port.device, what, fi_strerror(err));
	return -err;
}

/* Makes a queue pair; receives use the shared queue (none arrive for RDMA). NULL: refused. */
static struct ibv_qp *verbs_qp_create(struct verbs_link *l, uint32_t sends, uint32_t *inline_max)
{
	struct verbs *v = l->own;
	const struct verbs_lib *lib = v->path.dev->lib;
	struct ibv_qp_init_attr init = {.send_cq = v->cq,
					.recv_cq = v->cq,
					.srq = v->srq,
					.cap = {.max_send_wr = sends,
						.max_send_sge = VERBS_SEGMENTS,
						.max_inline_data = *inline_max},
					.qp_type = IBV_QPT_RC};
	/* No access before ready_to_receive. */
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = v->path.port.port};
	struct ibv_qp *qp = lib->create_qp(v->path.dev->pd, &init);

	if (!qp)
		return NULL;
	*inline_max = init.cap.max_inline_data;
	if (!lib->modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return qp;
	lib->destroy_qp(qp);
	return NULL;
}

static uint32_t verbs_qp_at_most(uint32_t most, uint32_t value)
{
	return value < most ? value : most;
}

int verbs_qp_make(struct verbs_link *l)
{
	struct verbs_direct *d = &l->direct;

	l->inline_max = VERBS_INLINE;
	l->qp = verbs_qp_create(l, VERBS_FLIGHT, &l->inline_max);
	if (!l->qp) {
		l->inline_max = sizeof(struct verbs_head); /* credits are returned inline */
		l->qp = verbs_qp_create(l, VERBS_FLIGHT, &l->inline_max);
	}
	if (!l->qp)
		return verbs_qp_refused(l, "cannot make a queue pair", FI_ENOMEM);
	d->inline_max = VERBS_RDMA_INLINE;
	d->qp = verbs_qp_create(l, VERBS_RDMA_FLIGHT, &d->inline_max);
	if (!d->qp) {
		d->inline_max = 0;
		d->qp = verbs_qp_create(l, VERBS_RDMA_FLIGHT, &d->inline_max);
	}
	d->read_max = verbs_qp_at_most(VERBS_READ_MAX, l->own->path.message_max);
	d->write_max = verbs_qp_at_most(VERBS_WRITE_MAX, l->own->path.message_max);
	if (getrandom(&l->psn, sizeof(l->psn), 0) < 0)
		l->psn = (uint32_t)clock_us();
	l->psn &= PSN_MASK;
	return 0;
}

static uint8_t verbs_qp_reads(int most)
{
	return most < 0 ? 0 : (uint8_t)verbs_qp_at_most(VERBS_READS, (uint32_t)most);
}

struct wire_nic verbs_qp_tell(struct verbs_link *l)
{
	const struct verbs_path *path = &l->own->path;
	struct domain *dom = l->own->opener->dom;
	/* Does the device of this link know the domain's regions? */
	bool keys = mr_nic_open(dom) && ((const struct verbs_path *)dom->nic)->dev == path->dev;
	struct wire_nic ours = {.qpn = l->qp->qp_num,
				.psn = l->psn,
				.number = pool_id(l),
				.window = l->window,
				.lid = path->lid,
				.mtu = (uint8_t)path->mtu,
				.infiniband = path->port.infiniband,
				.flags = (keys ? WIRE_NIC_KEYS : 0) |
					 (l->own->opener->counts ? WIRE_NIC_COUNTS : 0) |
					 (l->own->multi ? WIRE_NIC_RAILS : 0),
				.reads = verbs_qp_reads(path->dev->attr.max_qp_rd_atom),
				.direct_qpn = l->direct.qp ? l->direct.qp->qp_num : 0};

	memcpy(ours.gid, path->port.gid, sizeof(ours.gid));
	return ours;
}

static int ready_to_receive(struct verbs_link *l, const struct wire_nic *theirs,
			    const struct ends *e)
{
	struct verbs_path *path = &l->own->path;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = theirs->mtu < path->mtu ? (enum ibv_mtu)theirs->mtu : path->mtu,
		.dest_qp_num = e->to,
		.rq_psn = theirs->psn & PSN_MASK,
		.max_dest_rd_atomic = e->reads_in,
		.min_rnr_timer = RNR_TIMER,
		.qp_access_flags = e->access,
		.ah_attr = {.is_global = 1,
			    .grh = {.sgid_index = (uint8_t)path->port.gid_index, .hop_limit = HOPS},
			    .dlid = theirs->lid,
			    .port_num = path->port.port}};

	memcpy(attr.ah_attr.grh.dgid.raw, theirs->gid, sizeof(theirs->gid));
	return path->dev->lib->modify_qp(
		e->qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS);
}

static int ready_to_send(struct verbs_link *l, const struct ends *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .sq_psn = l->psn,
				   .timeout = e->timeout,
				   .retry_cnt = VERBS_RETRIES,
				   .rnr_retry = RNR_FOREVER,
				   .max_rd_atomic = e->reads_out};

	return l->own->path.dev->lib->modify_qp(e->qp, &attr,
						IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
							IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
							IBV_QP_MAX_QP_RD_ATOMIC);
}

static bool verbs_qp_plausible(const struct wire_nic *theirs)
{
	return theirs->qpn && theirs->qpn <= PSN_MASK && theirs->window &&
	       theirs->mtu >= IBV_MTU_256 && theirs->mtu <= IBV_MTU_4096 &&
	       theirs->direct_qpn <= PSN_MASK;
}

/* Connects the RDMA queue pairs, if both sides have one and can read. */
static void join_direct(struct verbs_link *l, const struct wire_nic *theirs)
{
	const struct ibv_device_attr *attr = &l->own->path.dev->attr;
	struct ends e = {.qp = l->direct.qp,
			 .to = theirs->direct_qpn,
			 .timeout = l->rails ? verbs_rails_ops->ack_timeout() : ACK_DIRECT,
			 .reads_in = verbs_qp_reads(attr->max_qp_rd_atom),
			 .reads_out = verbs_qp_reads(attr->max_qp_init_rd_atom),
			 .access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};

	if (e.reads_out > theirs->reads)
		e.reads_out = theirs->reads;
	l->link.rdma_usable = e.qp && e.to && e.reads_in && e.reads_out &&
			      !ready_to_receive(l, theirs, &e) && !ready_to_send(l, &e);
	l->link.reaches = theirs->flags & WIRE_NIC_KEYS;
	l->link.counted = theirs->flags & WIRE_NIC_COUNTS;
	if (!l->link.rdma_usable)
		verbs_rdma_end(l, true);
}

int verbs_qp_join(struct verbs_link *l, const struct wire_nic *theirs)
{
	struct ends e = {.qp = l->qp,
			 .to = theirs->qpn,
			 .timeout = l->rails ? verbs_rails_ops->ack_timeout() : ACK_TIMEOUT,
			 .access = l->rails ? IBV_ACCESS_REMOTE_WRITE : 0}; /* verbs_ping */
	int err;

	if (!verbs_qp_plausible(theirs))
		return verbs_qp_refused(l, "the peer's hello names no sound queue pair", FI_EPROTO);
	err = ready_to_receive(l, theirs, &e);
	if (!err)
		err = ready_to_send(l, &e);
	if (err)
		return verbs_qp_refused(l, "cannot connect a queue pair", err);
	join_direct(l, theirs);
	return 0;
}
