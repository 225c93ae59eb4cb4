/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics on tagged receives. They match receives in order with messages, change the buffer at an
 * offset, and complete the receive. Without a receive an atomic waits for one.
 */
#include "../valgrind.h"
#include "api.h"
#include "lib/atomic.h"
#include "lib/eval.h"
#include "lib/pieces.h"
#include "lib/tagged.h"

#define CQ_DATA UINT64_C(0x123456789abcdef0)

struct step {
	enum fi_datatype type;
	enum fi_op op;
	enum amo_family family;
	size_t count, n; /* elements, pieces */
	uint64_t offset; /* into the receive's buffer */
	uint64_t flags;
	bool early; /* post the receive before the atomic */
};

static const struct step steps[] = {
	{FI_UINT64, FI_SUM, AMO_BASE, 1, 1, 0, 0, true},
	{FI_UINT64, FI_SUM, AMO_BASE, 1, 1, 0, 0, false},
	{FI_UINT64, FI_ATOMIC_WRITE, AMO_BASE, 512, 1, 8, 0, true},
	{FI_INT32, FI_PROD, AMO_BASE, 5, 1, 5, FI_INJECT, true},
	{FI_INT32, FI_PROD, AMO_BASE, 5, 1, 5, FI_INJECT, false},
	{FI_UINT64, FI_BXOR, AMO_BASE, 4, 1, 64, FI_REMOTE_CQ_DATA, true},
	{FI_UINT64, FI_BXOR, AMO_BASE, 4, 1, 64, FI_REMOTE_CQ_DATA, false},
	{FI_DOUBLE, FI_SUM, AMO_FETCH, 1, 1, 0, 0, true},
	{FI_DOUBLE, FI_SUM, AMO_FETCH, 9, 1, 3, FI_MORE, false},
	{FI_INT128, FI_MIN, AMO_FETCH, 256, 1, 1, FI_DELIVERY_COMPLETE, true},
	{FI_INT16, FI_ATOMIC_READ, AMO_FETCH, 30, 1, 100, 0, true},
	{FI_INT16, FI_ATOMIC_READ, AMO_FETCH, 2048, 1, 100, 0, false},
	{FI_UINT64, FI_CSWAP, AMO_COMPARE, 2, 1, 8, 0, true},
	{FI_UINT32, FI_MSWAP, AMO_COMPARE, 1024, 1, 2, FI_INJECT, false},
	{FI_LONG_DOUBLE_COMPLEX, FI_CSWAP_NE, AMO_COMPARE, 3, 1, 32, 0, false},
	{FI_UINT64, FI_DIFF, AMO_BASE, 61, 16, 8, 0, true},
	{FI_UINT64, FI_DIFF, AMO_FETCH, 61, 8, 8, FI_INJECT, false},
	{FI_UINT16, FI_CSWAP_LE, AMO_COMPARE, 500, 5, 6, 0, true},
	{FI_UINT8, FI_CSWAP_NE, AMO_COMPARE, 4096, 16, 0, 0, false},
};

/* ---- The receiver ---------------------------------------------------------------------------- */

/* Posts a receive in pieces of uneven lengths, with whole elements each. */
static void receive_pieces(struct amo_side *m, const struct step *st, void *context)
{
	size_t size = eval_size(st->type), left = TAGGED_ROOM - st->offset;
	unsigned char *at = tagged_buffer(m->s.a);
	struct iovec iov[4];

	for (size_t i = 0; i < API_COUNT(iov); i++) {
		size_t len = i == 3 ? left : (i + 2) * size;

		left -= len;
		len += i ? 0 : st->offset;
		iov[i] = (struct iovec){at, len};
		at += len;
	}
	POST(&m->s,
	     fi_trecvv(m->s.ep, iov, NULL, API_COUNT(iov), FI_ADDR_UNSPEC, TAGGED_TAG, 0, context));
}

static void receiver(struct amo_side *m, const struct step *st, unsigned int seed)
{
	size_t len = st->offset + st->count * eval_size(st->type);
	struct fi_cq_tagged_entry e;

	if (st->early)
		tagged_ready(m->s.a, seed);
	else
		api_meet(m->s.a); /* the atomic waits here without a receive */
	if (st->n > 1)
		receive_pieces(m, st, &e);
	else
		tagged_receive(m, TAGGED_ROOM, TAGGED_TAG, 0, &e);
	if (st->early)
		api_meet_still(m->s.a);
	e = tagged_ended(m, &e, TAGGED_TAG, len);
	CHECK_EQ(e.flags & FI_REMOTE_CQ_DATA, st->flags & FI_REMOTE_CQ_DATA);
	if (st->flags & FI_REMOTE_CQ_DATA)
		CHECK_EQ(e.data, CQ_DATA + seed);
	api_meet(m->s.a);
}

