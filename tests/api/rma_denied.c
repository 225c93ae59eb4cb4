/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes that the target's regions do not permit: the right error, the counter's error
 * value, no byte moved, and an endpoint that still works.
 */
#include "obj.h"
#include "lib/rma.h"
#include "lib/rma_buf.h"

#define LEN   120000u /* bytes of the target's memory */
#define FROM  8000u   /* offset of its regions */
#define SIZE  100000u /* length of its regions */
#define LARGE 70000u

enum { FULL, READ_ONLY, WRITE_ONLY, LOCAL_ONLY, REGIONS };

static const uint64_t rights[REGIONS] = {
	FI_REMOTE_READ | FI_REMOTE_WRITE,
	FI_REMOTE_READ,
	FI_REMOTE_WRITE,
	FI_SEND | FI_RECV | FI_READ | FI_WRITE,
};

static unsigned char memory[LEN], local[LEN];

/* Rank 1's memory in four regions, and keys of closed regions. */
struct denied {
	struct rma r;
	struct fid_mr *mr[REGIONS];
	struct rma_key keys[REGIONS];
	struct rma_key stale, reused; /* reused: the key's slot belongs to another region now */
};

static const int modes[] = {RMA_PROVIDED, FI_MR_PROV_KEY, 0, FI_MR_VIRT_ADDR};

static struct rma_key gone_key(struct denied *d, unsigned int later)
{
	struct fid_mr *mr = rma_reg(&d->r, memory + FROM, SIZE, RMA_REMOTE), *more[200];
	struct rma_key key = rma_key(&d->r, mr, memory + FROM, SIZE);

	CLOSE(mr);
	for (unsigned int n = 0; n < later; n++)
		more[n] = rma_reg(&d->r, memory, LEN, RMA_REMOTE);
	for (unsigned int n = 0; n < later; n++)
		CLOSE(more[n]);
	return key;
}

static void denied_open(struct denied *d, struct api *a, int mode)
{
	memset(d, 0, sizeof(*d));
	rma_open(&d->r, a, &(struct rma_opts){.mr_mode = mode});
	data_fill(memory, LEN, 1);
	memset(local, DATA_EMPTY, LEN);
	for (int i = 0; i < REGIONS && a->rank == 1; i++) {
		d->mr[i] = rma_reg(&d->r, memory + FROM, SIZE, rights[i]);
		d->keys[i] = rma_key(&d->r, d->mr[i], memory + FROM, SIZE);
	}
	if (a->rank == 1) {
		d->stale = gone_key(d, 0);
		d->reused = gone_key(d, 200);
	}
	for (int i = 0; i < REGIONS; i++)
		d->keys[i] = rma_share(&d->r, 1, &d->keys[i]);
	d->stale = rma_share(&d->r, 1, &d->stale);
	d->reused = rma_share(&d->r, 1, &d->reused);
}

/* An operation in flight that must fail. */
struct doomed {
	enum rma_form form;
	int err;
	bool done;
};

#define DOOMED 64

static struct doomed doomed[DOOMED];
static size_t doomed_count;

/* Takes one error. Its context tells the operation, except for injected ones. */
static void take_error(struct denied *d)
{
	struct fi_cq_tagged_entry unused;
	struct fi_cq_err_entry e = {0};
	struct doomed *which;
	ssize_t ret;

	OBJ_UNTIL((ret = fi_cq_read(d->r.o.cq, &unused, 1)) != -FI_EAGAIN, rma_progress(&d->r));
	CHECK_EQ(ret, -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(d->r.o.cq, &e, 0), 1);
	which = e.op_context;
	for (size_t i = 0; !which && i < doomed_count; i++)
		if (rma_injects(doomed[i].form) && !doomed[i].done)
			which = &doomed[i];
	CHECK(which >= doomed && which < doomed + doomed_count && !which->done);
	which->done = true;
	CHECK_EQ(e.err, which->err);
	CHECK_EQ(e.flags & RMA_KINDS, rma_kind(which->form));
	d->r.failed[rma_reads(which->form)]++;
}

