/* SPDX-License-Identifier: BSD-2-Clause */
/* Matching of messages and receives: 64-bit tags, masks, the order of posting on both sides. */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"

static uint64_t context_of(const struct fi_cq_tagged_entry *e)
{
	return (uintptr_t)e->op_context;
}

static void send_tag(struct side *s, uint64_t tag, uint64_t value)
{
	POST(s, fi_tinject(s->ep, &value, sizeof(value), s->addr[0], tag));
}

static void post_tag(struct side *s, uint64_t *value, uint64_t tag, uint64_t ignore, uint64_t id)
{
	POST(s, fi_trecv(s->ep, value, sizeof(*value), NULL, FI_ADDR_UNSPEC, tag, ignore,
			 (void *)(uintptr_t)id));
}

/*
 * Receives in the order of posting; each expects a message by its position in the order of sending.
 */
static void masks(struct api *a)
{
	static const struct {
		uint64_t tag, ignore;
	} posted[] = {{0x10, 0x0f},
		      {0x12, 0},
		      {UINT64_C(1) << 63, 0},
		      {0, UINT64_C(1) << 63},
		      {UINT64_C(0xabcd000000000000), UINT64_C(0x0000ffffffffffff)},
		      {0xffff, ~UINT64_C(0)}};
	static const struct {
		uint64_t tag, meets;
	} sent[] = {{0x12, 0},
		    {0x12, 1},
		    {UINT64_C(1) << 63, 2},
		    {UINT64_C(1) << 63, 3},
		    {UINT64_C(0xabcd0000deadbeef), 4},
		    {UINT64_C(0x1234567890abcdef), 5}};
	uint64_t values[API_COUNT(posted)] = {0};
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	if (a->rank == 0)
		for (size_t i = 0; i < API_COUNT(posted); i++)
			post_tag(&s, &values[i], posted[i].tag, posted[i].ignore, i);
	api_meet(a);
	for (size_t i = 0; i < API_COUNT(sent); i++) {
		if (a->rank) {
			send_tag(&s, sent[i].tag, i + 100);
		} else {
			struct fi_cq_tagged_entry e = TAKE(&s, s.rx);

			CHECK_EQ(context_of(&e), sent[i].meets);
			CHECK_EQ(e.tag, sent[i].tag);
			CHECK_EQ(e.len, sizeof(uint64_t));
			CHECK_EQ(values[sent[i].meets], i + 100);
		}
	}
	side_close(&s);
}

/* A receive for each single bit, sent in reverse order; then with that bit ignored. */
static void bits(struct api *a)
{
	uint64_t values[64] = {0};
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (int ignored = 0; ignored < 2; ignored++) {
		for (uint64_t b = 0; b < 64 && a->rank == 0; b++)
			post_tag(&s, &values[b], ignored ? ~UINT64_C(0) : UINT64_C(1) << b,
				 ignored ? UINT64_C(1) << b : 0, b);
		api_meet(a);
		for (uint64_t b = 64; b-- > 0;) {
			uint64_t tag = ignored ? ~(UINT64_C(1) << b) : UINT64_C(1) << b;
			struct fi_cq_tagged_entry e;

			if (a->rank) {
				send_tag(&s, tag, b);
				continue;
			}
			e = TAKE(&s, s.rx);
			CHECK_EQ(context_of(&e), b);
			CHECK_EQ(e.tag, tag);
			CHECK_EQ(values[b], b);
		}
		api_meet(a);
	}
	side_close(&s);
}

/* Tagged and untagged messages never match each other's receives. */
static void apart(struct api *a)
{
	uint64_t plain = 0, tagged = 0, word;
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (int late = 0; late < 2; late++) {
		if (a->rank) {
			if (!late)
				api_meet(a);
			send_tag(&s, 0, 1);
			word = 2;
			POST(&s, fi_inject(s.ep, &word, sizeof(word), s.addr[0]));
			if (late)
				api_meet(a);
		} else {
			if (late)
				api_meet(a);
			POST(&s, fi_recv(s.ep, &plain, 8, NULL, FI_ADDR_UNSPEC, &plain));
			post_tag(&s, &tagged, 0, ~UINT64_C(0), 7);
			if (!late)
				api_meet(a);
			for (int i = 0; i < 2; i++)
				CHECK(TAKE(&s, s.rx).flags & FI_RECV);
			CHECK_EQ(tagged, 1);
			CHECK_EQ(plain, 2);
		}
		api_meet(a);
	}
	side_close(&s);
}

