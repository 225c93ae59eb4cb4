/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves which one-sided requests of a peer the target performs; refused ones touch no memory and
 * are answered.
 */
#include "fake_rma.h"

#define SHORT  WIRE_DATA
#define PUT(f) .op = WIRE_PUT, .flags = (f), .seq = 7, .first = 1
#define GET(f) .op = WIRE_GET, .flags = (f), .seq = 7
#define AMO(f) .op = WIRE_AMO, .flags = (f), .seq = 7
#define ADD(n)                                                                                     \
	{                                                                                          \
		.op = FI_SUM, .type = FI_UINT64, .form = ATOMIC_BASE, .len = 8 * (n)               \
	}
#define CSWAP(n)                                                                                   \
	{                                                                                          \
		.op = FI_CSWAP, .type = FI_UINT64, .form = ATOMIC_COMPARE, .len = 8 * (n)          \
	}

/* ---- Valid requests work; without this the refusals below would prove nothing ---- */

START_TEST(short_forms)
{
	struct request put = {PUT(SHORT), .key = KEY_ALL, .addr = 100, .len = 8};
	struct request get = {GET(SHORT), .key = KEY_ALL, .addr = 100, .want = 8};
	struct request add = {AMO(SHORT),    .key = KEY_ALL, .addr = 104,
			      .amo = ADD(2), .len = 16,      .first = 9};
	uint64_t had[2], operand[2];

	request_say(&put);
	answer_expect_done(7);
	for (size_t i = 0; i < 8; i++)
		copy[0].data[100 + i] = request_byte(&put, i);
	ck_assert(memory_untouched());
	request_say(&get);
	answer_expect_result(7, &copy[0].data[100], 8);
	memcpy(had, &copy[0].data[104], 16);
	for (size_t i = 0; i < 16; i++)
		((unsigned char *)operand)[i] = request_byte(&add, i);
	request_say(&add);
	answer_expect_done(7);
	for (int i = 0; i < 2; i++)
		had[i] += operand[i];
	memcpy(&copy[0].data[104], had, 16);
	ck_assert(memory_untouched());
	add.amo.form = ATOMIC_FETCH;
	request_say(&add);
	answer_expect_result(7, had, 16);
}
END_TEST

/* The answer says that nobody waits for it only if it answers a single request that says so. */
START_TEST(answers_that_nobody_awaits)
{
	struct request later = {PUT(SHORT | WIRE_LATER), .key = KEY_ALL, .addr = 100, .len = 8};
	struct request awaited = {PUT(SHORT), .key = KEY_ALL, .addr = 100, .len = 8};
	struct request ranges = {AMO(WIRE_LONG | WIRE_LATER), .count = 1,
				 .range = {{104, 8, KEY_ALL}}, .amo = ADD(1), .len = 8};

	awaited.seq = 1;
	request_say(&awaited);
	answer_expect_done(1);
	later.seq = 2;
	request_say(&later);
	ck_assert_uint_eq(answer_take().head, WIRE_HEAD(WIRE_DONE, WIRE_LATER, 0, 2));
	ranges.seq = 3;
	request_say(&ranges);
	ck_assert_uint_eq(answer_take().head, WIRE_HEAD(WIRE_DONE, WIRE_LATER, 0, 3));
	later.seq = 4;
	request_say(&later);
	ranges.seq = 5;
	request_say(&ranges);
	answer_expect_done(5);
	later.seq = 6;
	request_say(&later);
	ck_assert_uint_eq(answer_take().head, WIRE_HEAD(WIRE_DONE, WIRE_LATER, 0, 6));
}
END_TEST

