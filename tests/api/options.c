/* SPDX-License-Identifier: BSD-2-Clause */
/* Options and default flags of endpoints, and what binding and enabling refuse. fi_endpoint(3). */
#include "obj.h"

static uint64_t get_flags(struct fid_ep *ep, uint64_t side)
{
	uint64_t flags = side;

	OK(fi_control(&ep->fid, FI_GETOPSFLAG, &flags));
	return flags;
}

/* Default flags begin as the attributes had them; setting one side leaves the other alone. */
static void op_flags(struct api *a)
{
	struct obj o = {0};
	uint64_t flags;

	(void)a;
	obj_domain(&o);
	o.info->tx_attr->op_flags = FI_INJECT_COMPLETE;
	o.info->rx_attr->op_flags = 0;
	obj_open(&o);
	CHECK_EQ(get_flags(o.ep, FI_TRANSMIT) & FI_INJECT_COMPLETE, FI_INJECT_COMPLETE);
	CHECK_EQ(get_flags(o.ep, FI_RECV) & (FI_INJECT_COMPLETE | FI_COMPLETION), 0);
	flags = FI_TRANSMIT | FI_TRANSMIT_COMPLETE;
	OK(fi_control(&o.ep->fid, FI_SETOPSFLAG, &flags));
	flags = FI_RECV | FI_COMPLETION;
	OK(fi_control(&o.ep->fid, FI_SETOPSFLAG, &flags));
	CHECK_EQ(get_flags(o.ep, FI_TRANSMIT) & (FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE),
		 FI_TRANSMIT_COMPLETE);
	CHECK_EQ(get_flags(o.ep, FI_RECV) & FI_COMPLETION, FI_COMPLETION);
	obj_close(&o);
}

/* Before it is enabled too. */
static void op_flags_early(struct api *a)
{
	struct obj o = {0};
	uint64_t flags = FI_TRANSMIT | FI_COMPLETION;
	int word = 4, got = 0;
	fi_addr_t self;

	(void)a;
	obj_domain(&o);
	o.info->tx_attr->op_flags = o.info->rx_attr->op_flags = 0;
	o.av = obj_av(&o, FI_AV_UNSPEC, 0);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	o.ep = obj_ep(&o);
	OK(fi_ep_bind(o.ep, &o.av->fid, 0));
	OK(fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION));
	OK(fi_ep_bind(o.ep, &o.cq->fid, FI_RECV | FI_SELECTIVE_COMPLETION));
	OK(fi_control(&o.ep->fid, FI_SETOPSFLAG, &flags));
	OK(fi_enable(o.ep));
	CHECK_EQ(get_flags(o.ep, FI_TRANSMIT) & FI_COMPLETION, FI_COMPLETION);
	self = obj_insert_ep(o.av, o.ep);
	OK(fi_recv(o.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, NULL));
	OK(fi_send(o.ep, &word, sizeof(word), NULL, self, &word));
	obj_done(o.cq, &word);
	OBJ_UNTIL(got == 4, fi_cq_read(o.cq, NULL, 0));
	obj_quiet(o.cq, 10);
	obj_close(&o);
}

/* FI_INJECT as a default: the buffer is the application's again at once. */
static void inject_default(struct api *a)
{
	struct obj o = {0};
	uint64_t flags = FI_TRANSMIT | FI_INJECT;
	int got[50];
	fi_addr_t self;

	(void)a;
	obj_open(&o);
	self = obj_insert_ep(o.av, o.ep);
	OK(fi_control(&o.ep->fid, FI_SETOPSFLAG, &flags));
	for (int n = 0; n < 50; n++) {
		int word = n;

		POST(o.cq, fi_send(o.ep, &word, sizeof(word), NULL, self, NULL));
		word = -1;
	}
	for (int n = 0; n < 50; n++)
		OK(fi_recv(o.ep, &got[n], sizeof(int), NULL, FI_ADDR_UNSPEC, &got[n]));
	for (int n = 0; n < 100; n++)
		obj_next(o.cq, NULL);
	for (int n = 0; n < 50; n++)
		CHECK_EQ(got[n], n);
	obj_close(&o);
}

static void options(struct api *a)
{
	struct obj o = {0};
	size_t value = 100, len = sizeof(value);
	char small = 0;

	(void)a;
	o.hints = obj_hints(FI_MSG | FI_MULTI_RECV);
	obj_open(&o);
	OK(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, len));
	value = 0;
	OK(fi_getopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len));
	CHECK_EQ(value, 100);
	CHECK_EQ(len, sizeof(size_t));
	len = 1;
	if (!api_other())
		CHECK_EQ(
			fi_getopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &small, &len),
			-FI_ETOOSMALL);
	value = 3;
	len = sizeof(value);
	CHECK_EQ(fi_getopt(&o.ep->fid, FI_OPT_ENDPOINT, 999, &value, &len), -FI_ENOPROTOOPT);
	CHECK_EQ(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, 999, &value, len), -FI_ENOPROTOOPT);
	CHECK_EQ(fi_getopt(&o.ep->fid, 7, FI_OPT_MIN_MULTI_RECV, &value, &len), -FI_ENOPROTOOPT);
	CHECK_EQ(fi_setopt(&o.ep->fid, 7, FI_OPT_MIN_MULTI_RECV, &value, len), -FI_ENOPROTOOPT);
	CHECK_EQ(value, 3);
	/* Read only. */
	FAILS(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, len));
	obj_close(&o);
}

