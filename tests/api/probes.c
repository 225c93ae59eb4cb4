/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that open or bind objects, with NULL where an object is required, and with unknown flags.
 * Each refuses, or does without; none accesses invalid memory.
 */
#include <rdma/fi_collective.h>

#include "obj.h"

#define NOBODYS (1ULL << 50) /* a flag that none of these calls knows */

/* Round 0: the unknown flag alone; round 1: with a known flag. */
static uint64_t combined(uint64_t known, int round)
{
	return round ? NOBODYS | known : NOBODYS;
}

#define REFUSED_TWICE(call, known)                                                                 \
	for (int round_ = 0; round_ < 2; round_++) {                                               \
		uint64_t flags = combined(known, round_);                                          \
                                                                                                   \
		api_at(__FILE__, __LINE__);                                                        \
		if ((call) >= 0)                                                                   \
			api_fail("accepts a flag that nobody has: " #call);                        \
	}

/* Objects of ours are peers of no provider. fi_peer(3). */
static void no_peers(struct obj *o)
{
	struct fi_cntr_attr cntr_attr = {.flags = FI_PEER};
	struct fi_rx_attr rx_attr = {.op_flags = FI_PEER};
	struct fi_av_attr av_attr = {.flags = FI_PEER};
	struct fi_eq_attr eq_attr = {.flags = FI_PEER};
	struct fid_domain *domain;
	struct fid_cntr *cntr;
	struct fid_eq *eq;
	struct fid_av *av;
	struct fid_ep *ep;

	CHECK_EQ(fi_av_open(o->domain, &av_attr, &av, NULL), -FI_EBADFLAGS);
	CHECK_EQ(fi_cntr_open(o->domain, &cntr_attr, &cntr, NULL), -FI_EINVAL);
	CHECK_EQ(fi_eq_open(o->fabric, &eq_attr, &eq, NULL), -FI_EINVAL);
	CHECK_EQ(fi_srx_context(o->domain, &rx_attr, &ep, NULL), -FI_EINVAL);
	CHECK_EQ(fi_domain2(o->fabric, o->info, &domain, FI_PEER, NULL), -FI_ENOSYS);
	CHECK_EQ(fi_endpoint2(o->domain, o->info, &ep, FI_PEER_TRANSFER, NULL), -FI_ENOSYS);
}

/* Calls that other libraries refuse too. */
static void flags_of_open_calls(struct api *a)
{
	struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP};
	struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC};
	struct fi_cq_attr cq_attr = {.size = 8};
	struct fi_eq_attr eq_attr = {.size = 8};
	struct fid_cntr *cntr;
	struct obj o = {0};
	struct fid_eq *eq;

	(void)a;
	obj_domain(&o);
	REFUSED_TWICE((cq_attr.flags = flags, fi_cq_open(o.domain, &cq_attr, &o.cq, NULL)),
		      FI_AFFINITY);
	cq_attr.flags = FI_PEER;
	FAILS(fi_cq_open(o.domain, &cq_attr, &o.cq, NULL));
	REFUSED_TWICE((av_attr.flags = flags, fi_av_open(o.domain, &av_attr, &o.av, NULL)),
		      FI_EVENT);
	REFUSED_TWICE((eq_attr.flags = flags, fi_eq_open(o.fabric, &eq_attr, &eq, NULL)), FI_WRITE);
	REFUSED_TWICE((cntr_attr.flags = flags, fi_cntr_open(o.domain, &cntr_attr, &cntr, NULL)),
		      0);
	CHECK(o.cq == NULL && o.av == NULL);
	if (!api_other()) /* the others would read the owner's objects from the context */
		no_peers(&o);
	/* The known flag alone is accepted and has no visible effect. */
	cq_attr.flags = FI_AFFINITY;
	OK(fi_cq_open(o.domain, &cq_attr, &o.cq, NULL));
	obj_close(&o);
}

