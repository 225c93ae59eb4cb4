/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of remote operations, on an endpoint or a region. fi_endpoint(3), fi_mr(3), fi_cntr(3).
 */
#include "obj.h"
#include "lib/rma.h"
#include "lib/rma_buf.h"

#define LEN 70000

static unsigned char memory[LEN], local[LEN];

/* Endpoints that count remote operations. */
struct events {
	struct rma r;
	struct rma_target t;
	struct fid_cntr *written, *read;
	uint64_t writes, reads; /* expected counts at the target */
};

static void events_prepare(struct events *v, struct api *a, const struct rma_opts *o)
{
	*v = (struct events){0};
	rma_prepare(&v->r, a, o);
	v->r.by_others[0] = v->written = obj_cntr(&v->r.o, o->wait);
	v->r.by_others[1] = v->read = obj_cntr(&v->r.o, o->wait);
}

static void events_open(struct events *v, struct api *a, const struct rma_opts *o)
{
	events_prepare(v, a, o);
	OK(fi_ep_bind(v->r.o.ep, &v->written->fid, FI_REMOTE_WRITE));
	OK(fi_ep_bind(v->r.o.ep, &v->read->fid, FI_REMOTE_READ));
	rma_enable(&v->r);
	rma_target_open(&v->r, &v->t, memory, LEN);
}

static void events_close(struct events *v)
{
	rma_target_close(&v->r, &v->t);
	rma_close(&v->r);
}

/* Waits until both counters have the expected values, and checks that they do not exceed them. */
static void counted(struct events *v)
{
	OBJ_UNTIL(fi_cntr_read(v->written) >= v->writes && fi_cntr_read(v->read) >= v->reads,
		  rma_progress(&v->r));
	api_check_eq((int64_t)fi_cntr_read(v->written), (int64_t)v->writes, "writes by others");
	api_check_eq((int64_t)fi_cntr_read(v->read), (int64_t)v->reads, "reads by others");
	api_check_eq((int64_t)fi_cntr_readerr(v->written), 0, "failed writes by others");
	api_check_eq((int64_t)fi_cntr_readerr(v->read), 0, "failed reads by others");
}

#define COUNTED(...) (api_at(__FILE__, __LINE__), counted(__VA_ARGS__))

static struct rma_op make_op(struct events *v, enum rma_form form, size_t len, bool beyond)
{
	static struct iovec iov;
	static struct fi_rma_iov to[2];
	struct rma_key *key = &v->t.key;

	iov = (struct iovec){local, len};
	to[0] = (struct fi_rma_iov){key->base + (beyond ? LEN - len + 1 : 0), len, key->key};
	if (form == RMA_WRITEMSG || form == RMA_READMSG) {
		to[0].len = len / 2;
		to[1] = to[0];
		to[1].addr += len / 2;
		to[1].len = len - len / 2;
	}
	return (struct rma_op){.form = form,
			       .iov = &iov,
			       .count = 1,
			       .to = to,
			       .to_count = 2,
			       .data = RMA_CQ_DATA,
			       .peer = v->r.addr[v->r.a->ranks - 1],
			       .context = local};
}

/* One operation of each form and size; each counts once its data is there. */
static void count_forms(struct events *v)
{
	static const size_t lens[] = {8, 64, 4096, 4097, LEN};
	struct api *a = v->r.a;

	for (size_t i = 0; i < RMA_FORMS * API_COUNT(lens); i++) {
		size_t len = lens[i / RMA_FORMS];
		enum rma_form form = (enum rma_form)(i % RMA_FORMS);
		struct rma_op op = make_op(v, form, len, false);

		if (rma_injects(form) && len > v->r.o.info->tx_attr->inject_size)
			continue;
		v->writes += !rma_reads(form);
		v->reads += rma_reads(form);
		if (a->rank == 0) {
			data_fill(local, len, (unsigned int)i);
			RMA_RUN(&v->r, &op);
		}
		if (a->rank == a->ranks - 1) {
			COUNTED(v);
			if (!rma_reads(form))
				data_check(memory, len, (unsigned int)i);
			if (form == RMA_DATA || form == RMA_INJECTDATA)
				RMA_NOTIFIED(&v->r, v->r.in, RMA_CQ_DATA, len);
		}
		api_meet(a);
	}
}

static void at_endpoint(struct api *a)
{
	struct rma_opts o = {.caps = FI_MSG | FI_RMA | FI_RMA_EVENT, .mr_mode = RMA_PROVIDED};
	struct events v;

	events_open(&v, a, &o);
	count_forms(&v);
	if (a->rank == 0) /* initiators count nothing */
		CHECK_EQ(fi_cntr_read(v.written) + fi_cntr_read(v.read),
			 a->ranks > 1 ? 0 : v.writes + v.reads);
	events_close(&v);
}

