/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invalid atomics. The call refuses most; errors only the target can detect (keys, access rights,
 * bounds) end in an error completion. Memory and results stay unchanged, and later operations work.
 */
#include "api.h"
#include "lib/atomic.h"

#define MARK      UINT64_C(0x1122334455667788)
#define UNTOUCHED UINT64_C(0xabababababababab)

static uint64_t operand[AMO_IOV + 1], comparison[AMO_IOV + 1], result[AMO_IOV + 1];

static const enum fi_op family_op[] = {FI_SUM, FI_SUM, FI_CSWAP_NE};

/* Returns an atomic on one element of eight bytes, at `offset` of rank 0's region. */
static struct amo single(struct amo_side *to, enum amo_family family, uint64_t offset)
{
	struct amo m = {.family = family, .type = FI_UINT64, .op = family_op[family]};

	operand[0] = 3;
	result[0] = UNTOUCHED;
	m.buf->addr = operand;
	m.compare->addr = comparison;
	m.result->addr = result;
	amo_aim(&m, to, 0, offset, 1);
	m.context = operand;
	return m;
}

static uint64_t *word(struct amo_side *m, size_t i)
{
	return (uint64_t *)(void *)amo_memory(m->s.a, 0) + i;
}

static const size_t last_word = AMO_REGION / 8 - 1;

static void mark(struct amo_side *m)
{
	for (size_t i = 0; i < 16; i++)
		*word(m, i) = *word(m, last_word - i) = *word(m, last_word + 1 + i) = MARK;
}

static void unmarked(struct amo_side *m)
{
	for (size_t i = 0; i < 16; i++) {
		CHECK_EQ(*word(m, i), MARK);
		CHECK_EQ(*word(m, last_word - i), MARK);
		CHECK_EQ(*word(m, last_word + 1 + i), MARK);
	}
	CHECK_EQ(result[0], UNTOUCHED);
}

static struct fi_cq_err_entry fails(struct amo_side *m, const struct amo *one, int err)
{
	struct fi_cq_err_entry e;

	mark(m);
	POST(&m->s, amo_post(m->s.ep, one));
	e = AMO_FAILED(&m->s, one, err);
	unmarked(m);
	return e;
}

/* Checks that valid atomics still work. */
static void works(struct amo_side *m)
{
	for (enum amo_family f = 0; f < AMO_FAMILIES; f++) {
		struct amo one = single(m, f, 0);

		*word(m, 0) = MARK;
		AMO_RUN(&m->s, &one);
		CHECK_EQ(*word(m, 0), f == AMO_COMPARE ? 3 : MARK + 3);
		if (f != AMO_BASE)
			CHECK_EQ(result[0], MARK);
	}
}

static void ours(void)
{
	if (api_other())
		api_skip("how it fails is ours to say");
}

/* ---- Errors that the target detects ---------------------------------------------------------- */

/* A key that never existed, and the key of a closed region. */
static void keys(struct api *a)
{
	struct amo_side m;

	ours();
	amo_open_usual(&m, a);
	for (int stale = 0; stale < 2; stale++) {
		for (int i = 0; a->rank && i < AMO_FAMILIES * AMO_FORMS; i++) {
			struct amo one = single(&m, (enum amo_family)(i / AMO_FORMS), 8);

			one.form = (enum amo_form)(i % AMO_FORMS);
			if (one.form == AMO_INJECT && one.family != AMO_BASE)
				continue;
			if (!stale)
				one.target->key += 4711;
			CHECK_EQ(fails(&m, &one, FI_EACCES).prov_errno, FI_ENOKEY);
		}
		if (a->rank && !stale)
			works(&m);
		api_meet(a);
		if (!stale)
			OK(fi_close(&m.mr->fid));
		api_meet(a);
	}
	side_close(&m.s);
}