static void flags_of_ep_bind(struct api *a)
{
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fid_cntr *cntr;
	struct obj o = {0};
	struct fid_eq *eq;

	(void)a;
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_UNSPEC, 0);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	o.ep = obj_ep(&o);
	cntr = obj_cntr(&o, FI_WAIT_NONE);
	OK(fi_eq_open(o.fabric, &eq_attr, &eq, NULL));
	REFUSED_TWICE(fi_ep_bind(o.ep, &o.cq->fid, flags), FI_TRANSMIT | FI_RECV);
	REFUSED_TWICE(fi_ep_bind(o.ep, &cntr->fid, flags), FI_SEND);
	if (!api_other()) {
		REFUSED_TWICE(fi_ep_bind(o.ep, &o.av->fid, flags), FI_SEND);
		REFUSED_TWICE(fi_ep_bind(o.ep, &eq->fid, flags), FI_SEND);
	}
	/* The refused calls bound nothing. */
	OK(fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_ep_bind(o.ep, &cntr->fid, FI_SEND | FI_RECV));
	OK(fi_ep_bind(o.ep, &o.av->fid, 0));
	OK(fi_ep_bind(o.ep, &eq->fid, 0));
	OK(fi_enable(o.ep));
	CLOSE(o.ep);
	o.ep = NULL;
	CLOSE(cntr);
	CLOSE(eq);
	obj_close(&o);
}

/* Calls that other libraries accept or crash on. */
static void flags_of_others(struct api *a)
{
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_wait_attr wait_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_poll_attr poll_attr = {0};
	static char memory[64];
	struct obj o = {0};
	struct fid_domain *domain;
	struct fid_fabric *fabric;
	struct fid_poll *poll;
	struct fid_wait *set;
	struct fid_mr *mr;
	struct fid_ep *ep;
	struct fid_eq *eq;

	(void)a;
	if (api_other())
		api_skip("what is refused is ours to say");
	obj_open(&o);
	OK(fi_eq_open(o.fabric, &eq_attr, &eq, NULL));
	REFUSED_TWICE(fi_fabric2(o.info, &fabric, flags, NULL), 0);
	REFUSED_TWICE(fi_domain2(o.fabric, o.info, &domain, flags, NULL), FI_PEER);
	REFUSED_TWICE(fi_endpoint2(o.domain, o.info, &ep, flags, NULL), FI_PEER);
	REFUSED_TWICE((wait_attr.flags = flags, fi_wait_open(o.fabric, &wait_attr, &set)), 0);
	REFUSED_TWICE((poll_attr.flags = flags, fi_poll_open(o.domain, &poll_attr, &poll)), 0);
	REFUSED_TWICE(fi_mr_reg(o.domain, memory, 64, FI_SEND, 0, 1, flags, &mr, NULL),
		      FI_RMA_EVENT);
	REFUSED_TWICE(fi_domain_bind(o.domain, &eq->fid, flags), FI_REG_MR);
	REFUSED_TWICE(fi_av_bind(o.av, &eq->fid, flags), 0);
	OK(fi_mr_reg(o.domain, memory, 64, FI_SEND, 0, 1, 0, &mr, NULL));
	REFUSED_TWICE(fi_mr_bind(mr, &o.ep->fid, flags), 0);
	REFUSED_TWICE(fi_ep_bind(o.ep, &mr->fid, flags), FI_REMOTE_READ);
	CLOSE(mr);
	CLOSE(eq);
	obj_close(&o);
}

/* ---- NULL where an object is required -------------------------------------------------------- */

static void no_room_for_the_object(struct obj *o)
{
	struct fi_poll_attr poll_attr = {0};
	struct fi_wait_attr wait_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP};
	struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC};
	struct fi_av_set_attr set_attr = {.flags = FI_UNIVERSE};
	struct fi_cq_attr cq_attr = {.size = 8};
	struct fi_eq_attr eq_attr = {.size = 8};
	static char memory[64];

	FAILS(fi_fabric(o->info->fabric_attr, NULL, NULL));
	FAILS(fi_fabric2(o->info, NULL, 0, NULL));
	FAILS(fi_domain(o->fabric, o->info, NULL, NULL));
	FAILS(fi_domain2(o->fabric, o->info, NULL, 0, NULL));
	FAILS(fi_passive_ep(o->fabric, o->info, NULL, NULL));
	FAILS(fi_eq_open(o->fabric, &eq_attr, NULL, NULL));
	FAILS(fi_wait_open(o->fabric, &wait_attr, NULL));
	FAILS(fi_av_open(o->domain, &av_attr, NULL, NULL));
	FAILS(fi_av_set(o->av, &set_attr, NULL, NULL));
	FAILS(fi_cq_open(o->domain, &cq_attr, NULL, NULL));
	FAILS(fi_cntr_open(o->domain, &cntr_attr, NULL, NULL));
	FAILS(fi_poll_open(o->domain, &poll_attr, NULL));
	FAILS(fi_endpoint(o->domain, o->info, NULL, NULL));
	FAILS(fi_endpoint2(o->domain, o->info, NULL, 0, NULL));
	FAILS(fi_scalable_ep(o->domain, o->info, NULL, NULL));
	FAILS(fi_stx_context(o->domain, NULL, NULL, NULL));
	FAILS(fi_srx_context(o->domain, NULL, NULL, NULL));
	FAILS(fi_mr_reg(o->domain, memory, 64, FI_SEND, 0, 1, 0, NULL, NULL));
	FAILS(fi_join(o->ep, memory, 0, NULL, NULL));
}

