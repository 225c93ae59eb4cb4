/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every bit of a flags argument, at every place that takes one: honoured, refused, or without any
 * effect where it has no meaning. fi_endpoint(3), fi_msg(3), fi_tagged(3), fi_rma(3), fi_atomic(3),
 * fi_trigger(3).
 */
#include "obj.h"
#include "lib/rig.h"

#define BIT_OF(n) (UINT64_C(1) << (n))

static const struct rig_opts plain = {.progress = FI_PROGRESS_MANUAL};
static const struct rig_opts triggers = {.caps = FI_TRIGGER, .progress = FI_PROGRESS_MANUAL};

/* ---- Default flags --------------------------------------------------------------------------- */

#define TX_DEFAULTS                                                                                \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |                   \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE | FI_MORE | FI_FENCE)
#define RX_DEFAULTS                                                                                \
	(FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |        \
	 FI_MORE | FI_MULTI_RECV)

static uint64_t flags_of(struct fid_ep *ep, uint64_t side)
{
	uint64_t flags = side;

	OK(fi_control(&ep->fid, FI_GETOPSFLAG, &flags));
	return flags;
}

static int by_attr(struct rig *r, uint64_t side, uint64_t flags, struct fid_ep **ep)
{
	struct fi_info *info = fi_dupinfo(r->o.info);
	int ret;

	if (side == FI_TRANSMIT)
		info->tx_attr->op_flags = flags;
	else
		info->rx_attr->op_flags = flags;
	ret = fi_endpoint(r->o.domain, info, ep, NULL);
	fi_freeinfo(info);
	return ret;
}

static int by_control(struct rig *r, uint64_t side, uint64_t flags, struct fid_ep **ep)
{
	int ret;

	OK(fi_endpoint(r->o.domain, r->o.info, ep, NULL));
	flags |= side;
	ret = fi_control(&(*ep)->fid, FI_SETOPSFLAG, &flags);
	if (ret)
		CLOSE(*ep);
	return ret;
}

static int by_alias(struct rig *r, uint64_t side, uint64_t flags, struct fid_ep **ep)
{
	return fi_ep_alias(r->o.ep, ep, side | flags);
}

static int by_shared(struct rig *r, uint64_t side, uint64_t flags, struct fid_ep **ep)
{
	struct fi_rx_attr attr = *r->o.info->rx_attr;

	attr.op_flags = flags;
	return side == FI_RECV ? fi_srx_context(r->o.domain, &attr, ep, NULL) : -FI_ENOSYS;
}

/* Opens a context of a scalable endpoint; the endpoint stays open for the case's time. */
static int by_context(struct rig *r, uint64_t side, uint64_t flags, struct fid_ep **ep)
{
	static struct fid_ep *sep;
	struct fi_tx_attr tx = *r->o.info->tx_attr;
	struct fi_rx_attr rx = *r->o.info->rx_attr;

	if (!ep) {
		CLOSE(sep);
		sep = NULL;
		return 0;
	}
	if (!sep)
		OK(fi_scalable_ep(r->o.domain, r->o.info, &sep, NULL));
	tx.op_flags = rx.op_flags = flags;
	return side == FI_TRANSMIT ? fi_tx_context(sep, 0, &tx, ep, NULL)
				   : fi_rx_context(sep, 0, &rx, ep, NULL);
}

static void expect_defaults(struct rig *r, uint64_t side, uint64_t honoured)
{
	static int (*const places[])(struct rig *, uint64_t, uint64_t, struct fid_ep **) = {
		by_attr, by_control, by_alias, by_shared, by_context};

	for (size_t p = 0; p < API_COUNT(places); p++)
		for (int n = 0; n < 64; n++) {
			uint64_t flag = BIT_OF(n);
			struct fid_ep *ep;
			int ret;

			/* Both sides are no default flags, and tell a call which one is meant. */
			if ((flag & (FI_TRANSMIT | FI_RECV) &&
			     (places[p] == by_control || places[p] == by_alias)) ||
			    (places[p] == by_shared && side == FI_TRANSMIT))
				continue;
			ret = places[p](r, side, flag, &ep);
			if (!ret != !!(flag & honoured))
				fprintf(stderr, "place %zu, side %#" PRIx64 ", bit %d: %d\n", p,
					side, n, ret);
			CHECK_EQ(!ret, !!(flag & honoured));
			if (ret)
				continue;
			CHECK_EQ(flags_of(ep, side), flag);
			CLOSE(ep);
		}
	by_context(r, side, 0, NULL);
}