/* Aligned or not, of eight bytes or four: the value, its answer, and what was there before. */
START_TEST(atomics_on_one_element)
{
	static const struct {
		uint64_t addr;
		uint32_t len;
		enum fi_datatype type;
	} cases[] = {
		{104, 8, FI_UINT64}, {108, 4, FI_UINT32}, {101, 8, FI_UINT64}, {110, 2, FI_UINT16}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t at = cases[i].addr;
		struct request r = {AMO(SHORT),
				    .key = KEY_ALL,
				    .addr = at,
				    .amo = {.op = FI_SUM,
					    .type = (uint8_t)cases[i].type,
					    .form = ATOMIC_FETCH,
					    .len = cases[i].len},
				    .len = cases[i].len,
				    .first = 5};
		uint64_t had = 0, operand = 0, sum;

		memcpy(&had, &copy[0].data[at], cases[i].len);
		for (size_t j = 0; j < cases[i].len; j++)
			((unsigned char *)&operand)[j] = request_byte(&r, j);
		request_say(&r);
		answer_expect_result(7, &had, cases[i].len);
		sum = had + operand;
		memcpy(&copy[0].data[at], &sum, cases[i].len);
		ck_assert(memory_untouched());
		/* Compared with what is not there: nothing changes. */
		r.amo.form = ATOMIC_COMPARE;
		r.amo.op = FI_CSWAP;
		r.len = 2 * cases[i].len;
		request_say(&r);
		answer_expect_result(7, &sum, cases[i].len);
		ck_assert(memory_untouched());
		/* The other form without a result is only marked done. */
		r.amo.form = ATOMIC_BASE;
		r.amo.op = FI_ATOMIC_WRITE;
		r.len = cases[i].len;
		if (at % 8 == 0 || cases[i].len < 8) {
			request_say(&r);
			answer_expect_done(7);
			memcpy(&copy[0].data[at], &operand, cases[i].len);
		}
		ck_assert(memory_untouched());
	}
}
END_TEST

START_TEST(long_forms)
{
	struct request put = {.op = WIRE_PUT,
			      .flags = WIRE_LONG,
			      .seq = 9,
			      .count = 3,
			      .range = {{10, 4, KEY_ALL}, {0, 0, KEY_WRITE}, {20, 6, KEY_WRITE}},
			      .offset = 3,
			      .len = 5,
			      .first = 1};
	struct request get = {.op = WIRE_GET,
			      .flags = WIRE_LONG,
			      .seq = 10,
			      .count = 2,
			      .range = {{REGION, 0, KEY_ALL}, {5, 200, KEY_READ}}};

	request_say(&put); /* bytes 3 to 7 of ten: no completion yet */
	worker_progress(fake.worker);
	ck_assert_uint_eq(fake.count, 0);
	copy[0].data[13] = 1;
	for (size_t i = 0; i < 4; i++)
		copy[0].data[20 + i] = request_byte(&put, 1 + i);
	ck_assert(memory_untouched());
	put.offset = 8;
	put.len = 2;
	request_say(&put); /* the last bytes */
	answer_expect_done(9);
	copy[0].data[24] = 1;
	copy[0].data[25] = 4;
	ck_assert(memory_untouched());
	request_say(&get);
	answer_expect_result(10, &copy[1].data[5], 200);
}
END_TEST

START_TEST(sixteen_ranges)
{
	struct request add = {.op = WIRE_AMO,
			      .flags = WIRE_LONG | WIRE_CQ,
			      .seq = 1,
			      .count = WIRE_IOV_MAX,
			      .amo = {.op = FI_BXOR, .type = FI_UINT8, .form = ATOMIC_BASE},
			      .len = WIRE_IOV_MAX};

	add.cq = 0x1234567890;
	add.amo.len = WIRE_IOV_MAX;
	for (size_t i = 0; i < WIRE_IOV_MAX; i++) {
		add.range[i] = (struct wire_range){i * 2, 1, i % 2 ? KEY_ALL : KEY_WRITE};
		copy[0].data[i * 2] ^= request_byte(&add, i);
	}
	request_say(&add);
	answer_expect_done(1);
	ck_assert(memory_untouched());
	ck_assert_uint_eq(fake_read()->data, 0x1234567890);
}
END_TEST

/* ---- Malformed requests ---- */