static void no_attributes(struct obj *o)
{
	struct fid_domain *domain;
	struct fid_av_set *av_set;
	struct fid_fabric *fabric;
	struct fid_cntr *cntr;
	struct fid_wait *set;
	struct fid_poll *poll;
	struct fid_pep *pep;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_mr *mr;

	FAILS(fi_fabric(NULL, &fabric, NULL));
	FAILS(fi_fabric2(NULL, &fabric, 0, NULL));
	FAILS(fi_domain(o->fabric, NULL, &domain, NULL));
	FAILS(fi_domain2(o->fabric, NULL, &domain, 0, NULL));
	FAILS(fi_passive_ep(o->fabric, NULL, &pep, NULL));
	FAILS(fi_wait_open(o->fabric, NULL, &set));
	FAILS(fi_av_open(o->domain, NULL, &av, NULL));
	FAILS(fi_av_set(o->av, NULL, &av_set, NULL));
	FAILS(fi_endpoint(o->domain, NULL, &ep, NULL));
	FAILS(fi_endpoint2(o->domain, NULL, &ep, 0, NULL));
	FAILS(fi_scalable_ep(o->domain, NULL, &ep, NULL));
	FAILS(fi_mr_regattr(o->domain, NULL, 0, &mr));
	FAILS(fi_mr_regv(o->domain, NULL, 1, FI_SEND, 0, 1, 0, &mr, NULL));
	FAILS(fi_join(o->ep, NULL, 0, &(struct fid_mc *){NULL}, NULL));
	/* Attributes that may be NULL. */
	OK(fi_eq_open(o->fabric, NULL, &eq, NULL));
	OK(fi_cq_open(o->domain, NULL, &cq, NULL));
	OK(fi_cntr_open(o->domain, NULL, &cntr, NULL));
	OK(fi_poll_open(o->domain, NULL, &poll));
	CLOSE(poll);
	CLOSE(cntr);
	CLOSE(cq);
	CLOSE(eq);
}

static void nothing_to_bind(struct obj *o)
{
	struct fi_rx_attr rx_attr = *o->info->rx_attr;
	static char memory[64];
	struct fid_poll *poll;
	struct fid_ep *srx;
	struct fid_stx *stx;
	struct fid_mr *mr;
	uint64_t base;
	size_t len = 8;

	OK(fi_mr_reg(o->domain, memory, 64, FI_SEND, 0, 1, 0, &mr, NULL));
	OK(fi_poll_open(o->domain, NULL, &poll));
	OK(fi_srx_context(o->domain, &rx_attr, &srx, NULL));
	OK(fi_stx_context(o->domain, NULL, &stx, NULL));
	FAILS(fi_ep_bind(o->ep, NULL, 0));
	FAILS(fi_ep_bind(o->ep, NULL, FI_TRANSMIT));
	FAILS(fi_ep_bind(srx, NULL, 0));
	FAILS(stx->fid.ops->bind(&stx->fid, NULL, 0));
	FAILS(stx->ops->cancel(&stx->fid, NULL)); /* a shared transmit context has no operations */
	FAILS(stx->ops->tx_size_left((struct fid_ep *)stx));
	FAILS(fi_domain_bind(o->domain, NULL, 0));
	FAILS(fi_av_bind(o->av, NULL, 0));
	FAILS(fi_mr_bind(mr, NULL, 0));
	FAILS(fi_poll_add(poll, NULL, 0));
	FAILS(fi_poll_del(poll, NULL, 0));
	FAILS(fi_mr_raw_attr(mr, &base, (uint8_t *)memory, NULL, 0));
	FAILS(fi_mr_raw_attr(mr, &base, NULL, &len, 0));
	FAILS(fi_mr_raw_attr(mr, NULL, (uint8_t *)memory, &len, 0));
	FAILS(fi_mr_map_raw(o->domain, 0, NULL, 8, &base, 0));
	FAILS(fi_mr_map_raw(o->domain, 0, (uint8_t *)memory, 8, NULL, 0));
	CLOSE(stx);
	CLOSE(srx);
	CLOSE(poll);
	CLOSE(mr);
}