static void defaults(struct api *a)
{
	static const uint64_t caps[] = {0, FI_TRIGGER};

	(void)a;
	if (api_other())
		api_skip("takes any flag");
	for (size_t i = 0; i < API_COUNT(caps); i++) {
		struct rig r;

		rig_open(&r, caps[i] ? &triggers : &plain);
		expect_defaults(&r, FI_TRANSMIT, TX_DEFAULTS | caps[i]);
		expect_defaults(&r, FI_RECV, RX_DEFAULTS | caps[i]);
		rig_close(&r);
	}
}

/* Posts `op` by the call without flags. */
static ssize_t post_plain(struct rig *r, struct fid_ep *ep, struct rig_op *op)
{
	size_t len = sizeof(op->local);

	switch (op->kind) {
	case RIG_SEND:
		return fi_send(ep, &op->local, len, NULL, r->self, op->context);
	case RIG_TSEND:
		return fi_tsend(ep, &op->local, len, NULL, r->self, RIG_TAG, op->context);
	case RIG_RECV:
		return fi_recv(ep, &op->local, len, NULL, FI_ADDR_UNSPEC, op->context);
	case RIG_TRECV:
		return fi_trecv(ep, &op->local, len, NULL, FI_ADDR_UNSPEC, RIG_TAG, 0, op->context);
	case RIG_WRITE:
		return fi_write(ep, &op->local, len, NULL, r->self, op->rma.addr, op->rma.key,
				op->context);
	case RIG_READ:
		return fi_read(ep, &op->local, len, NULL, r->self, op->rma.addr, op->rma.key,
			       op->context);
	case RIG_ATOMIC:
		return fi_atomic(ep, &op->local, 1, NULL, r->self, op->rma.addr, op->rma.key,
				 FI_UINT64, FI_SUM, op->context);
	case RIG_FETCH:
		return fi_fetch_atomic(ep, &op->local, 1, NULL, &op->result, NULL, r->self,
				       op->rma.addr, op->rma.key, FI_UINT64, FI_SUM, op->context);
	default:
		return fi_compare_atomic(ep, &op->local, 1, NULL, &op->compare, NULL, &op->result,
					 NULL, r->self, op->rma.addr, op->rma.key, FI_UINT64,
					 FI_CSWAP, op->context);
	}
}

/* Posts `op` by the call with flags. */
static ssize_t post_msg(struct rig *r, struct fid_ep *ep, struct rig_op *op, uint64_t flags)
{
	struct fi_msg msg = rig_msg(r, op);
	struct fi_msg_tagged tagged = rig_tagged(r, op);
	struct fi_msg_rma rma = rig_rma(r, op);
	struct fi_msg_atomic atomic = rig_atomic(r, op);

	switch (op->kind) {
	case RIG_SEND:
		return fi_sendmsg(ep, &msg, flags);
	case RIG_RECV:
		return fi_recvmsg(ep, &msg, flags);
	case RIG_TSEND:
		return fi_tsendmsg(ep, &tagged, flags);
	case RIG_TRECV:
		return fi_trecvmsg(ep, &tagged, flags);
	case RIG_WRITE:
		return fi_writemsg(ep, &rma, flags);
	case RIG_READ:
		return fi_readmsg(ep, &rma, flags);
	case RIG_ATOMIC:
		return fi_atomicmsg(ep, &atomic, flags);
	case RIG_FETCH:
		return fi_fetch_atomicmsg(ep, &atomic, &op->result_ioc, NULL, 1, flags);
	default:
		return fi_compare_atomicmsg(ep, &atomic, &op->compare_ioc, NULL, 1, &op->result_ioc,
					    NULL, 1, flags);
	}
}