static const struct request senseless[] = {
	{PUT(0), .key = KEY_ALL, .len = 8},
	{PUT(WIRE_LONG | WIRE_DATA), .len = 8, .count = 1, .range = {{0, 8, KEY_ALL}}},
	{PUT(SHORT | WIRE_CQ), .key = KEY_ALL, .cut = 1},
	{GET(0), .key = KEY_ALL, .want = 8},
	{GET(SHORT), .key = KEY_ALL, .want = 8, .cut = 1},
	{GET(SHORT), .key = KEY_ALL, .want = 8, .more = 1},
	{GET(SHORT | WIRE_CQ), .key = KEY_ALL, .want = 8, .cut = 8},
	{PUT(WIRE_LONG)}, /* no ranges: no key */
	{PUT(WIRE_LONG | WIRE_CQ), .cq = 7},
	{GET(WIRE_LONG)},
	{PUT(WIRE_LONG), .cut = 1},
	{GET(WIRE_LONG), .cut = 16},
	{PUT(WIRE_LONG), .count = 17},
	{PUT(WIRE_LONG), .count = 1, .said = UINT64_MAX, .len = 8},
	{PUT(WIRE_LONG), .said = 1ull << 61, .len = 8},
	{PUT(WIRE_LONG), .count = 1, .said = 2, .range = {{0, 23, KEY_ALL}}, .len = 23},
	{GET(WIRE_LONG), .count = 2, .range = {{0, UINT64_MAX, KEY_ALL}, {0, 2, KEY_ALL}}},
	{PUT(WIRE_LONG), .count = 2, .range = {{0, UINT64_MAX - 7, KEY_ALL}, {0, 16, KEY_ALL}},
	 .len = 8},
	{PUT(WIRE_LONG), .count = 1, .range = {{0, 8, KEY_ALL}}, .offset = 9},
	{PUT(WIRE_LONG), .count = 1, .range = {{0, 8, KEY_ALL}}, .offset = 1, .len = 8},
	{PUT(WIRE_LONG), .count = 1, .range = {{0, 8, KEY_ALL}}, .offset = UINT64_MAX - 3,
	 .len = 8},
	{PUT(WIRE_LONG), .count = 1, .range = {{0, 8, KEY_ALL}}, .len = 8, .more = 1},
	{GET(WIRE_LONG), .count = 1, .range = {{0, 8, KEY_ALL}}, .offset = 1},
	{GET(WIRE_LONG), .count = 1, .range = {{0, 8, KEY_ALL}}, .more = 1},
};

/*
 * Checks that a malformed request is not performed, has one answer, and a log line with its length.
 */
static void expect_senseless(const struct request *r)
{
	static struct raw raw;
	char words[64];

	logged.count = 0;
	request_write(&raw, r);
	raw_say(&raw);
	answer_expect_failed(7, FI_EINVAL, FI_EINVAL);
	ck_assert(memory_untouched());
	ck_assert_uint_eq(logged.count, 1);
	snprintf(words, sizeof(words), " %zu bytes", raw.p.len);
	ck_assert_ptr_nonnull(strstr(logged.text, words));
}

START_TEST(reads_and_writes_without_sense)
{
	for (size_t i = 0; i < sizeof(senseless) / sizeof(senseless[0]); i++)
		expect_senseless(&senseless[i]);
}
END_TEST