static void nothing(struct api *a)
{
	struct obj o = {0};

	(void)a;
	if (api_other())
		api_skip("others touch memory that is not there");
	obj_open(&o);
	no_room_for_the_object(&o);
	no_attributes(&o);
	nothing_to_bind(&o);
	obj_close(&o);
}

static void contexts(struct api *a)
{
	struct fid_ep *sep;
	struct obj o = {0};

	(void)a;
	if (api_other())
		api_skip("others touch memory that is not there");
	obj_domain(&o);
	OK(fi_scalable_ep(o.domain, o.info, &sep, NULL));
	FAILS(fi_scalable_ep_bind(sep, NULL, 0));
	FAILS(fi_tx_context(sep, 0, NULL, NULL, NULL));
	FAILS(fi_rx_context(sep, 0, NULL, NULL, NULL));
	CLOSE(sep);
	obj_close(&o);
}

static void passive(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_MSG)};
	struct fid_pep *pep;

	(void)a;
	if (api_other())
		api_skip("others touch memory that is not there");
	o.hints->ep_attr->type = FI_EP_MSG;
	if (!obj_find(&o, FI_VERSION(1, 17)))
		api_skip("no connected endpoints");
	OK(fi_fabric(o.info->fabric_attr, &o.fabric, NULL));
	OK(fi_passive_ep(o.fabric, o.info, &pep, NULL));
	FAILS(fi_pep_bind(pep, NULL, 0));
	CLOSE(pep);
	obj_close(&o);
}

/* An endpoint without address vector that has the capability to join groups. */
static void join_without_vector(struct api *a)
{
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_av_set_attr set_attr = {.count = 1, .start_addr = 0, .end_addr = 0, .stride = 1};
	struct obj o = {.hints = obj_hints(FI_MSG)}, rdm = {.hints = obj_hints(FI_MSG)};
	struct fid_av_set *set;
	struct fid_mc *mc;
	struct fid_eq *eq;

	(void)a;
	if (api_other())
		api_skip("others touch memory that is not there");
	obj_open(&rdm);
	obj_insert_ep(rdm.av, rdm.ep);
	OK(fi_av_set(rdm.av, &set_attr, &set, NULL));
	o.hints->ep_attr->type = FI_EP_MSG;
	o.hints->addr_format = FI_FORMAT_UNSPEC;
	if (!obj_find(&o, FI_VERSION(1, 17)))
		api_skip("no connected endpoints");
	obj_domain(&o);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	o.ep = obj_ep(&o);
	OK(fi_eq_open(o.fabric, &eq_attr, &eq, NULL));
	OK(fi_ep_bind(o.ep, &eq->fid, 0));
	OK(fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(o.ep));
	FAILS(fi_join_collective(o.ep, 0, set, 0, &mc, NULL));
	CLOSE(o.ep);
	o.ep = NULL;
	CLOSE(eq);
	CLOSE(set);
	obj_close(&o);
	obj_close(&rdm);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"flags_of_open_calls", flags_of_open_calls, 1, {0}},
		{"flags_of_ep_bind", flags_of_ep_bind, 1, {0}},
		{"flags_of_others", flags_of_others, 1, {0}},
		{"nothing", nothing, 1, {0}},
		{"contexts", contexts, 1, {0}},
		{"passive", passive, 1, {0}},
		{"join_without_vector", join_without_vector, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
