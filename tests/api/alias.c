/* SPDX-License-Identifier: BSD-2-Clause */
/* Aliases of endpoints: default flags of their own, set with fi_control. fi_endpoint(3). */
#include "obj.h"

/* Opens an endpoint whose sends and receives complete only with FI_COMPLETION. */
static void open_selective(struct obj *o)
{
	o->hints = obj_hints(FI_MSG | FI_TAGGED | FI_MULTI_RECV);
	obj_domain(o);
	o->info->tx_attr->op_flags = 0;
	o->av = obj_av(o, FI_AV_UNSPEC, 0);
	o->cq = obj_cq(o, FI_WAIT_NONE);
	o->ep = obj_ep(o);
	OK(fi_ep_bind(o->ep, &o->av->fid, 0));
	OK(fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION));
	OK(fi_ep_bind(o->ep, &o->cq->fid, FI_RECV | FI_SELECTIVE_COMPLETION));
}

static struct fid_ep *alias_of(struct fid_ep *ep, uint64_t flags)
{
	struct fid_ep *alias = NULL;
	int ret = fi_ep_alias(ep, &alias, flags);

	if (api_other() && ret)
		api_skip("no aliases");
	OK(ret);
	CHECK(alias && alias != ep);
	CHECK_EQ(alias->fid.fclass, FI_CLASS_EP);
	return alias;
}

static uint64_t flags_of(struct fid_ep *ep, uint64_t side)
{
	uint64_t flags = side;

	OK(fi_control(&ep->fid, FI_GETOPSFLAG, &flags));
	return flags & ~(FI_TRANSMIT | FI_RECV);
}

static void set_flags(struct fid_ep *ep, uint64_t flags)
{
	OK(fi_control(&ep->fid, FI_SETOPSFLAG, &flags));
}