static void sizes_left(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *ep;

	(void)a;
	obj_open(&o);
	CHECK(fi_tx_size_left(o.ep) > 0);
	CHECK(fi_rx_size_left(o.ep) > 0);
	ep = obj_ep(&o);
	CHECK_EQ(fi_tx_size_left(ep), -FI_EOPBADSTATE);
	CHECK_EQ(fi_rx_size_left(ep), -FI_EOPBADSTATE);
	CLOSE(ep);
	obj_close(&o);
}

static void dscp(struct api *a)
{
	(void)a;
	for (unsigned int value = 0; value < 64; value++)
		CHECK_EQ(fi_tc_dscp_get(fi_tc_dscp_set((uint8_t)value)), value);
	CHECK_EQ(fi_tc_dscp_get(FI_TC_BULK_DATA), 0);
}

/* What is missing is named: a vector, or a queue for either direction. */
static void enable_refused(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *ep;

	(void)a;
	obj_open(&o);
	ep = obj_ep(&o);
	OK(fi_ep_bind(ep, &o.cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK_EQ(fi_enable(ep), -FI_ENOAV);
	OK(fi_ep_bind(ep, &o.av->fid, 0));
	OK(fi_enable(ep));
	CLOSE(ep);

	ep = obj_ep(&o);
	OK(fi_ep_bind(ep, &o.av->fid, 0));
	CHECK_EQ(fi_enable(ep), -FI_ENOCQ);
	OK(fi_ep_bind(ep, &o.cq->fid, FI_TRANSMIT));
	CHECK_EQ(fi_enable(ep), -FI_ENOCQ);
	OK(fi_ep_bind(ep, &o.cq->fid, FI_RECV));
	OK(fi_enable(ep));
	CLOSE(ep);
	obj_close(&o);
}

/* One direction alone needs a queue for that one only. */
static void one_direction(struct api *a)
{
	struct obj o = {0};
	int word = 1;

	(void)a;
	o.hints = obj_hints(FI_MSG | FI_SEND);
	obj_domain(&o);
	CHECK_EQ(o.info->caps & FI_RECV, 0);
	o.av = obj_av(&o, FI_AV_UNSPEC, 0);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	o.ep = obj_ep(&o);
	OK(fi_ep_bind(o.ep, &o.av->fid, 0));
	OK(fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT));
	OK(fi_enable(o.ep));
	if (!api_other())
		FAILS(fi_recv(o.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, NULL));
	obj_close(&o);
}

/* Nothing works before enable, nothing is bound after it. */
static void order_of_calls(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *ep;
	int word = 1;

	(void)a;
	obj_open(&o);
	ep = obj_ep(&o);
	if (!api_other()) {
		CHECK_EQ(fi_send(ep, &word, sizeof(word), NULL, 0, NULL), -FI_EOPBADSTATE);
		CHECK_EQ(fi_recv(ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, NULL),
			 -FI_EOPBADSTATE);
		CHECK_EQ(fi_tinject(ep, &word, sizeof(word), 0, 0), -FI_EOPBADSTATE);
		FAILS(fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT));
		FAILS(fi_ep_bind(o.ep, &o.av->fid, 0));
	}
	CLOSE(ep);
	obj_close(&o);
}

static void bind_refused(struct api *a)
{
	struct obj o = {0}, p = {0};
	struct fid_cntr *cntr;
	struct fid_ep *ep;

	(void)a;
	obj_open(&o);
	obj_open(&p);
	cntr = obj_cntr(&o, FI_WAIT_NONE);
	ep = obj_ep(&o);
	FAILS(fi_ep_bind(ep, &o.domain->fid, 0));
	OK(fi_ep_bind(ep, &o.av->fid, 0));
	OK(fi_ep_bind(ep, &o.cq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(ep, &cntr->fid, FI_SEND));
	CHECK_EQ(fi_ep_bind(ep, &o.cq->fid, FI_RECV | FI_TAGGED), -FI_EBADFLAGS);
	if (!api_other()) {
		/* A single vector; a single queue or counter for a type of operation. */
		CHECK_EQ(fi_ep_bind(ep, &o.av->fid, 0), -FI_EINVAL);
		CHECK_EQ(fi_ep_bind(ep, &o.cq->fid, FI_TRANSMIT), -FI_EINVAL);
		CHECK_EQ(fi_ep_bind(ep, &cntr->fid, FI_SEND | FI_RECV), -FI_EINVAL);
		CHECK_EQ(fi_ep_bind(ep, &o.cq->fid, FI_SELECTIVE_COMPLETION), -FI_EINVAL);
		CHECK_EQ(fi_ep_bind(ep, &cntr->fid, FI_TAGGED), -FI_EBADFLAGS);
		/* A resource of another domain. */
		CHECK_EQ(fi_ep_bind(ep, &p.cq->fid, FI_RECV), -FI_EDOMAIN);
	}
	CLOSE(ep);
	CLOSE(cntr);
	obj_close(&p);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"op_flags", op_flags, 1, {0}},
		{"op_flags_early", op_flags_early, 1, {0}},
		{"inject_default", inject_default, 1, {0}},
		{"options", options, 1, {0}},
		{"sizes_left", sizes_left, 1, {0}},
		{"dscp", dscp, 1, {0}},
		{"enable_refused", enable_refused, 1, {0}},
		{"one_direction", one_direction, 1, {0}},
		{"order_of_calls", order_of_calls, 1, {0}},
		{"bind_refused", bind_refused, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
