/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of atomics among themselves, with reads and writes, and behind a fence. */
#include "api.h"
#include "lib/atomic.h"
#include "lib/word.h"

#define WORDS 8192 /* reads and writes of 64 KiB */

static const size_t sizes[] = {1, 40, WORDS};

/* Returns the index of one of the three words, of `words`, that atomics change. */
static size_t spot(size_t words, int i)
{
	return i == 0 ? 0 : i == 1 ? words / 2 : words - 1;
}

static void ordered(struct fi_info *hints)
{
	hints->tx_attr->msg_order = hints->rx_attr->msg_order =
		FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW;
}

/* Writes, reads and atomics on words of rank 0, posted without waiting. */
struct script {
	struct amo_side m;
	uint64_t out[WORDS], in[WORDS];
	size_t words;
	unsigned int posted;
};

static void put(struct script *s, uint64_t value)
{
	for (size_t i = 0; i < s->words; i++)
		s->out[i] = value;
	POST(&s->m.s, fi_write(s->m.s.ep, s->out, s->words * 8, NULL, s->m.s.addr[0], s->m.base[0],
			       s->m.key[0], s->out));
	s->posted++;
}

static void get(struct script *s)
{
	POST(&s->m.s, fi_read(s->m.s.ep, s->in, s->words * 8, NULL, s->m.s.addr[0], s->m.base[0],
			      s->m.key[0], s->in));
	s->posted++;
}

/* Changes the three words by one atomic each. */
static void change(struct script *s, enum fi_op op, const uint64_t *value)
{
	for (int i = 0; i < 3; i++) {
		struct amo one = word_amo(&s->m, AMO_BASE, i == 1 ? AMO_MSG : AMO_PLAIN);

		one.op = op;
		one.buf->addr = (void *)(uintptr_t)value;
		one.target->addr += 8 * spot(s->words, i);
		if (i && spot(s->words, i) == spot(s->words, i - 1))
			continue;
		POST(&s->m.s, amo_post(s->m.s.ep, &one));
		s->posted++;
	}
}

static void finish(struct script *s)
{
	for (; s->posted; s->posted--)
		TAKE(&s->m.s, s->m.s.tx);
}

static void all_are(const struct script *s, const uint64_t *words, uint64_t value,
		    uint64_t at_spots, const char *what)
{
	char line[160];

	for (size_t i = 0; i < s->words; i++) {
		bool there =
			i == spot(s->words, 0) || i == spot(s->words, 1) || i == spot(s->words, 2);
		uint64_t want = there ? at_spots : value;

		if (words[i] == want)
			continue;
		snprintf(line, sizeof(line), "%s, word %zu of %zu: %#" PRIx64 ", wanted %#" PRIx64,
			 what, i, s->words, words[i], want);
		api_fail(line);
	}
}

/* Atomics after a write, before a write, and around a read: each sees the results before it. */
static void mixed(struct script *s, uint64_t round)
{
	uint64_t add = round + 7, value = round << 32;

	put(s, value);
	change(s, FI_SUM, &add);
	finish(s);
	all_are(s, word_at(s->m.s.a, 0), value, value + add, "write, atomic");

	change(s, FI_BXOR, &value);
	get(s);
	finish(s);
	all_are(s, s->in, value, (value + add) ^ value, "atomic, read");

	get(s);
	change(s, FI_ATOMIC_WRITE, &round);
	finish(s);
	all_are(s, s->in, value, (value + add) ^ value, "read, atomic");
	all_are(s, word_at(s->m.s.a, 0), value, round, "atomic write");

	change(s, FI_PROD, &add);
	put(s, ~value);
	finish(s);
	all_are(s, word_at(s->m.s.a, 0), ~value, ~value, "atomic, write");
}

static void order(struct api *a)
{
	static struct script s;

	amo_open(&s.m, a, &(struct side_opts){.tx_flags = FI_DELIVERY_COMPLETE, .tune = ordered},
		 AMO_ACCESS);
	for (size_t i = 0; a->rank && i < API_COUNT(sizes); i++) {
		s.words = sizes[i];
		for (uint64_t round = 1; round <= 2 * api_times(8); round++) {
			s.m.s.yields = round % 2; /* varies the timing of the target */
			mixed(&s, round);
		}
	}
	amo_close(&s.m);
}

