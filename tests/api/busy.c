/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_close of an object in use returns -FI_EBUSY and changes nothing; it works once the user is
 * closed. fi_fabric(3), fi_domain(3), fi_cq(3), fi_av(3), fi_endpoint(3).
 */
#include <rdma/fi_collective.h>

#include "obj.h"

#define BUSY(thing) CHECK_EQ(fi_close(&(thing)->fid), -FI_EBUSY)

static void fabric(struct api *a)
{
	struct obj o = {0};
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct fid_eq *eq;

	(void)a;
	obj_domain(&o);
	BUSY(o.fabric);
	CLOSE(o.domain);
	o.domain = NULL;
	OK(fi_eq_open(o.fabric, &attr, &eq, NULL));
	BUSY(o.fabric);
	CLOSE(eq);
	obj_close(&o);
}

/* Each object opened on a domain keeps the domain open. */
static void domain(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *ep, *srx;
	struct fid_stx *stx;
	struct fid_poll *poll;
	struct fi_poll_attr attr = {0};
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	char buf[64];

	(void)a;
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_UNSPEC, 0);
	BUSY(o.domain);
	CLOSE(o.av);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	BUSY(o.domain);
	CLOSE(o.cq);
	cntr = obj_cntr(&o, FI_WAIT_NONE);
	BUSY(o.domain);
	CLOSE(cntr);
	ep = obj_ep(&o);
	BUSY(o.domain);
	CLOSE(ep);
	OK(fi_mr_reg(o.domain, buf, sizeof(buf), FI_SEND | FI_RECV, 0, 1, 0, &mr, NULL));
	BUSY(o.domain);
	CLOSE(mr);
	OK(fi_poll_open(o.domain, &attr, &poll));
	BUSY(o.domain);
	CLOSE(poll);
	if (!api_other()) {
		OK(fi_srx_context(o.domain, o.info->rx_attr, &srx, NULL));
		BUSY(o.domain);
		CLOSE(srx);
		OK(fi_stx_context(o.domain, o.info->tx_attr, &stx, NULL));
		BUSY(o.domain);
		CLOSE(stx);
		OK(fi_scalable_ep(o.domain, o.info, &ep, NULL));
		BUSY(o.domain);
		CLOSE(ep);
	}
	o.cq = NULL;
	o.av = NULL;
	obj_close(&o);
}

static void bound(struct api *a)
{
	struct obj o = {0};
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct fid_cq *rx_cq;
	struct fid_cntr *cntr;
	struct fid_eq *eq;
	struct fid_ep *ep;

	(void)a;
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_UNSPEC, 0);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	rx_cq = obj_cq(&o, FI_WAIT_NONE);
	cntr = obj_cntr(&o, FI_WAIT_NONE);
	OK(fi_eq_open(o.fabric, &attr, &eq, NULL));
	ep = obj_ep(&o);
	OK(fi_ep_bind(ep, &o.av->fid, 0));
	OK(fi_ep_bind(ep, &o.cq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(ep, &rx_cq->fid, FI_RECV));
	OK(fi_ep_bind(ep, &cntr->fid, FI_SEND | FI_RECV));
	if (!api_other())
		OK(fi_ep_bind(ep, &eq->fid, 0));
	for (int enabled = 0; enabled < 2; enabled++) {
		BUSY(o.av);
		BUSY(o.cq);
		BUSY(rx_cq);
		BUSY(cntr);
		if (!api_other())
			BUSY(eq);
		if (!enabled)
			OK(fi_enable(ep));
	}
	CLOSE(ep);
	CLOSE(rx_cq);
	CLOSE(cntr);
	CLOSE(eq);
	obj_close(&o);
}

/* An event queue in use by a vector or a domain; a vector in use by a set. */
static void events(struct api *a)
{
	struct obj o = {0};
	struct fi_av_attr attr = {.type = FI_AV_UNSPEC, .flags = FI_EVENT};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_NONE};
	struct fid_eq *eq;

	(void)a;
	obj_domain(&o);
	OK(fi_eq_open(o.fabric, &eq_attr, &eq, NULL));
	OK(fi_av_open(o.domain, &attr, &o.av, NULL));
	OK(fi_av_bind(o.av, &eq->fid, 0));
	BUSY(eq);
	CLOSE(o.av);
	o.av = NULL;
	OK(fi_domain_bind(o.domain, &eq->fid, FI_REG_MR));
	BUSY(eq);
	CLOSE(o.domain);
	o.domain = NULL;
	CLOSE(eq);
	obj_close(&o);
}