/* Many operations in flight; failed ones do not count. */
static void many(struct api *a)
{
	struct rma_opts o = {.caps = FI_MSG | FI_RMA | FI_RMA_EVENT, .mr_mode = RMA_PROVIDED};
	struct fi_cq_tagged_entry e;
	struct events v;

	events_open(&v, a, &o);
	for (unsigned int n = 0; n < 2000; n++) {
		bool reads = n % 5 == 4;
		struct rma_op op = make_op(&v, reads ? RMA_READ : RMA_WRITE,
					   n % 100 == 50 ? LEN : n % 50, false);

		v.reads += reads;
		v.writes += !reads;
		if (a->rank == 0)
			rma_start(&v.r, &op);
	}
	for (unsigned int n = 0; a->rank == 0 && n < 2000; n++)
		obj_done(v.r.o.cq, local);
	for (unsigned int n = api_other() ? 4 : 0; a->rank == 0 && n < 4; n++) {
		struct rma_op op = make_op(&v, n % 2 ? RMA_READ : RMA_WRITE, n / 2 ? LEN : 8, true);

		rma_start(&v.r, &op);
		CHECK_EQ(obj_error(v.r.o.cq).err, FI_EINVAL);
		CHECK_EQ(fi_cq_read(v.r.o.cq, &e, 1), -FI_EAGAIN);
	}
	if (a->rank == 1)
		COUNTED(&v);
	api_meet(a);
	if (a->rank == 1)
		COUNTED(&v);
	events_close(&v);
}

/* The target sleeps in fi_cntr_wait. */
static void waiting(struct api *a)
{
	static const size_t lens[] = {8, LEN};
	struct rma_opts o = {.caps = FI_MSG | FI_RMA | FI_RMA_EVENT,
			     .mr_mode = RMA_PROVIDED,
			     .wait = FI_WAIT_UNSPEC};
	struct events v;

	events_open(&v, a, &o);
	for (unsigned int n = 0; n < 8; n++) {
		bool reads = n % 2;
		struct rma_op op = make_op(&v, reads ? RMA_READ : RMA_WRITE, lens[n / 4], false);

		api_meet(a);
		if (a->rank == 0) {
			obj_sleep_us(20000);
			RMA_RUN(&v.r, &op);
			continue;
		}
		v.reads += reads;
		v.writes += !reads;
		OK(fi_cntr_wait(reads ? v.read : v.written, reads ? v.reads : v.writes,
				OBJ_PATIENCE_MS));
		COUNTED(&v);
	}
	events_close(&v);
}

/* ---- Regions --------------------------------------------------------------------------------- */

/* Registers a region whose counter `cntr` counts `flags`; enables it if the mode requires that. */
static struct fid_mr *counting_region(struct rma *r, void *buf, size_t len, struct fid_cntr *cntr,
				      uint64_t flags)
{
	bool mode = rma_mode(r, FI_MR_RMA_EVENT);
	struct fid_mr *mr;

	OK(fi_mr_reg(r->o.domain, buf, len, RMA_REMOTE, 0, r->next_key++, mode ? FI_RMA_EVENT : 0,
		     &mr, NULL));
	OK(fi_mr_bind(mr, &cntr->fid, flags));
	if (mode)
		OK(fi_mr_enable(mr));
	return mr;
}

/* Two regions with a counter each: one of writes, one of both. The endpoint has none. */
static void region_counts(struct api *a, int mr_mode)
{
	struct rma_opts o = {.caps = FI_MSG | FI_RMA | FI_RMA_EVENT, .mr_mode = mr_mode};
	struct rma_key keys[2] = {{0}};
	struct fid_mr *mr[2];
	struct events v;

	events_prepare(&v, a, &o);
	rma_enable(&v.r);
	if (a->rank == 1) {
		uint64_t all = FI_REMOTE_READ | FI_REMOTE_WRITE;

		mr[0] = counting_region(&v.r, memory, LEN, v.written, FI_REMOTE_WRITE);
		mr[1] = counting_region(&v.r, memory, LEN, v.read, all);
		for (int i = 0; i < 2; i++)
			keys[i] = rma_key(&v.r, mr[i], memory, LEN);
		CHECK_EQ(fi_close(&v.read->fid), -FI_EBUSY);
	}
	for (int i = 0; i < 2; i++)
		keys[i] = rma_share(&v.r, 1, &keys[i]);
	for (unsigned int n = 0; n < 40; n++) {
		enum rma_form form = n % 3 ? RMA_WRITE : RMA_READ;
		struct rma_op op;

		v.t.key = keys[n / 20];
		op = make_op(&v, form, n % 4 ? 8 : LEN, false);
		if (a->rank == 0)
			RMA_RUN(&v.r, &op);
		v.writes += n < 20 && !rma_reads(form);
		v.reads += n >= 20;
	}
	if (a->rank == 1) {
		COUNTED(&v);
		CLOSE(mr[0]);
		CLOSE(mr[1]);
	}
	rma_close(&v.r);
}

