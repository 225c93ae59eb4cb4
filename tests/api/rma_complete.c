/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completions of reads and writes: which operations have one, in which queue, with which fields.
 * fi_rma(3), fi_cq(3).
 */
#include "obj.h"
#include "lib/rma.h"
#include "lib/rma_buf.h"

#define LEN  70000
#define BOTH (FI_MSG | FI_RMA)

static unsigned char memory[LEN], local[LEN];

/* Returns an operation of `len` bytes in any form. */
static struct rma_op plain(struct rma *r, const struct rma_target *t, enum rma_form form,
			   size_t len)
{
	static struct iovec iov;
	static struct fi_rma_iov to;

	iov = (struct iovec){local, len};
	to = (struct fi_rma_iov){t->key.base, len, t->key.key};
	return (struct rma_op){.form = form,
			       .iov = &iov,
			       .count = 1,
			       .to = &to,
			       .to_count = 1,
			       .peer = r->addr[r->a->ranks - 1],
			       .context = &r->o};
}

/* Injected operations have no completion, and count. */
static void injected(struct api *a)
{
	static const size_t lens[] = {0, 8, 64, 4096};
	struct rma_target t;
	struct rma r;

	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	rma_target_open(&r, &t, memory, LEN);
	for (size_t i = 0; a->rank == 0 && i < API_COUNT(lens); i++) {
		struct rma_op op = plain(&r, &t, RMA_INJECT, lens[i]);

		if (lens[i] > r.o.info->tx_attr->inject_size)
			continue;
		for (int n = 0; n < 20; n++)
			RMA_RUN(&r, &op);
	}
	if (a->rank == 0)
		obj_quiet(r.o.cq, 20);
	rma_target_close(&r, &t);
	if (a->rank == 1)
		obj_quiet(r.in, 5);
	rma_close(&r);
}

/* Runs an operation; checks that its counter counts and no completion follows. */
static void unseen(struct rma *r, const struct rma_op *op)
{
	rma_start(r, op);
	r->done[rma_reads(op->form)]++;
	rma_counted(r);
	obj_quiet(r->o.cq, 1);
}

/* FI_SELECTIVE_COMPLETION: only calls with FI_COMPLETION complete. */
static void selective(struct api *a)
{
	static const size_t lens[] = {8, LEN};
	struct rma_target t;
	struct rma r;

	rma_open(&r, a,
		 &(struct rma_opts){.mr_mode = RMA_PROVIDED, .cq_bind = FI_SELECTIVE_COMPLETION});
	rma_target_open(&r, &t, memory, LEN);
	for (size_t i = 0; a->rank == 0 && i < API_COUNT(lens); i++)
		for (enum rma_form form = 0; form < RMA_FORMS; form++) {
			struct rma_op op = plain(&r, &t, form, lens[i]);

			if (form == RMA_DATA || rma_injects(form))
				continue;
			unseen(&r, &op);
			op.flags = FI_COMPLETION;
			if (form == RMA_WRITEMSG || form == RMA_READMSG)
				RMA_RUN(&r, &op);
		}
	rma_target_close(&r, &t);
	rma_close(&r);
}

/*
 * With FI_COMPLETION as default flag calls without flags complete; flags of ...msg calls decide
 * alone.
 */
static void asked_by_default(struct api *a)
{
	uint64_t flags = FI_TRANSMIT | FI_COMPLETION;
	struct rma_target t;
	struct rma r;

	if (api_other())
		api_skip("flags of the endpoint cannot be set");
	rma_open(&r, a,
		 &(struct rma_opts){.mr_mode = RMA_PROVIDED, .cq_bind = FI_SELECTIVE_COMPLETION});
	OK(fi_control(&r.o.ep->fid, FI_SETOPSFLAG, &flags));
	rma_target_open(&r, &t, memory, LEN);
	for (enum rma_form form = 0; a->rank == 0 && form < RMA_FORMS; form++) {
		struct rma_op op = plain(&r, &t, form, 60);

		if (form == RMA_WRITEMSG || form == RMA_READMSG)
			unseen(&r, &op);
		else if (form != RMA_DATA && form != RMA_INJECTDATA)
			RMA_RUN(&r, &op);
	}
	rma_target_close(&r, &t);
	rma_close(&r);
}