/* Required rights: base needs write, FI_ATOMIC_READ read, all others both. */
static void with_rights(struct api *a, uint64_t access)
{
	struct amo_side m;

	amo_open(&m, a, &(struct side_opts){.tx_flags = FI_DELIVERY_COMPLETE}, access);
	for (int i = 0; a->rank && i < 4; i++) {
		struct amo one = single(&m, i == 3 ? AMO_FETCH : (enum amo_family)i, 8);
		uint64_t needs = i == AMO_BASE ? FI_REMOTE_WRITE
				 : i == 3      ? FI_REMOTE_READ
					       : FI_REMOTE_WRITE | FI_REMOTE_READ;

		if (i == 3)
			one.op = FI_ATOMIC_READ;
		if ((access & needs) != needs) {
			fails(&m, &one, FI_EACCES);
			continue;
		}
		mark(&m);
		AMO_RUN(&m.s, &one);
		if (i)
			CHECK_EQ(result[0], MARK);
		if (i != 3)
			CHECK_EQ(*word(&m, 1), i == AMO_COMPARE ? 3 : MARK + 3);
	}
	amo_close(&m);
}

static void rights(struct api *a)
{
	static const uint64_t sets[] = {FI_REMOTE_READ, FI_REMOTE_WRITE, AMO_ACCESS};

	ours();
	for (size_t i = 0; i < API_COUNT(sets); i++)
		with_rights(a, sets[i]);
}

/* Ranges before the region, across its end, behind it, and around the end of the address space. */
static void bounds(struct api *a)
{
	static const int64_t offsets[] = {-8, -4, AMO_REGION - 4, AMO_REGION, AMO_REGION + 8};
	struct amo_side m;

	ours();
	amo_open_usual(&m, a);
	for (enum amo_family f = 0; a->rank && f < AMO_FAMILIES; f++) {
		struct amo one;

		for (size_t i = 0; i < API_COUNT(offsets); i++) {
			one = single(&m, f, (uint64_t)offsets[i]);
			fails(&m, &one, FI_EINVAL);
		}
		one = single(&m, f, 0);
		one.target->addr = UINT64_MAX - 7;
		fails(&m, &one, FI_EINVAL);
		one.target->addr = UINT64_MAX - 3;
		fails(&m, &one, FI_EINVAL);
		one = single(&m, f, AMO_REGION - 16);
		amo_aim(&one, &m, 0, AMO_REGION - 16, 3);
		fails(&m, &one, FI_EINVAL);
		works(&m);
		one = single(&m, f, AMO_REGION - 8);
		AMO_RUN(&m.s, &one);
	}
	amo_close(&m);
}

/* If the last of several ranges is bad, no range is changed. */
static void lists(struct api *a)
{
	struct amo_side m;

	ours();
	amo_open_usual(&m, a);
	for (int i = 0; a->rank && i < 2 * AMO_FAMILIES; i++) {
		struct amo one = single(&m, (enum amo_family)(i / 2), 0);

		one.form = AMO_MSG;
		one.buf->count = one.compare->count = one.result->count = AMO_IOV;
		one.targets = AMO_IOV;
		for (size_t t = 0; t < AMO_IOV; t++)
			one.target[t] = amo_target(&m, 0, 8 * t, 1);
		if (i & 1)
			one.target[AMO_IOV - 1].key += 4711;
		else
			one.target[AMO_IOV - 1].addr += AMO_REGION;
		fails(&m, &one, i & 1 ? FI_EACCES : FI_EINVAL);
	}
	if (a->rank)
		works(&m);
	amo_close(&m);
}

/* FI_ATOMIC_WRITE of eight bytes must be aligned; shorter writes need no alignment. */
static void misaligned_write(struct api *a)
{
	static const enum fi_datatype types[] = {FI_UINT64, FI_INT64, FI_DOUBLE};
	struct amo_side m;

	ours();
	amo_open_usual(&m, a);
	for (uint64_t i = 0; a->rank && i < 2 * 7; i++) {
		struct amo one = single(&m, (enum amo_family)(i & 1), 8 + i / 2 + 1);

		one.op = FI_ATOMIC_WRITE;
		one.type = types[i % API_COUNT(types)];
		fails(&m, &one, FI_EINVAL);
		one.type = FI_UINT32;
		mark(&m);
		AMO_RUN(&m.s, &one);
		CHECK_EQ(memcmp((char *)word(&m, 1) + i / 2 + 1, operand, 4), 0);
	}
	amo_close(&m);
}