/* Alternating reads and additions of one word, all posted before the first completes. */
static void in_progress(struct script *s, bool fetch)
{
	enum { COUNT = WORDS / 16 };
	struct amo one = word_amo(&s->m, AMO_BASE, AMO_PLAIN);
	struct amo look = word_amo(&s->m, AMO_FETCH, AMO_PLAIN);

	look.op = FI_ATOMIC_READ;
	for (uint64_t i = 0; i < COUNT; i++) {
		look.result->addr = &s->in[i];
		if (fetch)
			POST(&s->m.s, amo_post(s->m.s.ep, &look));
		else
			POST(&s->m.s, fi_read(s->m.s.ep, &s->in[i], 8, NULL, s->m.s.addr[0],
					      s->m.base[0], s->m.key[0], s->in));
		POST(&s->m.s, amo_post(s->m.s.ep, &one));
		s->posted += 2;
	}
	finish(s);
	for (uint64_t i = 0; i < COUNT; i++)
		CHECK_EQ(s->in[i], i);
}

static void rounds(struct api *a)
{
	static struct script s;

	amo_open(&s.m, a, &(struct side_opts){.tune = ordered}, AMO_ACCESS);
	for (unsigned int i = 0; a->rank && i < 4 * api_times(6); i++) {
		s.m.s.yields = i % 4 > 2;
		*word_at(a, 0) = 0;
		in_progress(&s, api_other() || i & 1);
	}
	amo_close(&s.m);
}

/* Opens an endpoint whose queue can be slept on. */
static struct fid_ep *sleeper(struct side *s, struct fid_cq **cq)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
	struct fid_ep *ep;

	OK(fi_cq_open(s->domain, &attr, cq, NULL));
	OK(fi_endpoint(s->domain, s->info, &ep, NULL));
	OK(fi_ep_bind(ep, &s->av->fid, 0));
	OK(fi_ep_bind(ep, &(*cq)->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
	return ep;
}

/* Posts a read and an addition, then sleeps. The read must not see the addition. */
static void asleep(struct amo_side *m, struct fid_ep *ep, struct fid_cq *cq)
{
	struct amo one = word_amo(m, AMO_BASE, AMO_PLAIN);
	struct fi_cq_tagged_entry e;
	uint64_t seen = UINT64_MAX;

	for (uint64_t i = 0; i < api_times(6000); i++) {
		POST(&m->s,
		     fi_read(ep, &seen, 8, NULL, m->s.addr[0], m->base[0], m->key[0], &seen));
		POST(&m->s, amo_post(ep, &one));
		for (int n = 0; n < 2; n++) {
			ssize_t ret;

			while ((ret = fi_cq_sread(cq, &e, 1, NULL, 1000)) == -FI_EAGAIN)
				continue;
			CHECK_EQ(ret, 1);
		}
		CHECK_EQ(seen, i);
	}
}

static void asleep_all(struct api *a)
{
	struct amo_side m;
	struct fid_cq *cq;
	struct fid_ep *ep;

	if (api_other())
		api_skip("its reads may overtake atomics");
	amo_open(&m, a, &(struct side_opts){.tune = ordered}, AMO_ACCESS);
	if (a->rank) {
		ep = sleeper(&m.s, &cq);
		asleep(&m, ep, cq);
		OK(fi_close(&ep->fid));
		OK(fi_close(&cq->fid));
	}
	amo_close(&m);
}

/* A fenced atomic and later ones see all earlier operations, although no order is asked for. */
static void fence(struct api *a)
{
	static uint64_t big[WORDS], results[2];
	struct side_opts o = {.caps = AMO_CAPS | FI_FENCE, .tx_flags = FI_DELIVERY_COMPLETE};
	struct amo_side m;

	amo_open(&m, a, &o, AMO_ACCESS);
	for (uint64_t i = 1; a->rank && i <= 20; i++) {
		struct amo last = word_amo(&m, AMO_FETCH, AMO_MSG), next = last;

		for (size_t w = 0; w < WORDS; w++)
			big[w] = i;
		last.flags = FI_FENCE;
		last.target->addr += 8 * (WORDS - 1);
		last.result->addr = &results[0];
		next.form = AMO_PLAIN;
		next.target->addr += 8 * (WORDS - 2);
		next.result->addr = &results[1];
		POST(&m.s, fi_write(m.s.ep, big, sizeof(big), NULL, m.s.addr[0], m.base[0],
				    m.key[0], big));
		POST(&m.s, amo_post(m.s.ep, &last));
		POST(&m.s, amo_post(m.s.ep, &next));
		for (int n = 0; n < 3; n++)
			TAKE(&m.s, m.s.tx);
		CHECK_EQ(results[0], i);
		CHECK_EQ(results[1], i);
		CHECK_EQ(*word_at(a, WORDS - 1), i + 1);
		CHECK_EQ(*word_at(a, WORDS - 2), i + 1);
	}
	amo_close(&m);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"order", order, 2, {0}},
		{"order-no-cma", order, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"rounds", rounds, 2, {0}},
		{"rounds-no-cma", rounds, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"asleep", asleep_all, 2, {0}},
		{"fence", fence, 2, {0}},
		{"fence-no-cma", fence, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