static const struct request senseless_atomics[] = {
	{AMO(0), .key = KEY_ALL, .amo = ADD(1), .len = 8},
	{AMO(SHORT), .key = KEY_ALL, .amo = ADD(1), .cut = 1},
	{AMO(SHORT), .key = KEY_ALL, .amo = ADD(1), .len = 7},
	{AMO(SHORT), .key = KEY_ALL, .amo = ADD(1), .len = 9},
	{AMO(SHORT), .key = KEY_ALL, .amo = ADD(1), .len = 16},
	{AMO(SHORT), .key = KEY_ALL, .amo = ADD(0)},
	{AMO(SHORT), .key = KEY_ALL, .amo = ADD(513), .len = 8 * 513},
	{AMO(SHORT), .key = KEY_ALL, .amo = {FI_SUM, FI_UINT64, ATOMIC_BASE, 0, UINT32_MAX},
	 .len = 8},
	{AMO(SHORT), .key = KEY_ALL, .amo = {FI_SUM, FI_UINT64, ATOMIC_BASE, 0, 12}, .len = 12},
	{AMO(SHORT), .key = KEY_ALL, .amo = {255, FI_UINT64, ATOMIC_BASE, 0, 8}, .len = 8},
	{AMO(SHORT), .key = KEY_ALL, .amo = {FI_SUM, 255, ATOMIC_BASE, 0, 8}, .len = 8},
	{AMO(SHORT), .key = KEY_ALL, .amo = {FI_SUM, FI_UINT64, ATOMIC_FORMS, 0, 8}, .len = 8},
	{AMO(SHORT), .key = KEY_ALL, .amo = {FI_SUM, FI_UINT64, 255, 0, 8}, .len = 8},
	{AMO(SHORT), .key = KEY_ALL, .amo = {FI_ATOMIC_READ, FI_UINT64, ATOMIC_BASE, 0, 8}},
	{AMO(SHORT), .key = KEY_ALL, .amo = {FI_ATOMIC_READ, FI_UINT64, ATOMIC_FETCH, 0, 8},
	 .len = 8},
	{AMO(SHORT), .key = KEY_ALL, .amo = {FI_CSWAP, FI_UINT64, ATOMIC_BASE, 0, 8}, .len = 8},
	{AMO(SHORT), .key = KEY_ALL, .amo = {FI_SUM, FI_UINT64, ATOMIC_COMPARE, 0, 8}, .len = 16},
	{AMO(SHORT), .key = KEY_ALL, .amo = {FI_BOR, FI_DOUBLE, ATOMIC_BASE, 0, 8}, .len = 8},
	{AMO(SHORT), .key = KEY_ALL, .amo = CSWAP(1), .len = 8},
	{AMO(SHORT), .key = KEY_ALL, .amo = CSWAP(1), .len = 24},
	{AMO(WIRE_LONG), .amo = ADD(1), .len = 8},
	{AMO(WIRE_LONG), .amo = ADD(0)},
	{AMO(WIRE_LONG), .count = 1, .range = {{0, 16, KEY_ALL}}, .amo = ADD(1), .len = 8},
	{AMO(WIRE_LONG), .count = 1, .range = {{0, 8, KEY_ALL}}, .offset = 8, .amo = ADD(1),
	 .len = 8},
	{AMO(WIRE_LONG), .count = 2, .range = {{0, 12, KEY_ALL}, {16, 4, KEY_ALL}}, .amo = ADD(2),
	 .len = 16},
	{AMO(WIRE_LONG), .count = 2, .range = {{0, UINT64_MAX - 7, KEY_ALL}, {16, 16, KEY_ALL}},
	 .amo = ADD(1), .len = 8},
};

START_TEST(atomics_without_sense)
{
	for (size_t i = 0; i < sizeof(senseless_atomics) / sizeof(senseless_atomics[0]); i++)
		expect_senseless(&senseless_atomics[i]);
}
END_TEST

/* ---- Access that is denied ---- */

/*
 * Checks that a write, a read and an atomic are denied, also if the first of two ranges is
 * permitted.
 */
static void expect_denied(struct wire_range bad, int err, int reason)
{
	struct request all[] = {{.op = WIRE_PUT, .len = bad.len % 4096},
				{.op = WIRE_GET, .want = bad.len},
				{.op = WIRE_AMO, .amo = ADD(1), .len = 8}};
	char words[32];

	snprintf(words, sizeof(words), "key %#llx", (unsigned long long)bad.key);
	for (unsigned int i = 0; i < 6; i++) {
		struct request *r = &all[i % 3];

		if (bad.len != 8 && (r->op == WIRE_AMO || bad.len > 4096) && i % 3 != 1)
			continue;
		r->flags = SHORT;
		r->seq = 1000 + i;
		r->addr = bad.addr;
		r->key = bad.key;
		if (i >= 3) {
			r->flags = WIRE_LONG;
			r->count = 2;
			r->range[0] = (struct wire_range){0, 8, KEY_ALL};
			r->range[1] = bad;
			r->len = r->len ? r->len + 8 : 0;
			r->amo.len = 16;
		}
		logged.count = 0;
		request_say(r);
		answer_expect_failed(r->seq, err, reason);
		ck_assert(memory_untouched());
		ck_assert_uint_eq(logged.count, 1);
		ck_assert_ptr_nonnull(strstr(logged.text, words));
	}
}