/* ---- The initiator --------------------------------------------------------------------------- */

/* Operands and results of an atomic, and the expected values. */
struct values {
	unsigned char buf[4096], compare[4096], result[4096], before[TAGGED_ROOM],
		after[TAGGED_ROOM];
};

static void make_values(const struct step *st, struct values *v, unsigned int seed)
{
	size_t size = eval_size(st->type);

	data_fill(v->buf, sizeof(v->buf), seed + 1);
	data_fill(v->before, TAGGED_ROOM, seed);
	data_fill(v->after, TAGGED_ROOM, seed);
	memcpy(v->compare, v->before + st->offset, sizeof(v->compare));
	for (size_t at = size; at + size <= sizeof(v->compare); at += 2 * size)
		v->compare[at] ^= 1; /* every other compare value differs */
	for (size_t i = 0; i < st->count; i++)
		eval(st->type, st->op, v->after + st->offset + i * size, v->buf + i * size,
		     v->compare + i * size);
}

/* Splits all lists: operands in separate pieces, targets one after the other. */
static void split(struct amo *one, const struct step *st, struct pieces *p)
{
	uint64_t offset = st->offset;

	for (size_t i = 0; i < st->n; i++) {
		one->buf[i] = p[0].ioc[i];
		one->compare[i] = p[1].ioc[i];
		one->result[i] = p[2].ioc[i];
		one->target[i] = (struct fi_rma_ioc){offset, p[3].ioc[i].count, TAGGED_TAG};
		offset += p[3].ioc[i].count * p[3].size;
	}
	one->bufs = one->compares = one->results = one->targets = st->n;
}

static void check(struct api *a, const struct step *st, const struct values *v)
{
	size_t size = eval_size(st->type), end = st->offset + st->count * size;
	const unsigned char *now = tagged_buffer(a);

	CHECK(!memcmp(now, v->before, st->offset));
	CHECK(!memcmp(now + end, v->before + end, TAGGED_ROOM - end));
	CHECK(data_all(now - DATA_GAP, DATA_GAP, DATA_GUARD));
	CHECK(data_all(now + TAGGED_ROOM, DATA_GAP, DATA_GUARD));
	for (size_t at = 0; at < st->count * size; at += size) {
		CHECK(eval_same(st->type, now + st->offset + at, v->after + st->offset + at));
		if (st->family != AMO_BASE)
			CHECK(eval_same(st->type, v->result + at, v->before + st->offset + at));
	}
}

static void initiator(struct amo_side *m, const struct step *st, unsigned int seed)
{
	struct amo one = {.family = st->family, .type = st->type, .op = st->op, .flags = st->flags};
	static struct values v;
	struct pieces p[4];

	make_values(st, &v, seed);
	for (unsigned int i = 0; i < 4; i++)
		p[i] = pieces_new(eval_size(st->type), st->count, st->n, i);
	pieces_put(&p[0], v.buf);
	pieces_put(&p[1], v.compare);
	tagged_aim(&one, m, TAGGED_TAG, st->offset, st->count);
	one.data = CQ_DATA + seed;
	split(&one, st, p);
	if (st->early)
		api_meet_still(m->s.a);
	else
		tagged_ready(m->s.a, seed);
	POST(&m->s, amo_post(m->s.ep, &one));
	if (st->flags & FI_INJECT) {
		memset(p[0].memory, 0xee, PIECES_ROOM);
		memset(p[1].memory, 0xee, PIECES_ROOM);
	}
	if (!st->early) {
		QUIET(&m->s, m->s.tx, TAGGED_QUIET);
		api_meet(m->s.a);
	}
	AMO_DONE(&m->s, &one);
	pieces_get(&p[2], v.result);
	pieces_guarded(&p[2]);
	check(m->s.a, st, &v);
	for (int i = 0; i < 4; i++)
		free(p[i].memory);
	api_meet(m->s.a);
}

/* ---- The cases ------------------------------------------------------------------------------- */

