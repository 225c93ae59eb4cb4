/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages longer than their receive: FI_ETRUNC, the part that fits, and the length cut off. */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"

static const struct {
	size_t len, room;
} cuts[] = {{1, 0},       {8, 7},      {64, 33},    {4096, 4095},     {8192, 1},
	    {8193, 8192}, {100000, 8}, {100000, 0}, {300000, 299999}, {1048576, 65537}};

struct step {
	size_t len, room, pieces;
	bool tagged, early;
	unsigned int seed;
};

static struct form_args args_of(struct side *s, const struct step *st, const struct data *d)
{
	return (struct form_args){.form = d->count > 1 ? FORM_VECTOR : FORM_PLAIN,
				  .tagged = st->tagged,
				  .d = d,
				  .tag = UINT64_C(0xabc) << 50 | st->seed,
				  .peer = s->a->rank ? s->addr[0] : FI_ADDR_UNSPEC,
				  .context = (void *)(uintptr_t)(st->seed + 1)};
}

/* The sender gets no error. */
static void step_send(struct side *s, const struct step *st)
{
	struct data d = data_full(st->len, st->pieces, st->seed);
	struct form_args f = args_of(s, st, &d);

	if (st->early)
		api_meet(s->a);
	POST(s, form_send(s, &f));
	if (!st->early)
		api_meet(s->a);
	SENT(s, f.context, form_kind(&f));
	data_free(&d);
}

static void step_receive(struct side *s, const struct step *st)
{
	struct data d = data_new(st->room, st->pieces);
	struct form_args f = args_of(s, st, &d);
	struct fi_cq_err_entry err;

	if (!st->early) {
		api_meet(s->a);
		side_progress(s);
	}
	POST(s, form_recv(s, &f));
	if (st->early)
		api_meet(s->a);
	err = TAKE_ERR(s, s->rx, FI_ETRUNC);
	CHECK(err.op_context == f.context);
	CHECK_EQ(err.olen, st->len - st->room);
	CHECK_EQ(err.flags & (FI_RECV | FI_MSG | FI_TAGGED), FI_RECV | form_kind(&f));
	if (st->tagged)
		CHECK_EQ(err.tag, f.tag);
	if (!api_other()) {
		CHECK_EQ(err.len, st->room);
		DATA_EXPECT(&d, st->room, st->seed);
	}
	data_free(&d);
}

static void walk(struct api *a)
{
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (unsigned int i = 0; i < 8 * API_COUNT(cuts); i++) {
		struct step st = {.len = cuts[i / 8].len,
				  .room = cuts[i / 8].room,
				  .pieces = i & 4 ? 3 : 1,
				  .tagged = i & 1,
				  .early = i & 2,
				  .seed = i};

		if (a->rank)
			step_send(&s, &st);
		else
			step_receive(&s, &st);
	}
	side_close(&s);
}

/*
 * Truncated and complete messages in turns, all in flight: truncation does not affect the next one.
 */
static void between(struct api *a)
{
	enum { COUNT = 40, LEN = 20000 };
	struct data d[COUNT];
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (unsigned int i = 0; i < COUNT; i++) {
		struct step st = {.seed = i};
		struct form_args f;

		d[i] = a->rank ? data_full(LEN, 1, i) : data_new(i & 1 ? LEN : i * 100, 1);
		f = args_of(&s, &st, &d[i]);
		POST(&s, a->rank ? form_send(&s, &f) : form_recv(&s, &f));
	}
	for (unsigned int i = 0; i < COUNT; i++) {
		if (a->rank)
			TAKE(&s, s.tx);
		else if (i & 1)
			GOT(&s, (void *)(uintptr_t)(i + 1), FI_MSG, LEN);
		else
			CHECK_EQ(TAKE_ERR(&s, s.rx, FI_ETRUNC).olen, LEN - i * 100);
	}
	for (unsigned int i = 0; i < COUNT; i++) {
		if (!a->rank && (i & 1))
			DATA_EXPECT(&d[i], LEN, i);
		data_free(&d[i]);
	}
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"truncate", walk, 2, {0}},
		{"truncate-no-cma", walk, 2, {"FI_SHM_DISABLE_CMA=yes"}},
		{"between", between, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
