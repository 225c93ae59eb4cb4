/* SPDX-License-Identifier: BSD-2-Clause */
/* Every form and size of read and write, in 1 to 16 pieces and ranges. fi_rma(3). */
#include "obj.h"
#include "lib/rma.h"
#include "lib/rma_buf.h"

static const size_t sizes[] = {0,    1,    7,    8,    9,     24,    25,    64,
			       1000, 4095, 4096, 4097, 16384, 16385, 65536, (1 << 20) + 3};

static bool is_vector(enum rma_form form)
{
	return form == RMA_WRITEV || form == RMA_READV;
}

static bool is_msg(enum rma_form form)
{
	return form == RMA_WRITEMSG || form == RMA_READMSG;
}

/* All forms with all sizes, in a few pieces where possible. */
static void walk(struct rma *r)
{
	struct rma_step st = {0};

	for (size_t i = 0; i < API_COUNT(sizes); i++)
		for (enum rma_form form = 0; form < RMA_FORMS; form++) {
			st.form = form;
			st.len = api_long(sizes[i]);
			st.count = is_vector(form) ? 3 : is_msg(form) ? 2 : 1;
			st.to_count = is_msg(form) ? 3 : 1;
			st.falling = i % 2;
			if (rma_fits(r, &st))
				rma_step(r, &st);
		}
}

static void forms(struct api *a)
{
	struct rma r;

	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	walk(&r);
	rma_close(&r);
}

/* The same with automatic progress. */
static void auto_progress(struct api *a)
{
	struct rma r;

	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED, .progress = FI_PROGRESS_AUTO});
	if (a->rank == 1)
		a->progress = NULL;
	walk(&r);
	rma_close(&r);
}

/* Reads memory that the library may be writing, which a thread checker would report. */
static __attribute__((no_sanitize("thread"))) unsigned char glance(const unsigned char *at)
{
	return *(const volatile unsigned char *)at;
}

/*
 * Neither application calls the library from posting to the end; the progress threads do all. The
 * target's memory is shared, so its last byte shows the end of a write.
 */
static void asleep(struct rma *r, const struct rma_target *t, size_t len, bool reads)
{
	static unsigned char local[3 << 20];
	unsigned char *there = r->a->shared;
	const unsigned char *last = reads ? &local[len - 1] : &there[len - 1];
	struct fi_cq_tagged_entry e;

	data_fill(reads ? there : local, len, 1);
	memset(reads ? local : there, ~data_byte(1, len - 1), len);
	obj_sleep_us(30000); /* the threads fall asleep */
	OK(reads ? fi_read(r->o.ep, local, len, NULL, r->addr[1], t->key.base, t->key.key, &e)
		 : fi_write(r->o.ep, local, len, NULL, r->addr[1], t->key.base, t->key.key, &e));
	OBJ_UNTIL(glance(last) == data_byte(1, len - 1), obj_sleep_us(1000));
	obj_sleep_us(50000 * obj_slower());
	CHECK_EQ(fi_cq_read(r->o.cq, &e, 1), 1);
	CHECK(e.op_context == &e);
	data_check(local, len, 1);
	data_check(there, len, 1);
}

/* Opens all anew each time, so that the threads have just started. */
static void both_sleep(struct api *a)
{
	static const size_t lens[] = {8, 5000, 70000, 3 << 20};
	unsigned char word[8];
	struct rma_target t;
	struct rma r;

	for (size_t n = 0; n < API_COUNT(lens); n++) {
		rma_open(&r, a,
			 &(struct rma_opts){.mr_mode = RMA_PROVIDED, .progress = FI_PROGRESS_AUTO});
		rma_target_open(&r, &t, a->shared, API_SHARED);
		if (a->rank == 0)
			RMA_PLAIN(&r, RMA_READ, word, 8, &t.key, 0);
		a->progress = NULL;
		if (a->rank == 0) {
			asleep(&r, &t, api_long(lens[n]), false);
			asleep(&r, &t, api_long(lens[n]), true);
		}
		rma_target_close(&r, &t);
		rma_close(&r);
	}
}