START_TEST(keys)
{
	expect_denied((struct wire_range){0, 8, KEY_UNKNOWN}, FI_EACCES, FI_ENOKEY);
	expect_denied((struct wire_range){0, 8, UINT64_MAX}, FI_EACCES, FI_ENOKEY);
	expect_denied((struct wire_range){0, 0, KEY_UNKNOWN}, FI_EACCES, FI_ENOKEY);
	expect_denied((struct wire_range){0, 8, KEY_GONE}, FI_EACCES, FI_ENOKEY);
	expect_denied((struct wire_range){0, 8, KEY_OFF}, FI_EACCES, FI_ENOKEY);
	expect_denied((struct wire_range){0, 8, KEY_LOCAL}, FI_EACCES, FI_ENOKEY);
}
END_TEST

START_TEST(bounds)
{
	expect_denied((struct wire_range){REGION - 7, 8, KEY_ALL}, FI_EINVAL, FI_EINVAL);
	expect_denied((struct wire_range){REGION, 8, KEY_ALL}, FI_EINVAL, FI_EINVAL);
	expect_denied((struct wire_range){REGION + 1, 0, KEY_ALL}, FI_EINVAL, FI_EINVAL);
	expect_denied((struct wire_range){UINT64_MAX - 3, 8, KEY_ALL}, FI_EINVAL, FI_EINVAL);
	expect_denied((struct wire_range){UINT64_MAX - 7, 8, KEY_ALL}, FI_EINVAL, FI_EINVAL);
	expect_denied((struct wire_range){1ull << 63, 8, KEY_ALL}, FI_EINVAL, FI_EINVAL);
	expect_denied((struct wire_range){0, REGION + 1, KEY_ALL}, FI_EINVAL, FI_EINVAL);
	expect_denied((struct wire_range){8, UINT64_MAX - 8, KEY_ALL}, FI_EINVAL, FI_EINVAL);
}
END_TEST