/*
 * FI_TRIGGER as the default flag of an alias: calls without flags start at their threshold, calls
 * with flags have their own, calls without a context are refused.
 */
static void trigger_default(struct api *a)
{
	struct fid_ep *sends, *receives;
	struct fid_cntr *cntr;
	uint64_t word = 0;
	struct rig r;

	(void)a;
	rig_open(&r, &triggers);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	OK(fi_ep_alias(r.o.ep, &sends, FI_TRANSMIT | FI_TRIGGER));
	OK(fi_ep_alias(r.o.ep, &receives, FI_RECV | FI_TRIGGER));
	for (enum rig_kind kind = 0; kind < RIG_KINDS; kind++) {
		struct fid_ep *ep = rig_is_receive(kind) ? receives : sends;
		struct fi_triggered_context trigger = {.event_type = FI_TRIGGER_THRESHOLD,
						       .trigger.threshold = {cntr, 1}};
		struct rig_op op;

		OK(fi_cntr_set(cntr, 0));
		rig_op(&r, &op, kind, kind);
		op.context = &trigger;
		OK(post_plain(&r, ep, &op));
		rig_meet(&r, &op);
		rig_progress_calls(&r);
		CHECK(!rig_happened(&op));
		OK(fi_cntr_add(cntr, 1));
		rig_completed(&r, &op);
		rig_verify(&r, &op);
		rig_op(&r, &op, kind, kind);
		POST(r.o.cq, post_msg(&r, ep, &op, 0));
		rig_meet(&r, &op);
		rig_completed(&r, &op);
		rig_verify(&r, &op);
	}
	if (!api_other()) {
		CHECK_EQ(fi_inject(sends, &word, 8, r.self), -FI_EOPNOTSUPP);
		CHECK_EQ(fi_tinject(sends, &word, 8, r.self, 0), -FI_EOPNOTSUPP);
		CHECK_EQ(fi_inject_write(sends, &word, 8, r.self, r.base, r.key), -FI_EOPNOTSUPP);
		CHECK_EQ(
			fi_inject_atomic(sends, &word, 1, r.self, r.base, r.key, FI_UINT64, FI_SUM),
			-FI_EOPNOTSUPP);
	}
	CLOSE(sends);
	CLOSE(receives);
	CLOSE(cntr);
	rig_close(&r);
}

/* ---- Flags of calls -------------------------------------------------------------------------- */

enum outcome {
	DONE,    /* as without the flag, or as the flag says */
	REFUSED, /* by the call */
	FAILS,   /* by the completion */
	ELSE,    /* another operation, which other tests show */
};

static enum outcome outcome(enum rig_kind kind, uint64_t flag)
{
	bool message = kind == RIG_SEND || kind == RIG_TSEND;

	if (flag == FI_TRIGGER)
		return REFUSED; /* the endpoint has no such capability */
	if (rig_is_receive(kind))
		return flag & (FI_PEEK | FI_CLAIM | FI_DISCARD) ? ELSE : DONE;
	if (flag == FI_MULTICAST && message)
		return REFUSED;
	if (flag == FI_TAGGED && kind >= RIG_ATOMIC)
		return ELSE;
	/* The region is no persistent memory. */
	if (flag == FI_COMMIT_COMPLETE && (kind == RIG_WRITE || kind >= RIG_ATOMIC))
		return FAILS;
	return DONE;
}

static void call(struct rig *r, enum rig_kind kind, uint64_t flag)
{
	struct rig_op op;
	ssize_t ret;

	rig_op(r, &op, kind, kind);
	OBJ_UNTIL((ret = post_msg(r, r->o.ep, &op, flag)) != -FI_EAGAIN, rig_progress(r));
	if ((outcome(kind, flag) == REFUSED) != (ret < 0))
		fprintf(stderr, "kind %d with flag %#" PRIx64 "\n", kind, flag);
	if (outcome(kind, flag) == REFUSED) {
		CHECK(ret < 0);
		return;
	}
	OK(ret);
	rig_meet(r, &op);
	if (outcome(kind, flag) == FAILS) {
		CHECK(obj_error(r->o.cq).op_context == op.context);
		return;
	}
	rig_completed(r, &op);
	/* The memory is free, the target may see the operation later. */
	if (flag == FI_INJECT_COMPLETE)
		OBJ_UNTIL(rig_happened(&op), rig_progress(r));
	rig_verify(r, &op);
	/* The opposite call of a send has a completion, too. */
	if (kind == RIG_SEND || kind == RIG_TSEND)
		OBJ_UNTIL(fi_cq_read(r->o.cq, &(struct fi_cq_tagged_entry){0}, 1) == -FI_EAGAIN, );
}

