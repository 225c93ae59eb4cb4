/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which tagged receive an atomic matches: the same as a message would, before or after the receive
 * is posted. Also atomics that do not fit, cancelled receives, and atomics to oneself.
 */
#include "api.h"
#include "lib/atomic.h"
#include "lib/tagged.h"

/* Adds to the first word of the matching receive, and waits for completion. */
static void add(struct amo_side *m, uint64_t tag, uint64_t value)
{
	struct amo one = {.type = FI_UINT64, .op = FI_SUM};

	tagged_aim(&one, m, tag, 0, 1);
	one.buf->addr = &value;
	AMO_RUN(&m->s, &one);
}

static void message(struct amo_side *m, uint64_t tag, uint64_t value)
{
	POST(&m->s, fi_tsend(m->s.ep, &value, sizeof(value), NULL, m->s.addr[0], tag, &value));
	SENT(&m->s, &value, FI_TAGGED);
}

/* Receives of one word, in the order of posting; then the incoming atomics and messages. */
static const struct {
	uint64_t tag, ignore;
} posted[] = {{1, 0}, {0x100, 0xff}, {1, 0}, {0x100, 0x0f}, {1, 0}, {0, UINT64_MAX}, {9, 0}};

static const struct {
	uint64_t tag;
	bool message;
	int meets; /* index into posted */
} coming[] = {{1, false, 0},     {0x1ab, false, 1}, {1, true, 2}, {0x10f, true, 3},
	      {0x1ab, false, 5}, {1, false, 4},     {9, true, 6}};

static void matching(struct api *a)
{
	struct amo_side m;
	uint64_t *words;

	tagged_open(&m, a);
	words = (uint64_t *)(void *)amo_memory(a, 0);
	for (size_t i = 0; !a->rank && i < API_COUNT(posted); i++) {
		words[i] = 1000;
		POST(&m.s, fi_trecv(m.s.ep, &words[i], sizeof(words[i]), NULL, FI_ADDR_UNSPEC,
				    posted[i].tag, posted[i].ignore, &words[i]));
	}
	api_meet(a);
	for (size_t i = 0; i < API_COUNT(coming); i++) {
		uint64_t *word = &words[coming[i].meets];

		if (a->rank && coming[i].message)
			message(&m, coming[i].tag, i);
		else if (a->rank)
			add(&m, coming[i].tag, i);
		else if (coming[i].message)
			CHECK(GOT(&m.s, word, FI_TAGGED, 8).tag == coming[i].tag);
		else
			tagged_ended(&m, word, coming[i].tag, 8);
		api_meet(a);
		CHECK_EQ(*word, coming[i].message ? i : 1000 + i);
	}
	amo_close(&m);
}

/* No receive is posted yet: messages and atomics match in their order of arrival. */
static void on_match(struct api *a)
{
	enum { COUNT = 12 };
	static uint64_t operands[COUNT];
	static struct amo ones[COUNT];
	struct amo_side m;
	uint64_t *words;

	tagged_open(&m, a);
	words = (uint64_t *)(void *)amo_memory(a, 0);
	for (uint64_t i = 0; i < COUNT; i++) {
		ones[i] = (struct amo){.type = FI_UINT64, .op = FI_SUM};
		operands[i] = i;
		words[i] = 50; /* expected value of both */
		tagged_aim(&ones[i], &m, 3, 0, 1);
		ones[i].buf->addr = &operands[i];
		if (a->rank && i % 3)
			POST(&m.s, amo_post(m.s.ep, &ones[i]));
		else if (a->rank)
			message(&m, 3, i);
		api_meet(a); /* this message arrives before the next is sent */
		QUIET(&m.s, m.s.tx, 2);
	}
	api_meet(a);
	for (uint64_t i = 0; i < COUNT; i++) {
		if (!a->rank) {
			POST(&m.s,
			     fi_trecv(m.s.ep, &words[i], 8, NULL, FI_ADDR_UNSPEC, 3, 0, &words[i]));
			if (i % 3)
				tagged_ended(&m, &words[i], 3, 8);
			else
				GOT(&m.s, &words[i], FI_TAGGED, 8);
		} else if (i % 3) {
			AMO_DONE(&m.s, &ones[i]);
		}
		api_meet(a);
		CHECK_EQ(words[i], i % 3 ? 50 + i : i);
	}
	amo_close(&m);
}

/* Many atomics wait; receives are posted in reverse order. Each atomic gets its own result. */
static void many(struct api *a)
{
	enum { COUNT = 200 };
	static uint64_t results[COUNT], one_each = 1;
	struct amo_side m;
	uint64_t *words;

	tagged_open(&m, a);
	words = (uint64_t *)(void *)amo_memory(a, 0);
	for (uint64_t i = 0; i < COUNT; i++) {
		struct amo one = {.family = AMO_FETCH, .type = FI_UINT64, .op = FI_SUM};

		words[i] = 100 * i;
		tagged_aim(&one, &m, i, 0, 1);
		one.buf->addr = &one_each;
		one.result->addr = one.context = &results[i];
		if (a->rank)
			POST(&m.s, amo_post(m.s.ep, &one));
	}
	api_meet(a);
	for (uint64_t i = COUNT; !a->rank && i--;)
		POST(&m.s, fi_trecv(m.s.ep, &words[i], 8, NULL, FI_ADDR_UNSPEC, i, 0, &words[i]));
	for (size_t i = 0; i < COUNT; i++)
		TAKE(&m.s, a->rank ? m.s.tx : m.s.rx);
	for (uint64_t i = 0; i < COUNT; i++) {
		if (a->rank)
			CHECK_EQ(results[i], 100 * i);
		else
			CHECK_EQ(words[i], 100 * i + 1);
	}
	amo_close(&m);
}