/* Local pieces against remote ranges. */
static void pieces(struct api *a)
{
	static const size_t counts[] = {1, 8, 16}, lens[] = {0, 5, 1000, 3000, 5000, 100003};
	struct rma_step st = {0};
	struct rma r;

	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	if (!api_other() && !pair_bare())
		CHECK(r.o.info->tx_attr->iov_limit >= 16 && r.o.info->tx_attr->rma_iov_limit >= 16);
	for (size_t i = 0; i < API_COUNT(lens) * 9 * 4; i++) {
		st.form = i & 1 ? RMA_READMSG : RMA_WRITEMSG;
		st.falling = i & 2;
		st.count = counts[i / 4 % 3];
		st.to_count = counts[i / 12 % 3];
		st.len = lens[i / 36];
		if (st.count <= r.o.info->tx_attr->iov_limit &&
		    st.to_count <= r.o.info->tx_attr->rma_iov_limit)
			rma_step(&r, &st);
	}
	rma_close(&r);
}

/* fi_writemsg and fi_readmsg with flags that do not change the result. */
static void flags(struct api *a)
{
	static const uint64_t sets[] = {FI_COMPLETION,
					FI_MORE,
					FI_INJECT,
					FI_INJECT_COMPLETE | FI_DELIVERY_COMPLETE,
					FI_TRANSMIT_COMPLETE,
					FI_DELIVERY_COMPLETE,
					FI_FENCE,
					FI_REMOTE_CQ_DATA,
					FI_REMOTE_CQ_DATA | FI_INJECT,
					FI_FENCE | FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE};
	static const size_t lens[] = {0, 8, 600, 4096, 70000};
	uint64_t lacks = api_other() ? FI_FENCE | FI_DELIVERY_COMPLETE : 0;
	struct rma_step st = {.count = 2, .to_count = 2};
	struct rma r;

	rma_open(&r, a,
		 &(struct rma_opts){.caps = FI_MSG | FI_RMA | (FI_FENCE & ~lacks),
				    .mr_mode = RMA_PROVIDED});
	for (size_t i = 0; i < API_COUNT(sets) * API_COUNT(lens); i++) {
		st.form = RMA_WRITEMSG;
		st.flags = sets[i / API_COUNT(lens)];
		if (st.flags & lacks)
			continue;
		st.len = lens[i % API_COUNT(lens)];
		if (rma_fits(&r, &st))
			rma_step(&r, &st);
		if (st.flags & ~(FI_COMPLETION | FI_MORE | FI_FENCE))
			continue;
		st.form = RMA_READMSG;
		rma_step(&r, &st);
	}
	rma_close(&r);
}

/* The buffer of an injected write can be reused at once. */
static void injected_is_copied(struct api *a)
{
	uint64_t words[500] = {0}, word;
	struct iovec iov = {&word, sizeof(word)};
	struct fi_rma_iov to = {.len = sizeof(word)};
	struct rma_op op = {.iov = &iov, .count = 1, .to = &to, .to_count = 1};
	struct fid_mr *mr = NULL;
	struct rma_key key;
	struct rma r;

	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	if (a->rank == 1)
		mr = rma_reg(&r, words, sizeof(words), FI_REMOTE_WRITE);
	key = mr ? rma_key(&r, mr, words, sizeof(words)) : (struct rma_key){0};
	key = rma_share(&r, 1, &key);
	for (uint64_t n = 0; a->rank == 0 && n < API_COUNT(words); n++) {
		static const enum rma_form ways[] = {RMA_INJECT, RMA_WRITEMSG};

		word = n + 1;
		to.addr = key.base + n * sizeof(word);
		to.key = key.key;
		op.form = ways[n % 2];
		op.flags = FI_INJECT;
		op.peer = r.addr[1];
		rma_start(&r, &op);
		word = UINT64_MAX;
		r.done[0]++;
	}
	for (size_t n = 0; a->rank == 0 && n < API_COUNT(words) / 2; n++)
		obj_done(r.o.cq, NULL); /* the calls without inject */
	rma_counted(&r);
	api_meet(a);
	for (uint64_t n = 0; mr && n < API_COUNT(words); n++)
		CHECK_EQ(words[n], n + 1);
	if (mr)
		CLOSE(mr);
	rma_close(&r);
}