/* Waits until all operations have failed, each once with its error. */
static void quiesce(struct denied *d)
{
	for (size_t i = 0; i < doomed_count; i++)
		take_error(d);
	OBJ_UNTIL(fi_cntr_readerr(d->r.writes) >= d->r.failed[0] &&
			  fi_cntr_readerr(d->r.reads) >= d->r.failed[1],
		  rma_progress(&d->r));
	rma_counted(&d->r);
	doomed_count = 0;
}

static void start_doomed(struct denied *d, enum rma_form form, const struct fi_rma_iov *to,
			 size_t to_count, int err)
{
	struct iovec iov = {local, 0};
	struct rma_op op = {.form = form,
			    .iov = &iov,
			    .count = 1,
			    .to = to,
			    .to_count = to_count,
			    .peer = d->r.addr[1],
			    .data = RMA_CQ_DATA,
			    .context = &doomed[doomed_count]};

	for (size_t i = 0; i < to_count; i++)
		iov.iov_len += to[i].len;
	if (rma_injects(form) && iov.iov_len > d->r.o.info->tx_attr->inject_size)
		return;
	doomed[doomed_count++] = (struct doomed){form, err, false};
	rma_start(&d->r, &op);
	if (doomed_count == DOOMED)
		quiesce(d);
}

/* Runs all forms with this key and address; each must fail with `err`. */
static void all_fail(struct denied *d, bool reads, const struct fi_rma_iov *to, int err)
{
	for (enum rma_form form = 0; form < RMA_FORMS; form++)
		if (rma_reads(form) == reads)
			start_doomed(d, form, to, 1, err);
}

/* Checks that memory is unchanged and valid operations still work, then closes all. */
static void denied_close(struct denied *d)
{
	static const size_t sizes[] = {8, LARGE};
	struct api *a = d->r.a;

	quiesce(d);
	api_meet(a);
	if (a->rank == 1)
		data_check(memory, LEN, 1);
	api_meet(a);
	for (size_t i = 0; a->rank == 0 && i < API_COUNT(sizes); i++) {
		RMA_PLAIN(&d->r, RMA_READ, local, sizes[i], &d->keys[READ_ONLY], 0);
		data_check_at(local, sizes[i], 1, FROM);
		RMA_PLAIN(&d->r, RMA_WRITE, local, sizes[i], &d->keys[WRITE_ONLY], 0);
	}
	if (a->rank == 0)
		obj_quiet(d->r.o.cq, 1);
	api_meet(a);
	if (a->rank == 1) {
		data_check(memory, LEN, 1);
		obj_quiet(d->r.in, 0); /* no remote CQ data either */
	}
	for (int i = 0; i < REGIONS && a->rank == 1; i++)
		CLOSE(d->mr[i]);
	rma_close(&d->r);
}

static const size_t lens[] = {1, 8, 64, 4096, 5000, LARGE};

/* Returns whether a device checks keys, range by range. Device keys are in the lower half. */
static bool by_devices(int mode)
{
	return !strcmp(api_provider(), "verbs") && mode == RMA_PROVIDED;
}

/* Keys that never existed, and keys of closed regions. */
static void keys(struct api *a)
{
	for (size_t m = 0; m < API_COUNT(modes); m++) {
		uint64_t good, bad[8], both = by_devices(modes[m]) ? 2 : 0;
		struct denied d;

		denied_open(&d, a, modes[m]);
		good = d.keys[FULL].key;
		memcpy(bad,
		       (uint64_t[]){good ^ 1ULL << 63, good ^ (1ULL << 40 | both), good ^ 1,
				    good + 1000, UINT64_MAX, UINT64_MAX - 1, d.stale.key,
				    d.reused.key},
		       sizeof(bad));
		for (size_t i = 0; a->rank == 0 && i < API_COUNT(bad) * API_COUNT(lens); i++) {
			struct fi_rma_iov to = {d.keys[FULL].base, lens[i / API_COUNT(bad)],
						bad[i % API_COUNT(bad)]};

			all_fail(&d, false, &to, FI_EACCES);
			all_fail(&d, true, &to, FI_EACCES);
		}
		denied_close(&d);
	}
}

