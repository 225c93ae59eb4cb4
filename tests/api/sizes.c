/* SPDX-License-Identifier: BSD-2-Clause */
/* TIMEOUT=100 Sizes around all limits, expected and unexpected, in one piece and several. */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"

static const size_t sizes[] = {0,    1,    7,    8,     9,     31,    32,     33,      40,
			       64,   65,   255,  4032,  4095,  4096,  4097,   8128,    8191,
			       8192, 8193, 9000, 12288, 16384, 65537, 262144, 1048579, 8388608};

struct step {
	size_t len;
	unsigned int seed;
	bool tagged, early;
	size_t from, to; /* pieces */
};

static struct form_args args_of(const struct step *st, const struct data *d, size_t count)
{
	return (struct form_args){.form = count > 1 ? FORM_VECTOR : FORM_PLAIN,
				  .tagged = st->tagged,
				  .d = d,
				  .tag = st->seed,
				  .peer = FI_ADDR_UNSPEC,
				  .context = (void *)(uintptr_t)(st->seed + 1)};
}

static void step_send(struct side *s, const struct step *st)
{
	struct data d = data_full(st->len, st->from, st->seed);
	struct form_args f = args_of(st, &d, st->from);

	f.peer = s->addr[0];
	if (st->early)
		api_meet(s->a);
	POST(s, form_send(s, &f));
	if (!st->early)
		api_meet(s->a);
	SENT(s, f.context, form_kind(&f));
	/* The sender may reuse the memory: the receiver must have all data. */
	memset(d.memory, 0xee, d.total);
	data_free(&d);
}

static void step_receive(struct side *s, const struct step *st)
{
	struct data d = data_new(st->len, st->to);
	struct form_args f = args_of(st, &d, st->to);

	if (!st->early) {
		api_meet(s->a);
		side_progress(s);
	}
	POST(s, form_recv(s, &f));
	if (st->early)
		api_meet(s->a);
	GOT(s, f.context, form_kind(&f), st->len);
	DATA_EXPECT(&d, st->len, st->seed);
	data_free(&d);
}

static void walk(struct api *a, size_t from, size_t to)
{
	struct side s;

	alarm(2 * api_limit());
	side_open(&s, a, &(struct side_opts){0});
	for (size_t i = 0; i < 4 * API_COUNT(sizes); i++) {
		struct step st = {.len = api_long(sizes[i / 4]),
				  .seed = (unsigned int)i,
				  .tagged = i & 1,
				  .early = i & 2,
				  .from = from,
				  .to = to};

		if (st.tagged && pair_bare())
			continue;
		if (a->rank)
			step_send(&s, &st);
		else
			step_receive(&s, &st);
	}
	side_close(&s);
}

static void whole(struct api *a)
{
	walk(a, 1, 1);
}

static void gathered(struct api *a)
{
	walk(a, 3, 1);
}

static void scattered(struct api *a)
{
	walk(a, 1, 4);
}

static void both(struct api *a)
{
	walk(a, 4, 3);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"whole", whole, 2, {0}},
		{"gathered", gathered, 2, {0}},
		{"scattered", scattered, 2, {0}},
		{"both", both, 2, {0}},
		{"whole-no-cma", whole, 2, {"FI_SHM_DISABLE_CMA=yes"}},
		{"both-no-cma", both, 2, {"FI_SHM_DISABLE_CMA=yes"}},
		{"small-ring", whole, 2, {"FI_SHM_DISABLE_CMA=yes", "FI_WEFT_RING_SIZE=65536"}},
		{"eager-less", both, 2, {"FI_WEFT_EAGER_MAX=64"}},
		{"tcp-least", both, 2, {"FI_WEFT_TCP_EAGER_MAX=0"}},
		{"tcp-most", both, 2, {"FI_WEFT_TCP_EAGER_MAX=-1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