/* An atomic longer than the receive's buffer: both sides get an error, memory is unchanged. */

static const struct {
	uint64_t offset;
	size_t count, room;
} small[] = {{8, 2, 16},
	     {0, 3, 16},
	     {16, 1, 16},
	     {1000, 1, 16},
	     {UINT64_MAX - 3, 1, 16},
	     {UINT64_MAX - 7, 1, 16},
	     {0, 1, 7},
	     {0, 512, 4095},
	     {0, 1, 0}};

#define SMALL     (3 * API_COUNT(small)) /* per family, half of them with a receive posted before */
#define SMALL_GAP 4096

static unsigned char small_seen[2 * SMALL]; /* failures of each atomic; also its context */

static void small_receives(struct amo_side *m, bool late)
{
	for (uint64_t i = late; i < 2 * SMALL; i += 2)
		POST(&m->s, fi_trecv(m->s.ep, amo_memory(m->s.a, 0) + i * SMALL_GAP,
				     small[i / 2 % API_COUNT(small)].room, NULL, FI_ADDR_UNSPEC,
				     TAGGED_TAG + i, 0, &small_seen[i]));
}

static void small_atomics(struct amo_side *m, uint64_t *result)
{
	static uint64_t buf[512];

	for (uint64_t i = 0; i < 2 * SMALL; i++) {
		struct amo one = {.family = (enum amo_family)(i / 2 / API_COUNT(small)),
				  .type = FI_UINT64};

		one.op = one.family == AMO_COMPARE ? FI_CSWAP_NE : FI_SUM;
		one.buf->addr = one.compare->addr = buf;
		one.result->addr = result;
		tagged_aim(&one, m, TAGGED_TAG + i, small[i / 2 % API_COUNT(small)].offset,
			   small[i / 2 % API_COUNT(small)].count);
		one.context = &small_seen[i];
		POST(&m->s, amo_post(m->s.ep, &one));
	}
}

static void too_small(struct api *a)
{
	static uint64_t result[512];
	struct amo_side m;

	tagged_open(&m, a);
	memset(result, 0x77, sizeof(result));
	if (!a->rank) {
		data_fill(amo_memory(a, 0), AMO_REGION, 1);
		small_receives(&m, false);
	}
	api_meet(a);
	if (a->rank)
		small_atomics(&m, result);
	api_meet(a);
	if (!a->rank)
		small_receives(&m, true);
	for (size_t i = 0; i < 2 * SMALL; i++) {
		struct fi_cq_err_entry e = a->rank ? TAKE_ERR(&m.s, m.s.tx, FI_EINVAL)
						   : TAKE_ERR(&m.s, m.s.rx, FI_ETRUNC);
		size_t at = (size_t)((unsigned char *)e.op_context - small_seen);

		CHECK(at < 2 * SMALL);
		CHECK_EQ(small_seen[at]++, 0);
	}
	api_meet(a);
	data_check(amo_memory(a, 0), 2 * SMALL * SMALL_GAP, 1);
	CHECK(data_all(result, sizeof(result), 0x77));
	amo_close(&m);
}

/* A cancelled receive is not matched; the next one is. */
static void cancelled(struct api *a)
{
	struct amo_side m;
	int first, second;

	tagged_open(&m, a);
	tagged_ready(a, 1);
	if (!a->rank) {
		tagged_receive(&m, 8, TAGGED_TAG, 0, &first);
		OK(fi_cancel(&m.s.ep->fid, &first));
		CHECK(TAKE_ERR(&m.s, m.s.rx, FI_ECANCELED).op_context == &first);
		api_meet(a);
		QUIET(&m.s, m.s.rx, TAGGED_QUIET);
		memset(tagged_buffer(a), 0, 8);
		tagged_receive(&m, 8, TAGGED_TAG, 0, &second);
		tagged_ended(&m, &second, TAGGED_TAG, 8);
		CHECK_EQ(tagged_buffer(a)[0], 42);
	} else {
		api_meet(a);
		add(&m, TAGGED_TAG, 42);
	}
	amo_close(&m);
}

/* Atomics to oneself, with and without a receive posted. */
static void oneself(struct api *a)
{
	struct amo_side m;
	uint64_t word = 5, five = 5, old = 0;

	tagged_open(&m, a);
	for (int late = 0; late < 2; late++) {
		struct amo one = {.family = AMO_FETCH, .type = FI_UINT64, .op = FI_SUM};

		tagged_aim(&one, &m, TAGGED_TAG, 0, 1);
		one.buf->addr = &five;
		one.result->addr = &old;
		if (late) {
			POST(&m.s, amo_post(m.s.ep, &one));
			QUIET(&m.s, m.s.tx, TAGGED_QUIET);
		}
		POST(&m.s, fi_trecv(m.s.ep, &word, 8, NULL, FI_ADDR_UNSPEC, TAGGED_TAG, 0, &word));
		if (!late)
			POST(&m.s, amo_post(m.s.ep, &one));
		AMO_DONE(&m.s, &one);
		tagged_ended(&m, &word, TAGGED_TAG, 8);
		CHECK_EQ(old, late ? 10 : 5);
		CHECK_EQ(word, late ? 15 : 10);
	}
	amo_close(&m);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"matching", matching, 2, {0}},   {"on_match", on_match, 2, {0}},
		{"many", many, 2, {0}},           {"too-small", too_small, 2, {0}},
		{"cancelled", cancelled, 2, {0}}, {"oneself", oneself, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