static void av_with_set(struct api *a)
{
	struct obj o = {0};
	struct fi_av_set_attr attr = {
		.start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL, .count = 4};
	struct fid_av_set *set;

	(void)a;
	obj_open(&o);
	OK(fi_av_set(o.av, &attr, &set, NULL));
	CLOSE(o.ep);
	o.ep = NULL;
	BUSY(o.av);
	CLOSE(set);
	obj_close(&o);
}

static void scalable(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *sep, *tx, *rx;

	(void)a;
	o.hints = obj_hints(FI_MSG | FI_NAMED_RX_CTX);
	o.hints->ep_attr->tx_ctx_cnt = o.hints->ep_attr->rx_ctx_cnt = 2;
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_UNSPEC, 1);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	OK(fi_scalable_ep(o.domain, o.info, &sep, NULL));
	OK(fi_scalable_ep_bind(sep, &o.av->fid, 0));
	BUSY(o.av);
	OK(fi_tx_context(sep, 0, NULL, &tx, NULL));
	BUSY(sep);
	OK(fi_rx_context(sep, 1, NULL, &rx, NULL));
	CLOSE(tx);
	BUSY(sep);
	OK(fi_ep_bind(rx, &o.cq->fid, FI_RECV));
	BUSY(o.cq);
	OK(fi_enable(sep));
	OK(fi_enable(rx));
	BUSY(sep);
	BUSY(o.cq);
	CLOSE(rx);
	CLOSE(o.cq);
	o.cq = NULL;
	CLOSE(sep);
	obj_close(&o);
}

static void alias(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *alias, *other;

	(void)a;
	obj_open(&o);
	OK(fi_ep_alias(o.ep, &alias, FI_TRANSMIT));
	OK(fi_ep_alias(o.ep, &other, FI_RECV));
	BUSY(o.ep);
	CLOSE(alias);
	BUSY(o.ep);
	BUSY(o.cq);
	CLOSE(other);
	obj_close(&o);
}

/* Wait sets and poll sets with members, and their members. */
static void sets(struct api *a)
{
	struct obj o = {0};
	struct fi_wait_attr wait_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_SET};
	struct fi_poll_attr poll_attr = {0};
	struct fid_poll *poll;
	struct fid_cq *cq;

	(void)a;
	obj_domain(&o);
	OK(fi_wait_open(o.fabric, &wait_attr, &attr.wait_set));
	OK(fi_cq_open(o.domain, &attr, &cq, NULL));
	BUSY(attr.wait_set);
	CLOSE(cq);
	if (!api_other()) {
		CLOSE(o.domain);
		o.domain = NULL;
		BUSY(o.fabric);
		OK(fi_domain(o.fabric, o.info, &o.domain, NULL));
	}
	CLOSE(attr.wait_set);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	OK(fi_poll_open(o.domain, &poll_attr, &poll));
	OK(fi_poll_add(poll, &o.cq->fid, 0));
	BUSY(o.cq);
	BUSY(poll);
	OK(fi_poll_del(poll, &o.cq->fid, 0));
	CLOSE(poll);
	obj_close(&o);
}

/* Operations in flight keep no object open; closing drops them. */
static void traffic(struct api *a)
{
	struct obj o = {0};
	static char buf[1 << 20], got[1 << 20];
	struct fid_ep *ep;
	fi_addr_t to;

	(void)a;
	obj_open(&o);
	ep = obj_ready_ep(&o, o.cq);
	to = obj_insert_ep(o.av, ep);
	OK(fi_recv(o.ep, got, sizeof(got), NULL, FI_ADDR_UNSPEC, NULL));
	for (int n = 0; n < 10; n++)
		POST(o.cq, fi_send(o.ep, buf, n % 2 ? sizeof(buf) : 8, NULL, to, NULL));
	CLOSE(o.ep);
	o.ep = NULL;
	CLOSE(ep);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"fabric", fabric, 1, {0}},
		{"domain", domain, 1, {0}},
		{"bound", bound, 1, {0}},
		{"events", events, 1, {0}},
		{"av_with_set", av_with_set, 1, {0}},
		{"scalable", scalable, 1, {0}},
		{"alias", alias, 1, {0}},
		{"sets", sets, 1, {0}},
		{"traffic", traffic, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