/*
 * FI_INJECT as default flag: writes are copied, or refused for their length; reads are unaffected.
 */
static void inject_default(struct api *a)
{
	static unsigned char memory[70000], local[70000];
	static const size_t lens[] = {0, 8, 500, 4096, 70000};
	uint64_t flags = FI_TRANSMIT | FI_INJECT;
	struct rma_target t;
	struct rma r;

	if (api_other())
		api_skip("flags of the endpoint cannot be set");
	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	OK(fi_control(&r.o.ep->fid, FI_SETOPSFLAG, &flags));
	rma_target_open(&r, &t, memory, sizeof(memory));
	for (size_t i = 0; a->rank == 0 && i < API_COUNT(lens); i++) {
		bool fits = lens[i] <= r.o.info->tx_attr->inject_size;
		ssize_t ret;

		data_fill(local, lens[i], (unsigned int)i);
		OBJ_UNTIL((ret = fi_write(r.o.ep, local, lens[i], NULL, r.addr[1], t.key.base,
					  t.key.key, &t)) != -FI_EAGAIN,
			  rma_progress(&r));
		memset(local, 0xff, lens[i]);
		CHECK_EQ(ret, fits ? 0 : -FI_EMSGSIZE);
		if (!fits)
			continue;
		obj_done(r.o.cq, &t);
		r.done[0]++;
		RMA_PLAIN(&r, RMA_READ, local, lens[i], &t.key, 0);
		data_check(local, lens[i], (unsigned int)i);
	}
	if (a->rank == 0)
		RMA_PLAIN(&r, RMA_READ, local, sizeof(local), &t.key, 0);
	rma_target_close(&r, &t);
	rma_close(&r);
}

/* No buffer and no pieces: nothing moves, and the operation completes. */
static void nothing(struct api *a)
{
	struct fi_rma_iov to = {0};
	struct fid_mr *mr = NULL;
	struct rma_key key = {0};
	char word[8] = "1234567";
	struct rma r;

	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	if (a->rank == 1) {
		mr = rma_reg(&r, word, sizeof(word), RMA_REMOTE);
		key = rma_key(&r, mr, word, sizeof(word));
	}
	key = rma_share(&r, 1, &key);
	to.addr = key.base + sizeof(word); /* the end of the region: no byte is accessed */
	to.key = key.key;
	for (enum rma_form form = 0; a->rank == 0 && form < RMA_FORMS; form++)
		if (form != RMA_DATA && form != RMA_INJECTDATA)
			RMA_RUN(&r, &(struct rma_op){.form = form,
						     .to = &to,
						     .to_count = 1,
						     .peer = r.addr[1],
						     .context = rma_injects(form) ? NULL : &r});
	api_meet(a);
	CHECK(!strcmp(word, "1234567"));
	if (mr)
		CLOSE(mr);
	rma_close(&r);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"forms", forms, 2, {0}},
		{"auto_progress", auto_progress, 2, {0}},
		{"both_sleep", both_sleep, 2, {0}},
		{"pieces", pieces, 2, {0}},
		{"flags", flags, 2, {0}},
		{"injected_is_copied", injected_is_copied, 2, {0}},
		{"inject_default", inject_default, 2, {0}},
		{"nothing", nothing, 2, {0}},
		{"forms_no_cma", forms, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"auto_progress_no_cma", auto_progress, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"both_sleep_no_cma", both_sleep, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"pieces_no_cma", pieces, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"flags_no_cma", flags, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