START_TEST(rights)
{
	static const struct {
		struct request r;
		bool granted;
	} cases[] = {
		{{PUT(SHORT), .key = KEY_READ, .len = 8}, false},
		{{GET(SHORT), .key = KEY_WRITE, .want = 8}, false},
		{{AMO(SHORT), .key = KEY_READ, .amo = ADD(1), .len = 8}, false},
		{{AMO(SHORT), .key = KEY_WRITE, .amo = ADD(1), .len = 8}, true},
		{{AMO(SHORT), .key = KEY_READ,
		  .amo = {FI_ATOMIC_READ, FI_UINT64, ATOMIC_FETCH, 0, 8}},
		 true},
		{{AMO(SHORT), .key = KEY_WRITE,
		  .amo = {FI_ATOMIC_READ, FI_UINT64, ATOMIC_FETCH, 0, 8}},
		 false},
		{{AMO(SHORT), .key = KEY_WRITE, .amo = CSWAP(1), .len = 16}, false},
		{{AMO(SHORT), .key = KEY_READ, .amo = CSWAP(1), .len = 16}, false},
		{{AMO(SHORT), .key = KEY_READ, .amo = {FI_SUM, FI_UINT64, ATOMIC_FETCH, 0, 8},
		  .len = 8},
		 false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fake_packet p;

		request_say(&cases[i].r);
		p = answer_take();
		ck_assert_uint_eq(wire_id(p.head), 7);
		ck_assert_int_eq(wire_op(p.head) != WIRE_FAILED, cases[i].granted);
		if (!cases[i].granted)
			ck_assert_uint_eq(p.tag, FI_EACCES | FI_EACCES << 16);
		if (cases[i].granted)
			memcpy(copy, memory, sizeof(copy));
		ck_assert(memory_untouched());
	}
}
END_TEST

START_TEST(what_else_is_refused)
{
	struct request put = {PUT(SHORT | WIRE_COMMIT), .key = KEY_ALL, .len = 8};
	struct request torn = {AMO(SHORT), .key = KEY_ALL, .addr = 12,
			       .amo = {FI_ATOMIC_WRITE, FI_UINT64, ATOMIC_BASE, 0, 16}, .len = 16};

	request_say(&put);
	answer_expect_failed(7, FI_EINVAL, FI_EINVAL);
	ck_assert_ptr_nonnull(strstr(logged.text, "region 0xa "));
	request_say(&torn);
	answer_expect_failed(7, FI_EINVAL, FI_EINVAL);
	ck_assert_ptr_nonnull(strstr(logged.text, "not aligned"));
	ck_assert(memory_untouched());
	put.flags = SHORT | WIRE_CQ;
	put.cq = 77;
	put.seq = 8;
	request_say(&put); /* denied, so no completion */
	ck_assert_uint_eq(fake_read()->data, 77);
	answer_expect_done(8);
	put.key = KEY_READ;
	request_say(&put);
	answer_expect_failed(8, FI_EACCES, FI_EACCES);
	fake_expect_nothing();
}
END_TEST

/* ---- Atomics on tagged receives ---- */

#define TAG 0x77

static const struct request senseless_matched[] = {
	{AMO(SHORT | WIRE_MATCH), .key = TAG, .amo = ADD(1), .len = 7},
	{AMO(SHORT | WIRE_MATCH), .key = TAG, .amo = ADD(0)},
	{AMO(SHORT | WIRE_MATCH), .key = TAG, .amo = {255, FI_UINT64, 0, 0, 8}, .len = 8},
	{AMO(WIRE_MATCH), .key = TAG, .amo = ADD(1), .len = 8},
	{AMO(WIRE_LONG | WIRE_MATCH), .key = TAG, .amo = ADD(1), .len = 8},
	{AMO(WIRE_LONG | WIRE_MATCH), .key = TAG, .said = 17, .amo = ADD(1), .len = 8},
	{AMO(WIRE_LONG | WIRE_MATCH), .count = 2, .range = {{0, 8, TAG}, {8, 8, TAG + 1}},
	 .amo = ADD(2), .len = 16},
};

/* Malformed atomics match no receive; the posted receive stays for a valid one. */
START_TEST(matched_without_sense)
{
	struct request right = {AMO(SHORT | WIRE_MATCH), .key = TAG, .addr = 8, .amo = ADD(1),
				.len = 8};
	uint64_t word;

	ck_assert_int_eq(fi_trecv(fake.ep, memory[0].data, 64, NULL, fake.addr, TAG, 0, &right), 0);
	for (size_t i = 0; i < sizeof(senseless_matched) / sizeof(senseless_matched[0]); i++) {
		logged.count = 0;
		request_say(&senseless_matched[i]);
		answer_expect_ats(7, FI_EOPNOTSUPP, 0);
		ck_assert_uint_eq(logged.count, 1);
		fake_expect_nothing();
		ck_assert(memory_untouched());
	}
	ck_assert_uint_eq(ep_of(fake.ep)->rx->unexpected_bytes, 0);
	request_say(&right);
	answer_expect_ats(7, 0, 0);
	fake_expect(&right, FI_TAGGED | FI_RECV | FI_ATOMIC);
	memcpy(&word, &copy[0].data[8], 8);
	for (size_t i = 0; i < 8; i++)
		word += (uint64_t)request_byte(&right, i) << 8 * i;
	memcpy(&copy[0].data[8], &word, 8);
	ck_assert(memory_untouched());
}
END_TEST

/* Beyond the receive's buffer, by a little or by so much that the address wraps. */
START_TEST(matched_out_of_bounds)
{
	static const uint64_t at[] = {57, 64, UINT64_MAX, UINT64_MAX - 7, 1ull << 63};
	struct request r = {AMO(SHORT | WIRE_MATCH), .key = TAG, .amo = ADD(1), .len = 8};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct fi_cq_err_entry error;

		logged.count = 0;
		r.addr = at[i];
		ck_assert_int_eq(fi_trecv(fake.ep, memory[0].data, 64, NULL, fake.addr, TAG, 0, &r),
				 0);
		request_say(&r);
		answer_expect_ats(7, FI_EINVAL, 0);
		error = fake_expect_error(&r, FI_ETRUNC);
		ck_assert_uint_eq(error.flags, FI_TAGGED | FI_RECV | FI_ATOMIC);
		ck_assert(memory_untouched());
		ck_assert_uint_eq(logged.count, 1);
		ck_assert_ptr_nonnull(strstr(logged.text, "tag 0x77"));
	}
}
END_TEST