/* A failed injected atomic gives a CQ error and counts in the error value of the counter. */
static void counted(struct api *a)
{
	struct side_opts o = {.caps = AMO_CAPS, .not_enabled = true};
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};
	struct fid_cntr *cntr;
	struct amo_side m;

	ours();
	side_open(&m.s, a, &o);
	OK(fi_cntr_open(m.s.domain, &attr, &cntr, NULL));
	OK(fi_ep_bind(m.s.ep, &cntr->fid, FI_READ | FI_WRITE));
	OK(fi_enable(m.s.ep));
	side_exchange(&m.s, &o);
	amo_register(&m, a, AMO_ACCESS);
	for (int i = 0; i < 5; i++) {
		struct amo one = single(&m, i % 2 ? AMO_FETCH : AMO_BASE, 0);

		one.form = i % 2 ? AMO_PLAIN : AMO_INJECT;
		one.target->key += 4711;
		fails(&m, &one, FI_EACCES);
		CHECK_EQ(fi_cntr_readerr(cntr), i + 1);
	}
	works(&m);
	CHECK_EQ(fi_cntr_read(cntr), AMO_FAMILIES);
	CHECK_EQ(fi_cntr_readerr(cntr), 5);
	OK(fi_close(&m.mr->fid));
	OK(fi_close(&m.s.ep->fid));
	OK(fi_close(&cntr->fid));
	OK(fi_endpoint(m.s.domain, m.s.info, &m.s.ep, NULL)); /* closed by side_close */
	side_close(&m.s);
}

/* ---- Refused by the call --------------------------------------------------------------------- */

static void call_refused(struct amo_side *m, const struct amo *one, ssize_t want)
{
	CHECK_EQ(amo_post(m->s.ep, one), want);
}

/* No elements; more elements than the maximum. */
static void counts(struct amo_side *m, enum amo_family f, enum amo_form form)
{
	static const struct {
		enum fi_datatype type;
		size_t count;
	} over[] = {{FI_INT8, 4097},
		    {FI_FLOAT16, 2049},
		    {FI_UINT64, 513},
		    {FI_UINT64, 100000},
		    {FI_INT128, 257},
		    {FI_LONG_DOUBLE_COMPLEX, 129},
		    {FI_UINT64, SIZE_MAX / 8 + 2},
		    {FI_UINT64, SIZE_MAX}};
	struct amo one = single(m, f, 0);

	one.form = form;
	one.buf->count = one.compare->count = one.result->count = one.target->count = 0;
	call_refused(m, &one, -FI_EINVAL);
	if (form == AMO_VECTOR || form == AMO_MSG) {
		one.bufs = one.compares = one.results = one.targets = 0;
		call_refused(m, &one, -FI_EINVAL);
	}
	for (size_t i = 0; i < API_COUNT(over); i++) {
		one = single(m, f, 0);
		one.form = form;
		one.type = over[i].type;
		one.op = f == AMO_COMPARE ? FI_CSWAP : FI_SUM;
		one.buf->count = one.compare->count = one.result->count = one.target->count =
			over[i].count;
		call_refused(m, &one, -FI_EMSGSIZE);
	}
}

static void null_buffers(struct amo_side *m, enum amo_family f, enum amo_form form)
{
	struct amo one = single(m, f, 0), bad;

	one.form = form;
	bad = one;
	bad.buf->addr = NULL;
	call_refused(m, &bad, -FI_EINVAL);
	bad = one;
	bad.result->addr = NULL;
	if (f != AMO_BASE)
		call_refused(m, &bad, -FI_EINVAL);
	bad.op = FI_ATOMIC_READ;
	if (f == AMO_FETCH)
		call_refused(m, &bad, -FI_EINVAL);
	bad = one;
	bad.compare->addr = NULL;
	if (f == AMO_COMPARE)
		call_refused(m, &bad, -FI_EINVAL);
}