static void at_region(struct api *a)
{
	if (api_other())
		api_skip("regions have no counters");
	region_counts(a, RMA_PROVIDED);
	region_counts(a, RMA_PROVIDED | FI_MR_RMA_EVENT);
	region_counts(a, 0);
}

/* The target only reads the region's counter, and sleeps on nothing else. */
static void at_region_alone(struct api *a)
{
	struct rma_opts o = {.caps = FI_MSG | FI_RMA | FI_RMA_EVENT,
			     .mr_mode = RMA_PROVIDED,
			     .wait = FI_WAIT_UNSPEC};
	struct fid_mr *mr = NULL;
	struct events v;

	if (api_other())
		api_skip("regions have no counters");
	events_prepare(&v, a, &o);
	rma_enable(&v.r);
	if (a->rank == 1) {
		mr = counting_region(&v.r, memory, LEN, v.written, FI_REMOTE_WRITE);
		v.t.key = rma_key(&v.r, mr, memory, LEN);
	}
	v.t.key = rma_share(&v.r, 1, &v.t.key);
	if (a->rank == 0) {
		RMA_PLAIN(&v.r, RMA_WRITE, local, 8, &v.t.key, 0);
		RMA_PLAIN(&v.r, RMA_WRITE, local, 8, &v.t.key, 0);
	} else {
		OBJ_UNTIL(fi_cntr_read(v.written) >= 1, sched_yield());
		OK(fi_cntr_wait(v.written, 2, OBJ_PATIENCE_MS));
		CLOSE(mr);
	}
	rma_close(&v.r);
}

/* One write across two regions counts once for each. */
static void across_regions(struct api *a)
{
	static const size_t lens[] = {8, LEN / 2};
	struct rma_opts o = {.caps = FI_MSG | FI_RMA | FI_RMA_EVENT, .mr_mode = RMA_PROVIDED};
	struct rma_key keys[2] = {{0}};
	struct fid_mr *mr[2];
	struct events v;

	if (api_other())
		api_skip("regions have no counters");
	events_prepare(&v, a, &o);
	rma_enable(&v.r);
	for (int i = 0; i < 2; i++) {
		unsigned char *half = memory + (size_t)i * (LEN / 2);

		if (a->rank == 1) {
			mr[i] = counting_region(&v.r, half, LEN / 2, i ? v.read : v.written,
						FI_REMOTE_WRITE);
			keys[i] = rma_key(&v.r, mr[i], half, LEN / 2);
		}
		keys[i] = rma_share(&v.r, 1, &keys[i]);
	}
	for (size_t n = 0; n < API_COUNT(lens); n++) {
		struct iovec iov = {local, 2 * lens[n]};
		struct fi_rma_iov to[2] = {{keys[0].base, lens[n], keys[0].key},
					   {keys[1].base, lens[n], keys[1].key}};

		if (a->rank == 0)
			RMA_RUN(&v.r, &(struct rma_op){.form = RMA_WRITEMSG,
						       .iov = &iov,
						       .count = 1,
						       .to = to,
						       .to_count = 2,
						       .peer = v.r.addr[1],
						       .flags = FI_COMPLETION,
						       .context = local});
		api_meet(a);
		v.writes++;
		v.reads++; /* counter of the second region */
		if (a->rank == 1)
			COUNTED(&v);
		api_meet(a);
	}
	for (int i = 0; a->rank == 1 && i < 2; i++)
		CLOSE(mr[i]);
	rma_close(&v.r);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"at_endpoint", at_endpoint, 2, {0}},
		{"at_endpoint_self", at_endpoint, 1, {0}},
		{"many", many, 2, {0}},
		{"waiting", waiting, 2, {0}},
		{"at_region", at_region, 2, {0}},
		{"at_region_alone", at_region_alone, 2, {0}},
		{"across_regions", across_regions, 2, {0}},
		{"at_endpoint_no_cma", at_endpoint, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"many_no_cma", many, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"at_region_no_cma", at_region, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"across_regions_no_cma", across_regions, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