/* An alias with default flags of its own uses the endpoint's queue and counters. */
static void alias(struct api *a)
{
	uint64_t flags = FI_TRANSMIT | FI_COMPLETION | FI_DELIVERY_COMPLETE;
	struct rma_target t;
	struct fid_ep *both[2];
	struct rma r;

	if (api_other())
		api_skip("no aliases");
	rma_open(&r, a,
		 &(struct rma_opts){.mr_mode = RMA_PROVIDED, .cq_bind = FI_SELECTIVE_COMPLETION});
	both[0] = r.o.ep;
	OK(fi_ep_alias(r.o.ep, &both[1], flags));
	rma_target_open(&r, &t, memory, LEN);
	for (int n = 0; a->rank == 0 && n < 12; n++) {
		struct rma_op op = plain(&r, &t, n / 2 % 2 ? RMA_READ : RMA_WRITE, n / 4 ? LEN : 8);

		r.o.ep = both[n % 2];
		if (n % 2)
			RMA_RUN(&r, &op);
		else
			unseen(&r, &op);
	}
	r.o.ep = both[0];
	CLOSE(both[1]);
	rma_target_close(&r, &t);
	rma_close(&r);
}

/* Opens another endpoint, whose operations complete in a queue of this format. */
static void use_queues(struct rma *r, enum fi_cq_format format, bool receives)
{
	struct fi_cq_attr attr = {.format = format};

	CLOSE(r->o.ep);
	CLOSE(r->o.cq);
	OK(fi_cq_open(r->o.domain, &attr, &r->o.cq, NULL));
	r->o.ep = obj_ep(&r->o);
	OK(fi_ep_bind(r->o.ep, &r->o.av->fid, 0));
	OK(fi_ep_bind(r->o.ep, &r->o.cq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(r->o.ep, &r->reads->fid, FI_READ));
	OK(fi_ep_bind(r->o.ep, &r->writes->fid, FI_WRITE));
	if (receives)
		OK(fi_ep_bind(r->o.ep, &r->in->fid, FI_RECV));
	rma_enable(r);
}

static void formats(struct api *a)
{
	for (enum fi_cq_format f = FI_CQ_FORMAT_CONTEXT; f <= FI_CQ_FORMAT_TAGGED; f++) {
		struct rma_target t;
		struct rma r;

		rma_prepare(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
		use_queues(&r, f, true);
		rma_target_open(&r, &t, memory, LEN);
		for (int n = 0; a->rank == 0 && n < 4; n++) {
			enum rma_form form = n % 2 ? RMA_READ : RMA_WRITE;
			struct rma_op op = plain(&r, &t, form, n / 2 ? LEN : 8);
			struct fi_cq_tagged_entry e = {0};
			ssize_t ret;

			rma_start(&r, &op);
			OBJ_UNTIL((ret = fi_cq_read(r.o.cq, &e, 1)) != -FI_EAGAIN, );
			CHECK_EQ(ret, 1);
			CHECK(e.op_context == op.context);
			if (f != FI_CQ_FORMAT_CONTEXT)
				CHECK_EQ(e.flags & RMA_KINDS, rma_kind(form));
		}
		rma_target_close(&r, &t);
		rma_close(&r);
	}
}

/* Remote CQ data: every form and size, in the order of writes, also for failed operations. */
static void reported(struct api *a)
{
	static const enum rma_form forms[] = {RMA_DATA, RMA_INJECTDATA, RMA_WRITEMSG};
	static const size_t lens[] = {0, 8, 4096, LEN};
	size_t all = API_COUNT(forms) * API_COUNT(lens);
	struct rma_target t;
	struct rma r;

	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	rma_target_open(&r, &t, memory, LEN);
	for (size_t n = 0, sent = 0; n < 5 * all; n++) {
		size_t len = lens[n % API_COUNT(lens)];
		struct rma_op op = plain(&r, &t, forms[n / API_COUNT(lens) % 3], len);

		if (rma_injects(op.form) && len > r.o.info->tx_attr->inject_size)
			continue;
		op.flags = FI_REMOTE_CQ_DATA;
		op.data = RMA_CQ_DATA ^ sent++;
		if (pair_bare())
			op.data &= UINT32_MAX;
		if (pair_bare() && a->rank)
			OK(fi_recv(r.o.ep, NULL, 0, NULL, 0, NULL));
		if (a->rank == 0)
			RMA_RUN(&r, &op);
		if (a->rank == a->ranks - 1)
			RMA_NOTIFIED(&r, r.in, op.data, len);
	}
	rma_target_close(&r, &t);
	obj_quiet(r.in, 5);
	rma_close(&r);
}

/* Many operations in flight: each completes once, and the counters agree. */
static void flood(struct api *a)
{
	enum { MANY = 20000 };
	static char contexts[MANY];
	/* Emulated devices switch slowly between reads and writes. */
	size_t done = 0, many = strcmp(api_provider(), "verbs") ? MANY : MANY / 10;
	struct rma_target t;
	struct rma r;

	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	rma_target_open(&r, &t, memory, LEN);
	for (size_t n = 0; a->rank == 0 && (n < many || done < many);) {
		struct rma_op op = plain(&r, &t, n % 3 ? RMA_WRITE : RMA_READ, n % 100);
		struct fi_cq_tagged_entry e;

		op.context = &contexts[n];
		if (n < many && rma_post(r.o.ep, &op) == 0) {
			r.done[rma_reads(op.form)]++;
			n++;
			continue;
		}
		if (fi_cq_read(r.o.cq, &e, 1) != 1)
			continue;
		CHECK_EQ((*(char *)e.op_context)++, 0);
		done++;
	}
	rma_counted(&r);
	rma_target_close(&r, &t);
	rma_close(&r);
}

static void all_sizes(struct rma *r, const struct rma_target *t)
{
	static const size_t lens[] = {0, 8, 4096, LEN};

	for (size_t i = 0; r->a->rank == 0 && i < API_COUNT(lens); i++)
		for (enum rma_form form = 0; form < RMA_FORMS; form++) {
			struct rma_op op = plain(r, t, form, lens[i]);

			if (form == RMA_DATA || form == RMA_INJECTDATA)
				continue;
			if (!rma_injects(form) || lens[i] <= r->o.info->tx_attr->inject_size)
				RMA_RUN(r, &op);
		}
}

/* Endpoints with counters and without queues. */
static void counters_alone(struct api *a)
{
	struct rma_target t;
	struct rma r;

	if (api_other())
		api_skip("the manual asks for queues");
	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED, .no_cq = true});
	rma_target_open(&r, &t, memory, LEN);
	all_sizes(&r, &t);
	rma_target_close(&r, &t);
	rma_close(&r);
}

/* An endpoint for one-sided operations alone needs no queue for receives. */
static void no_messages(struct api *a)
{
	struct rma_target t;
	struct rma r;

	if (api_other())
		api_skip("a queue for receives is demanded");
	rma_prepare(&r, a, &(struct rma_opts){.caps = FI_RMA, .mr_mode = RMA_PROVIDED});
	CHECK_EQ(r.o.info->caps & (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV), 0);
	use_queues(&r, FI_CQ_FORMAT_TAGGED, false);
	rma_target_open(&r, &t, memory, LEN);
	all_sizes(&r, &t);
	rma_target_close(&r, &t);
	rma_close(&r);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"injected", injected, 2, {0}},
		{"selective", selective, 2, {0}},
		{"asked_by_default", asked_by_default, 2, {0}},
		{"alias", alias, 2, {0}},
		{"formats", formats, 2, {0}},
		{"told", reported, 2, {0}},
		{"told_self", reported, 1, {0}},
		{"flood", flood, 2, {0}},
		{"counters_alone", counters_alone, 2, {0}},
		{"no_messages", no_messages, 2, {0}},
		{"selective_no_cma", selective, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"told_no_cma", reported, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
