/* SPDX-License-Identifier: BSD-2-Clause */
/* Many to one, one to many, all to all, and an endpoint to itself. */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"

#define OTHERS 6
#define EACH   api_times(150)

/* Length of message `i`: short, empty, near the limit of eager messages, long. */
static size_t length(unsigned int i)
{
	static const size_t lens[] = {8, 64, 0, 500, 4096, 9000, 1, 40000};

	return lens[i % API_COUNT(lens)];
}

static unsigned int seed_of(int from, int to, unsigned int i)
{
	return (unsigned int)(from * 31 + to * 7) + i;
}

static void send_one(struct side *s, int to, unsigned int i)
{
	struct data d = data_full(length(i), i % 4 ? 1 : 2, seed_of(s->a->rank, to, i));
	struct form_args f = {.form = i % 4 ? FORM_DATA : FORM_VECTOR,
			      .tagged = true,
			      .d = &d,
			      .tag = i,
			      .data = i,
			      .peer = s->addr[to],
			      .context = &d};

	FORM_SEND(s, &f);
	data_free(&d);
}

/* Takes the next message of any sender, which must be that sender's next one. */
static int receive_one(struct side *s, unsigned int next[API_RANKS])
{
	struct data d = data_new(40000, 1);
	struct form_args f = {.tagged = true,
			      .d = &d,
			      .ignore = ~UINT64_C(0),
			      .peer = FI_ADDR_UNSPEC,
			      .context = &d};
	struct fi_cq_tagged_entry e;
	fi_addr_t src = FI_ADDR_NOTAVAIL;
	int from;

	POST(s, form_recv(s, &f));
	e = TAKE_FROM(s, s->rx, &src);
	for (from = 0; from < s->a->ranks && s->addr[from] != src; from++)
		;
	CHECK(from < s->a->ranks);
	CHECK_EQ(e.tag, next[from]);
	CHECK_EQ(e.len, length(next[from]));
	DATA_EXPECT(&d, e.len, seed_of(from, s->a->rank, next[from]));
	data_free(&d);
	next[from]++;
	return from;
}

static const struct side_opts with_source = {.caps = FI_TAGGED | FI_SOURCE};

static void many_to_one(struct api *a)
{
	unsigned int next[API_RANKS] = {0};
	struct side s;

	side_open(&s, a, &with_source);
	for (unsigned int i = 0; i < EACH && a->rank; i++)
		send_one(&s, 0, i);
	for (unsigned int i = 0; i < EACH * OTHERS && !a->rank; i++)
		receive_one(&s, next);
	side_close(&s);
}

static void one_to_many(struct api *a)
{
	unsigned int next[API_RANKS] = {0};
	struct side s;

	side_open(&s, a, &with_source);
	for (unsigned int i = 0; i < EACH; i++) {
		for (int to = 1; to <= OTHERS && !a->rank; to++)
			send_one(&s, to, i);
		if (a->rank)
			receive_one(&s, next);
	}
	side_close(&s);
}

/* All send to all, short messages, so that all connect at the same time. */
static void all_to_all(struct api *a)
{
	const unsigned int rounds = api_times(100);
	unsigned int next[API_RANKS] = {0};
	struct side s;

	side_open(&s, a, &with_source);
	for (unsigned int i = 0; i < rounds; i++)
		for (int k = 0; k < a->ranks; k++) {
			int to = (a->rank + k) % a->ranks;
			struct data d = data_full(8, 1, seed_of(a->rank, to, 0));

			POST(&s, fi_tinject(s.ep, data_at(&d), 8, s.addr[to], i));
			data_free(&d);
		}
	for (unsigned int n = 0; n < rounds * (unsigned int)a->ranks; n++) {
		struct fi_cq_tagged_entry e;
		fi_addr_t src;
		char buf[8];
		int from;

		POST(&s, fi_trecv(s.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 0, ~UINT64_C(0), buf));
		e = TAKE_FROM(&s, s.rx, &src);
		for (from = 0; from < a->ranks && s.addr[from] != src; from++)
			;
		CHECK(from < a->ranks);
		CHECK_EQ(e.tag, next[from]++);
		data_check(buf, 8, seed_of(from, a->rank, 0));
	}
	side_close(&s);
}

/* ---- To itself ------------------------------------------------------------------------------- */

static void self_step(struct side *s, bool tagged, bool early, size_t len, unsigned int seed)
{
	struct data out = data_full(len, 1 + seed % 3, seed), in = data_new(len, 1 + seed % 2);
	struct form_args send = {.form = FORM_MSG,
				 .tagged = tagged,
				 .d = &out,
				 .tag = seed,
				 .data = seed,
				 .flags = FI_REMOTE_CQ_DATA | (seed & 1 ? FI_DELIVERY_COMPLETE : 0),
				 .peer = s->addr[0],
				 .context = &out};
	struct form_args recv = send;
	struct fi_cq_tagged_entry e;
	fi_addr_t src = FI_ADDR_NOTAVAIL;

	recv.form = FORM_VECTOR;
	recv.d = recv.context = &in;
	recv.peer = seed & 2 ? s->addr[0] : FI_ADDR_UNSPEC;
	if (early)
		POST(s, form_recv(s, &recv));
	POST(s, form_send(s, &send));
	if (!early) {
		side_progress(s);
		POST(s, form_recv(s, &recv));
	}
	e = TAKE_FROM(s, s->rx, &src);
	CHECK(e.op_context == &in);
	CHECK_EQ(e.len, len);
	CHECK_EQ(e.data, seed);
	CHECK_EQ(src, s->addr[0]);
	SENT(s, &out, form_kind(&send));
	DATA_EXPECT(&in, len, seed);
	data_free(&in);
	data_free(&out);
}

static void self(struct api *a)
{
	static const size_t lens[] = {0, 1, 40, 4096, 8192, 8193, 100000, 3000001};
	struct side_opts o = {.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV};
	struct side s;

	if (api_other())
		api_skip("its iov_limit is less");
	side_open(&s, a, &o);
	for (unsigned int i = 0; i < 8 * API_COUNT(lens); i++)
		self_step(&s, i & 1, i & 2, api_long(lens[i / 8]), i + i / 4);
	side_close(&s);
}

/* Sends more unexpected messages to itself than a ring holds, then receives them. */
static void self_flood(struct api *a)
{
	const uint64_t count = api_times(3000);
	uint64_t word;
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (uint64_t i = 0; i < count; i++)
		POST(&s, fi_inject(s.ep, &i, sizeof(i), s.addr[0]));
	for (uint64_t i = 0; i < count; i++) {
		POST(&s, fi_recv(s.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, &word));
		GOT(&s, &word, FI_MSG, sizeof(word));
		CHECK_EQ(word, i);
	}
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"many-to-one", many_to_one, OTHERS + 1, {0}},
		{"one-to-many", one_to_many, OTHERS + 1, {0}},
		{"all-to-all", all_to_all, API_RANKS, {0}},
		{"self", self, 1, {0}},
		{"self-no-cma", self, 1, {"FI_SHM_DISABLE_CMA=yes"}},
		{"self-flood", self_flood, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