static void no_rights(struct api *a)
{
	for (size_t m = 0; m < API_COUNT(modes); m++) {
		struct denied d;

		denied_open(&d, a, modes[m]);
		for (size_t i = 0; a->rank == 0 && i < API_COUNT(lens) * REGIONS; i++) {
			struct rma_key *key = &d.keys[i % REGIONS];
			uint64_t has = rights[i % REGIONS];
			struct fi_rma_iov to = {key->base, lens[i / REGIONS], key->key};

			if (!(has & FI_REMOTE_WRITE))
				all_fail(&d, false, &to, FI_EACCES);
			if (!(has & FI_REMOTE_READ))
				all_fail(&d, true, &to, FI_EACCES);
		}
		denied_close(&d);
	}
}

/* A key is valid only in its own domain, even within one process. */
static void other_domain(struct api *a)
{
	struct denied d;
	struct obj o = {0};
	struct fid_mr *mr = NULL;

	denied_open(&d, a, 0);
	o.hints = obj_hints(FI_MSG | FI_RMA);
	obj_open(&o);
	if (a->rank == 1)
		OK(fi_mr_reg(o.domain, memory, LEN, RMA_REMOTE, 0, 4711, 0, &mr, NULL));
	api_meet(a);
	for (size_t i = 0; a->rank == 0 && i < API_COUNT(lens); i++) {
		struct fi_rma_iov to = {0, lens[i], 4711};

		all_fail(&d, false, &to, FI_EACCES);
		all_fail(&d, true, &to, FI_EACCES);
	}
	quiesce(&d);
	api_meet(a);
	if (mr)
		CLOSE(mr);
	obj_close(&o);
	denied_close(&d);
}

/* Ranges behind the end, before the start, and around the end of the address space. */
static void bounds(struct api *a)
{
	for (size_t m = 0; m < API_COUNT(modes); m++) {
		struct denied d;
		uint64_t base;

		denied_open(&d, a, modes[m]);
		base = d.keys[FULL].base;
		for (size_t i = 0; a->rank == 0 && i < API_COUNT(lens); i++) {
			uint64_t len = lens[i];
			uint64_t starts[] = {base + SIZE - len + 1,
					     base + SIZE,
					     base + SIZE + 1000,
					     base - 1,
					     base - len,
					     base - 3 * LEN,
					     UINT64_MAX,
					     -len,
					     UINT64_MAX / 2};

			for (size_t j = 0; j < API_COUNT(starts); j++) {
				struct fi_rma_iov to = {starts[j], len, d.keys[FULL].key};

				all_fail(&d, false, &to, FI_EINVAL);
				all_fail(&d, true, &to, FI_EINVAL);
			}
		}
		denied_close(&d);
	}
}

/* Only the last of two or sixteen ranges is bad: nothing is written, except by devices. */
static void last_range(struct api *a)
{
	static const size_t counts[] = {2, 16}, sizes[] = {8, 200, 5000};

	for (size_t m = 0; m < API_COUNT(modes); m++) {
		struct denied d;

		if (by_devices(modes[m]))
			continue;
		denied_open(&d, a, modes[m]);
		for (size_t i = 0; a->rank == 0 && i < 3 * 2 * 2 * 3; i++) {
			size_t len = sizes[i % 3], count = counts[i / 3 % 2];
			struct rma_key *key = &d.keys[FULL];
			struct fi_rma_iov to[RMA_IOV];
			bool reads = i / 6 % 2;

			for (size_t n = 0; n < count; n++)
				to[n] = (struct fi_rma_iov){key->base + n * len, len, key->key};
			if (i / 12 == 0)
				to[count - 1].key = d.stale.key;
			else if (i / 12 == 1)
				to[count - 1].key = d.keys[reads ? WRITE_ONLY : READ_ONLY].key;
			else
				to[count - 1].addr = key->base + SIZE - len + 1;
			start_doomed(&d, reads ? RMA_READMSG : RMA_WRITEMSG, to, count,
				     i / 12 == 2 ? FI_EINVAL : FI_EACCES);
		}
		denied_close(&d);
	}
}