/* ---- Against a model ------------------------------------------------------------------------- */

#define MESSAGES 400
#define ROUNDS   6

struct want {
	uint64_t tag, ignore;
	int64_t met; /* index of its message, or -1 */
};

static uint64_t dice(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

static bool matches(const struct want *w, uint64_t tag)
{
	return !((w->tag ^ tag) & ~w->ignore);
}

/* Matches the first receive, in order of posting, that accepts the tag. */
static void model_send(struct want *wants, size_t count, uint64_t tag, int64_t message)
{
	for (size_t i = 0; i < count; i++)
		if (wants[i].met < 0 && matches(&wants[i], tag)) {
			wants[i].met = message;
			return;
		}
}

/*
 * Some receives are posted, all messages are sent, then the other receives are posted. The last
 * receives accept any tag, so that each message matches one.
 */
static void model_fill(uint64_t *state, uint64_t *tags, struct want *wants, size_t early)
{
	bool taken[MESSAGES] = {false};

	for (size_t i = 0; i < MESSAGES; i++) {
		tags[i] = dice(state) % 7 << 40 | dice(state) % 5;
		wants[i] = (struct want){dice(state) % 7 << 40 | dice(state) % 5, 0, -1};
		wants[i].ignore = dice(state) % 3 ? 0 : dice(state) % 2 ? 7 : UINT64_C(7) << 40;
	}
	for (size_t i = 0; i < MESSAGES; i++)
		model_send(wants, early, tags[i], (int64_t)i);
	for (size_t i = 0; i < early; i++)
		if (wants[i].met >= 0)
			taken[wants[i].met] = true;
	for (size_t i = early; i < MESSAGES; i++)
		for (size_t j = 0; j < MESSAGES && wants[i].met < 0; j++)
			if (!taken[j] && matches(&wants[i], tags[j])) {
				wants[i].met = (int64_t)j;
				taken[j] = true;
			}
}

static void model_receive(struct side *s, const struct want *wants, size_t early)
{
	static uint64_t values[MESSAGES];
	size_t met = 0;

	for (size_t i = 0; i < MESSAGES; i++)
		met += wants[i].met >= 0;
	for (size_t i = 0; i < early; i++)
		post_tag(s, &values[i], wants[i].tag, wants[i].ignore, i);
	api_meet(s->a); /* the peer sends between these barriers */
	api_meet(s->a);
	for (size_t i = early; i < MESSAGES; i++)
		post_tag(s, &values[i], wants[i].tag, wants[i].ignore, i);
	for (size_t i = 0; i < met; i++) {
		struct fi_cq_tagged_entry e = TAKE(s, s->rx);

		CHECK(context_of(&e) < MESSAGES);
		CHECK_EQ((int64_t)values[context_of(&e)], wants[context_of(&e)].met);
	}
	QUIET(s, s->rx, 2);
}

static void model(struct api *a)
{
	static uint64_t tags[MESSAGES];
	static struct want wants[MESSAGES];
	uint64_t state = 12345;

	for (int round = 0; round < ROUNDS; round++) {
		size_t early = (size_t)round * MESSAGES / (ROUNDS - 1);
		struct side s;

		side_open(&s, a, &(struct side_opts){0});
		model_fill(&state, tags, wants, early);
		if (a->rank == 0) {
			model_receive(&s, wants, early);
		} else {
			api_meet(a);
			for (size_t i = 0; i < MESSAGES; i++)
				send_tag(&s, tags[i], i);
			api_meet(a);
		}
		side_close(&s);
	}
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"masks", masks, 2, {0}},
		{"bits", bits, 2, {0}},
		{"apart", apart, 2, {0}},
		{"model", model, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