/* Sends a message to itself through `tx` and `rx`. Checks which of the two calls complete. */
static void expect_pair(struct obj *o, struct fid_ep *tx, struct fid_ep *rx, bool sent,
			bool received)
{
	fi_addr_t self = obj_insert_ep(o->av, o->ep);
	int word = 3, got = 0, completions = sent + received;

	OK(fi_recv(rx, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
	POST(o->cq, fi_send(tx, &word, sizeof(word), NULL, self, &word));
	OBJ_UNTIL(got == 3, fi_cq_read(o->cq, NULL, 0));
	while (completions-- > 0) {
		struct fi_cq_tagged_entry e = obj_next(o->cq, NULL);

		CHECK(e.op_context == &word ? sent : received);
		*(e.op_context == &word ? &sent : &received) = false;
	}
	obj_quiet(o->cq, 20);
	OK(fi_av_remove(o->av, &self, 1, 0));
}

static void transmit_flags(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *alias;

	(void)a;
	open_selective(&o);
	OK(fi_enable(o.ep));
	alias = alias_of(o.ep, FI_TRANSMIT | FI_COMPLETION);
	expect_pair(&o, o.ep, o.ep, false, false);
	expect_pair(&o, alias, o.ep, true, false);
	expect_pair(&o, o.ep, alias, false, false);
	CHECK_EQ(flags_of(alias, FI_TRANSMIT) & FI_COMPLETION, FI_COMPLETION);
	CHECK_EQ(flags_of(o.ep, FI_TRANSMIT) & FI_COMPLETION, 0);
	CLOSE(alias);
	expect_pair(&o, o.ep, o.ep, false, false);
	obj_close(&o);
}

static void receive_flags(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *alias;

	(void)a;
	open_selective(&o);
	OK(fi_enable(o.ep));
	alias = alias_of(o.ep, FI_RECV | FI_COMPLETION);
	expect_pair(&o, o.ep, alias, false, true);
	expect_pair(&o, alias, alias, false, true);
	expect_pair(&o, o.ep, o.ep, false, false);
	CLOSE(alias);
	obj_close(&o);
}

/* An alias opened before its endpoint is enabled works afterwards, and keeps its flags. */
static void before_enable(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *alias;
	int word = 1;

	(void)a;
	open_selective(&o);
	alias = alias_of(o.ep, FI_TRANSMIT | FI_COMPLETION);
	FAILS(fi_send(alias, &word, sizeof(word), NULL, 0, NULL));
	OK(fi_enable(o.ep));
	expect_pair(&o, alias, o.ep, true, false);
	expect_pair(&o, o.ep, o.ep, false, false);
	CLOSE(alias);
	obj_close(&o);
}

/* fi_control on an alias changes the alias alone; on the endpoint, the endpoint alone. */
static void own_flags(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *alias, *other;

	(void)a;
	open_selective(&o);
	OK(fi_enable(o.ep));
	alias = alias_of(o.ep, FI_TRANSMIT | FI_COMPLETION);
	other = alias_of(o.ep, FI_TRANSMIT);
	set_flags(alias, FI_TRANSMIT);
	expect_pair(&o, alias, o.ep, false, false);
	set_flags(o.ep, FI_TRANSMIT | FI_COMPLETION);
	expect_pair(&o, o.ep, o.ep, true, false);
	expect_pair(&o, alias, o.ep, false, false);
	expect_pair(&o, other, o.ep, false, false);
	set_flags(other, FI_TRANSMIT | FI_COMPLETION);
	set_flags(other, FI_RECV | FI_COMPLETION);
	expect_pair(&o, other, other, true, true);
	expect_pair(&o, alias, alias, false, false);
	CLOSE(alias);
	CLOSE(other);
	obj_close(&o);
}

/* A buffer posted through an alias with FI_MULTI_RECV as default is a multi-receive buffer. */
static void multi_recv(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *alias;
	size_t min = sizeof(int);
	fi_addr_t self;
	int words[4] = {0};

	(void)a;
	open_selective(&o);
	OK(fi_setopt(&o.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	OK(fi_enable(o.ep));
	self = obj_insert_ep(o.av, o.ep);
	alias = alias_of(o.ep, FI_RECV | FI_MULTI_RECV | FI_COMPLETION);
	OK(fi_recv(alias, words, sizeof(words), NULL, FI_ADDR_UNSPEC, words));
	for (int n = 0; n < 4; n++) {
		int word = n + 10;
		struct fi_cq_tagged_entry e;

		POST(o.cq, fi_inject(o.ep, &word, sizeof(word), self));
		e = obj_done(o.cq, words);
		CHECK(memcmp(e.buf, &word, sizeof(word)) == 0);
		CHECK_EQ(!!(e.flags & FI_MULTI_RECV), n == 3);
	}
	CLOSE(alias);
	obj_close(&o);
}

/* Receives posted through one of endpoint and alias can be cancelled through the other. */
static void cancel(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *alias;
	struct fi_cq_err_entry err;
	int got;

	(void)a;
	open_selective(&o);
	OK(fi_enable(o.ep));
	alias = alias_of(o.ep, FI_RECV | FI_COMPLETION);
	OK(fi_recv(alias, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
	OK(fi_cancel(&o.ep->fid, &got));
	err = obj_error(o.cq);
	CHECK_EQ(err.err, FI_ECANCELED);
	CHECK(err.op_context == &got);
	CLOSE(alias);
	obj_close(&o);
}

static void refusals(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *alias = NULL;
	uint64_t flags;

	(void)a;
	obj_open(&o);
	if (!api_other()) {
		/* The flags must name exactly one direction. */
		CHECK_EQ(fi_ep_alias(o.ep, &alias, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
		CHECK_EQ(fi_ep_alias(o.ep, &alias, FI_COMPLETION), -FI_EINVAL);
		CHECK(alias == NULL);
		flags = FI_TRANSMIT | FI_RECV;
		CHECK_EQ(fi_control(&o.ep->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);
		flags = FI_COMPLETION;
		CHECK_EQ(fi_control(&o.ep->fid, FI_SETOPSFLAG, &flags), -FI_EINVAL);
		flags = FI_COMPLETION | FI_TRANSMIT | FI_RECV;
		CHECK_EQ(fi_control(&o.ep->fid, FI_SETOPSFLAG, &flags), -FI_EINVAL);
		flags = 0;
		CHECK_EQ(fi_control(&o.ep->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);
	}
	alias = alias_of(o.ep, FI_TRANSMIT);
	CHECK_EQ(fi_close(&o.ep->fid), -FI_EBUSY);
	CLOSE(alias);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"transmit_flags", transmit_flags, 1, {0}},
		{"receive_flags", receive_flags, 1, {0}},
		{"before_enable", before_enable, 1, {0}},
		{"own_flags", own_flags, 1, {0}},
		{"multi_recv", multi_recv, 1, {0}},
		{"cancel", cancel, 1, {0}},
		{"refusals", refusals, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