static void calls(struct api *a)
{
	struct rig r;

	(void)a;
	if (api_other())
		api_skip("takes any flag");
	rig_open(&r, &plain);
	for (enum rig_kind kind = 0; kind < RIG_KINDS; kind++)
		for (int n = 0; n < 64; n++) {
			if (outcome(kind, BIT_OF(n)) == ELSE)
				continue;
			call(&r, kind, BIT_OF(n));
			call(&r, kind, 0);
		}
	rig_close(&r);
}

/* ---- Flags of objects ------------------------------------------------------------------------ */

static int open_cq(struct obj *o, uint64_t flags, struct fid **fid)
{
	struct fi_cq_attr attr = {.flags = flags};

	return fi_cq_open(o->domain, &attr, (struct fid_cq **)fid, NULL);
}

static int open_cntr(struct obj *o, uint64_t flags, struct fid **fid)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .flags = flags};

	return fi_cntr_open(o->domain, &attr, (struct fid_cntr **)fid, NULL);
}

static int open_eq(struct obj *o, uint64_t flags, struct fid **fid)
{
	struct fi_eq_attr attr = {.flags = flags};

	return fi_eq_open(o->fabric, &attr, (struct fid_eq **)fid, NULL);
}

static int open_av(struct obj *o, uint64_t flags, struct fid **fid)
{
	struct fi_av_attr attr = {.flags = flags};

	return fi_av_open(o->domain, &attr, (struct fid_av **)fid, NULL);
}

static int open_mr(struct obj *o, uint64_t flags, struct fid **fid)
{
	static char memory[64];
	struct iovec iov = {memory, sizeof(memory)};
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = FI_REMOTE_WRITE, .requested_key = 1};

	return fi_mr_regattr(o->domain, &attr, flags, (struct fid_mr **)fid);
}

/* What an object is opened with is one of its flags, or refused. */
static void objects(struct api *a)
{
	static const struct {
		int (*open)(struct obj *o, uint64_t flags, struct fid **fid);
		uint64_t known, refused;
	} kinds[] = {
		{open_cq, FI_AFFINITY, 0},
		{open_cntr, 0, 0},
		{open_eq, FI_WRITE | FI_AFFINITY, 0},
		{open_av, FI_EVENT | FI_AV_USER_ID | FI_SYMMETRIC, 0},
		/* FI_MR_DMABUF reads the attributes in another way. */
		{open_mr, FI_RMA_EVENT | FI_RMA_PMEM | FI_HMEM_DEVICE_ONLY | FI_HMEM_HOST_ALLOC,
		 FI_MR_DMABUF},
	};
	struct obj o = {0};

	(void)a;
	if (api_other())
		api_skip("takes any flag");
	o.hints = obj_hints(FI_MSG | FI_RMA);
	obj_domain(&o);
	for (size_t i = 0; i < API_COUNT(kinds); i++)
		for (int n = 0; n < 64; n++) {
			struct fid *fid;
			int ret;

			if (BIT_OF(n) & kinds[i].refused)
				continue;
			ret = kinds[i].open(&o, BIT_OF(n), &fid);
			if (!ret != !!(BIT_OF(n) & kinds[i].known))
				fprintf(stderr, "object %zu, bit %d: %d\n", i, n, ret);
			CHECK_EQ(!ret, !!(BIT_OF(n) & kinds[i].known));
			if (!ret)
				OK(fi_close(fid));
		}
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"defaults", defaults, 1, {0}},
		{"trigger_default", trigger_default, 1, {0}},
		{"calls", calls, 1, {0}},
		{"objects", objects, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