/* ---- Bad operations among good ones, posted without waiting ---------------------------------- */

#define COUNT 300
#define SLOT  64

struct one {
	bool reads, bad, done;
	size_t len;
	unsigned char *buf;
};

/* Writes go to a slot of their own; reads, some of them long, read memory that is never written. */
static void one_start(struct denied *d, struct one *o, size_t n)
{
	struct rma_key *key;
	struct iovec iov;
	struct fi_rma_iov to;

	*o = (struct one){.reads = n % 2, .bad = n % 3 == 1, .len = SLOT};
	if (o->reads && n % 25 < 5)
		o->len = LARGE;
	o->buf = malloc(o->len);
	CHECK(o->buf != NULL);
	memset(o->buf, (int)n, o->len);
	key = &d->keys[!o->bad ? FULL : o->reads ? WRITE_ONLY : READ_ONLY];
	iov = (struct iovec){o->buf, o->len};
	to = (struct fi_rma_iov){key->base + (o->reads ? COUNT * SLOT : n * SLOT), o->len,
				 key->key};
	rma_start(&d->r, &(struct rma_op){.form = o->reads ? RMA_READ : RMA_WRITE,
					  .iov = &iov,
					  .count = 1,
					  .to = &to,
					  .to_count = 1,
					  .peer = d->r.addr[1],
					  .context = o});
	(o->bad ? d->r.failed : d->r.done)[o->reads]++;
}

static void one_end(struct denied *d)
{
	struct fi_cq_tagged_entry e = {0};
	struct fi_cq_err_entry err = {0};
	struct one *o;
	ssize_t ret;

	OBJ_UNTIL((ret = fi_cq_read(d->r.o.cq, &e, 1)) != -FI_EAGAIN, rma_progress(&d->r));
	if (ret == -FI_EAVAIL)
		CHECK_EQ(fi_cq_readerr(d->r.o.cq, &err, 0), 1);
	o = ret == 1 ? e.op_context : err.op_context;
	CHECK(!o->done);
	o->done = true;
	CHECK_EQ(err.err, o->bad ? FI_EACCES : 0);
	if (o->reads && !o->bad)
		data_check_at(o->buf, o->len, 1, FROM + COUNT * SLOT);
}

static void among_good(struct api *a)
{
	static struct one all[COUNT];
	struct denied d;

	denied_open(&d, a, RMA_PROVIDED);
	for (size_t n = 0; a->rank == 0 && n < COUNT; n++)
		one_start(&d, &all[n], n);
	for (size_t n = 0; a->rank == 0 && n < COUNT; n++)
		one_end(&d);
	rma_counted(&d.r);
	api_meet(a);
	for (size_t n = 0; a->rank == 1 && n < COUNT; n += 2) {
		if (n % 3 == 1)
			continue;
		CHECK(data_all(memory + FROM + n * SLOT, SLOT, (unsigned char)n));
		for (size_t i = FROM + n * SLOT; i < FROM + (n + 1) * SLOT; i++)
			memory[i] = data_byte(1, i);
	}
	for (size_t n = 0; n < COUNT; n++)
		free(all[n].buf);
	denied_close(&d); /* all other memory is unchanged */
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"keys", keys, 2, {0}},
		{"no_rights", no_rights, 2, {0}},
		{"other_domain", other_domain, 2, {0}},
		{"bounds", bounds, 2, {0}},
		{"last_range", last_range, 2, {0}},
		{"among_good", among_good, 2, {0}},
		{"keys_no_cma", keys, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"bounds_no_cma", bounds, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"last_range_no_cma", last_range, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