/* More list entries than the limit; lists with different counts. */
static void entries(struct amo_side *m, enum amo_family f, enum amo_form form)
{
	struct amo one = single(m, f, 0), bad;
	size_t *const numbers[] = {&bad.bufs, &bad.targets, &bad.results, &bad.compares};
	size_t *const elements[] = {&bad.buf->count, &bad.target->count, &bad.result->count,
				    &bad.compare->count};
	int lists = f == AMO_BASE ? 2 : f == AMO_FETCH ? 3 : 4;

	one.form = form;
	for (int i = 0; i < lists; i++) {
		if (i == 1 && form == AMO_VECTOR)
			continue; /* the target of a single form has no count of its own */
		bad = one;
		*numbers[i] = AMO_IOV + 1;
		for (int e = 0; e <= AMO_IOV; e++) {
			bad.buf[e] = bad.compare[e] = bad.result[e] = one.buf[0];
			bad.target[e] = one.target[0];
		}
		call_refused(m, &bad, -FI_EINVAL);
		bad = one;
		*elements[i] = 2;
		if (form != AMO_VECTOR || f != AMO_BASE) /* those have no other count */
			call_refused(m, &bad, -FI_EINVAL);
	}
}

static void addresses(struct amo_side *m, enum amo_family f, enum amo_form form)
{
	static const fi_addr_t bad[] = {1000000, FI_ADDR_UNSPEC, FI_ADDR_NOTAVAIL};
	struct amo one = single(m, f, 0);

	one.form = form;
	for (size_t i = 0; i < API_COUNT(bad); i++) {
		one.peer = bad[i];
		call_refused(m, &one, -FI_EINVAL);
	}
}

static void calls(struct api *a)
{
	struct amo_side m;

	ours();
	amo_open(&m, a, &(struct side_opts){.av_type = FI_AV_TABLE}, AMO_ACCESS);
	mark(&m);
	for (enum amo_family f = 0; f < AMO_FAMILIES; f++)
		for (enum amo_form form = 0; form < AMO_FORMS; form++) {
			if (form == AMO_INJECT && f != AMO_BASE)
				continue;
			counts(&m, f, form);
			null_buffers(&m, f, form);
			addresses(&m, f, form);
			if (form == AMO_VECTOR || form == AMO_MSG)
				entries(&m, f, form);
		}
	QUIET(&m.s, m.s.tx, 5);
	unmarked(&m);
	works(&m);
	amo_close(&m);
}

static void small_inject(struct fi_info *hints)
{
	hints->tx_attr->inject_size = 64;
}

/* Injected atomics have a limit of their own. */
static void long_inject(struct api *a)
{
	struct amo_side m;
	size_t most;

	ours();
	amo_open(&m, a, &(struct side_opts){.tune = small_inject}, AMO_ACCESS);
	most = m.s.info->tx_attr->inject_size / 8;
	for (size_t over = 0; over < 2; over++)
		for (int i = 0; i < 1 + AMO_FAMILIES; i++) {
			struct amo one = single(&m, (enum amo_family)(i % AMO_FAMILIES), 0);
			static uint64_t many[513];

			one.form = i == AMO_FAMILIES ? AMO_INJECT : AMO_MSG;
			one.flags = FI_INJECT;
			one.buf->addr = one.compare->addr = one.result->addr = many;
			/*
			 * for comparisons the limit may hold for operands and compare values
			 * together
			 */
			amo_aim(&one, &m, 0, 0,
				over               ? most + 1
				: i == AMO_COMPARE ? most / 2
						   : most);
			CHECK(one.buf->count <= API_COUNT(many));
			if (!over)
				AMO_RUN(&m.s, &one);
			else if (one.buf->count <= 512)
				call_refused(&m, &one, -FI_EMSGSIZE);
		}
	QUIET(&m.s, m.s.tx, 5);
	amo_close(&m);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"keys", keys, 2, {0}},
		{"keys-no-cma", keys, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"rights", rights, 2, {0}},
		{"bounds", bounds, 2, {0}},
		{"lists", lists, 2, {0}},
		{"misaligned-write", misaligned_write, 2, {0}},
		{"counted", counted, 1, {0}},
		{"calls", calls, 1, {0}},
		{"long-inject", long_inject, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