static void forms(struct api *a)
{
	struct amo_side m;

	tagged_open(&m, a);
	for (unsigned int i = 0; i < API_COUNT(steps); i++) {
		if (steps[i].type >= FI_LONG_DOUBLE && in_valgrind())
			continue;
		if (a->rank)
			initiator(&m, &steps[i], i * 5);
		else
			receiver(&m, &steps[i], i * 5);
	}
	amo_close(&m);
}

#define PIECES 3
#define WORDS  16 /* words per piece; later pieces lie at lower addresses */

/* Adds words at a byte offset of a receive in pieces. `err`: expected end of the receive. */
struct spread {
	enum fi_op op;
	uint64_t offset;
	size_t count;
	int err;
	uint64_t operand[PIECES * WORDS], result[PIECES * WORDS];
};

static unsigned char *piece(struct api *a, int i)
{
	return amo_memory(a, 0) + (PIECES - i) * 16 * WORDS;
}

static void spread_target(struct amo_side *m)
{
	struct iovec iov[PIECES];

	for (int i = 0; i < PIECES; i++) {
		iov[i] = (struct iovec){piece(m->s.a, i), 8 * WORDS};
		data_fill(iov[i].iov_base, iov[i].iov_len, (unsigned int)i);
	}
	POST(&m->s, fi_trecvv(m->s.ep, iov, NULL, PIECES, FI_ADDR_UNSPEC, TAGGED_TAG, 0, m));
}

static void spread_act(struct amo_side *m, struct spread *s)
{
	struct amo one = {.family = AMO_FETCH, .type = FI_UINT64, .op = s->op};

	tagged_aim(&one, m, TAGGED_TAG, s->offset, s->count);
	one.buf->addr = s->operand;
	one.result->addr = s->result;
	data_fill(s->operand, sizeof(s->operand), 9);
	memset(s->result, 0, sizeof(s->result));
	POST(&m->s, amo_post(m->s.ep, &one));
	if (s->err)
		AMO_FAILED(&m->s, &one, FI_EINVAL);
	else
		AMO_DONE(&m->s, &one);
}

static void spread_check(struct amo_side *m, const struct spread *s)
{
	unsigned char want[PIECES][8 * WORDS], was[PIECES][8 * WORDS], none[8] = {0};

	for (int i = 0; i < PIECES; i++)
		data_fill(want[i], sizeof(want[i]), (unsigned int)i);
	memcpy(was, want, sizeof(was));
	for (size_t i = 0; i < s->count && !s->err; i++)
		eval(FI_UINT64, s->op, &want[0][0] + s->offset + 8 * i, &s->operand[i], NULL);
	for (int i = 0; i < PIECES; i++)
		CHECK(!memcmp(want[i], piece(m->s.a, i), sizeof(want[i])));
	for (size_t i = 0; i < s->count; i++)
		CHECK(!memcmp(&s->result[i], s->err ? none : &was[0][0] + s->offset + 8 * i, 8));
}

static void spread(struct amo_side *m, enum fi_op op, uint64_t offset, size_t count, int err)
{
	static struct spread s;
	struct api *a = m->s.a;

	s.op = op;
	s.offset = offset;
	s.count = count;
	s.err = err;
	if (!a->rank)
		spread_target(m);
	api_meet_still(a);
	if (a->rank)
		spread_act(m, &s);
	else if (err)
		CHECK(TAKE_ERR(&m->s, m->s.rx, err).op_context == m);
	else
		tagged_ended(m, m, TAGGED_TAG, offset + 8 * count);
	api_meet(a);
	if (a->rank)
		spread_check(m, &s);
	api_meet(a);
}

/*
 * The pieces of a receive form one buffer. An element across two pieces is refused, as are
 * unaligned writes of eight bytes. A refused atomic completes the receive with an error.
 */
static void scattered(struct api *a)
{
	struct amo_side m;

	tagged_open(&m, a);
	spread(&m, FI_SUM, 0, PIECES * WORDS, 0);
	spread(&m, FI_SUM, 24, 40, 0);
	spread(&m, FI_SUM, 8 * WORDS, 1, 0);
	spread(&m, FI_SUM, 4, WORDS - 1, 0);
	spread(&m, FI_SUM, 8, PIECES * WORDS, FI_ETRUNC);
	spread(&m, FI_SUM, 4, WORDS, FI_EINVAL);
	spread(&m, FI_SUM, 8 * WORDS - 1, 1, FI_EINVAL);
	spread(&m, FI_ATOMIC_WRITE, 4, 1, FI_EINVAL);
	amo_close(&m);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"forms", forms, 2, {0}},
		{"forms-no-cma", forms, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"scattered", scattered, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