/* ---- Notifications: a peer says that it accessed our memory directly ---- */

static void notify(unsigned int flags, struct wire_range range, size_t len)
{
	fake_says(WIRE_HEAD(WIRE_NOTIFY, flags, 0, 0), 0, 7, &range, len);
	worker_progress(fake.worker);
	ck_assert_uint_eq(fake.count, 0); /* never answered */
}

/* Remote CQ data comes with the key of a region that grants the access, closed or not. */
START_TEST(notifications_with_a_key)
{
	notify(WIRE_DATA, (struct wire_range){8, 100, KEY_ALL}, sizeof(struct wire_range));
	ck_assert_uint_eq(fake_read()->len, 100);
	notify(WIRE_DATA, (struct wire_range){0, REGION, KEY_GONE}, sizeof(struct wire_range));
	ck_assert_uint_eq(fake_read()->len, REGION);
	notify(0, (struct wire_range){0, 1, KEY_ALL}, sizeof(struct wire_range));
	fake_expect_nothing();
	ck_assert_uint_eq(logged.count, 0);
}
END_TEST

/* Without such a key, or beyond the region, nothing is written. */
START_TEST(notifications_without_a_key)
{
	static const struct wire_range wrong[] = {
		{0, 8, KEY_READ},   {0, 8, KEY_LOCAL},        {0, 8, KEY_OFF},
		{0, 8, UINT64_MAX}, {0, REGION + 1, KEY_ALL}, {REGION, 1, KEY_GONE},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		notify(WIRE_DATA, wrong[i], sizeof(wrong[i]));
		fake_expect_nothing();
		ck_assert_uint_ge(logged.count, i + 1);
	}
}
END_TEST

/* Whatever a notification contains, it harms nothing. */
START_TEST(notifications_without_sense)
{
	static const uint64_t keys[] = {KEY_ALL, KEY_OFF, KEY_GONE, UINT64_MAX};
	unsigned char bytes[(WIRE_IOV_MAX + 1) * sizeof(struct wire_range)] = {0};

	for (unsigned int flags = 0; flags < 0x100; flags++)
		for (unsigned int i = 0; i < 4; i++)
			for (size_t len = 0; len <= sizeof(bytes); len += len < 32 ? 4 : 24)
				fake_says(WIRE_HEAD(WIRE_NOTIFY, flags, i ? 0xffff : WORKER_RX_MAX,
						    5),
					  keys[i], 1, bytes, len);
	worker_progress(fake.worker);
	ck_assert_uint_eq(fake.count, 0);
	fake_expect_nothing();
	ck_assert(memory_untouched());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_rma_target");
	TCase *right = tcase_create("right"), *wrong = tcase_create("wrong");

	tcase_add_checked_fixture(right, rma_setup, rma_teardown);
	tcase_add_test(right, short_forms);
	tcase_add_test(right, answers_that_nobody_awaits);
	tcase_add_test(right, atomics_on_one_element);
	tcase_add_test(right, long_forms);
	tcase_add_test(right, sixteen_ranges);
	tcase_add_checked_fixture(wrong, rma_setup, rma_teardown);
	tcase_add_test(wrong, reads_and_writes_without_sense);
	tcase_add_test(wrong, atomics_without_sense);
	tcase_add_test(wrong, keys);
	tcase_add_test(wrong, bounds);
	tcase_add_test(wrong, rights);
	tcase_add_test(wrong, what_else_is_refused);
	tcase_add_test(wrong, matched_without_sense);
	tcase_add_test(wrong, matched_out_of_bounds);
	tcase_add_test(right, notifications_with_a_key);
	tcase_add_test(wrong, notifications_without_a_key);
	tcase_add_test(wrong, notifications_without_sense);
	suite_add_tcase(suite, right);
	suite_add_tcase(suite, wrong);
	return suite_run(suite);
}
