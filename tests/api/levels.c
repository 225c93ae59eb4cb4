/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion levels of sends, from FI_INJECT to FI_MATCH_COMPLETE; FI_FENCE, FI_MORE. */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"

#define WAIT_MS 15 /* time in which nothing may happen */

/* Returns a receive buffer in shared memory, which the sender checks when its send completes. */
static struct data seen(struct api *a, size_t len)
{
	return (struct data){.iov = {{a->shared, len}}, .count = 1, .len = len};
}

static struct form_args args_of(struct side *s, bool tagged, const struct data *d, uint64_t flags)
{
	return (struct form_args){.form = FORM_MSG,
				  .tagged = tagged,
				  .d = d,
				  .tag = 1,
				  .peer = s->a->rank ? s->addr[0] : FI_ADDR_UNSPEC,
				  .flags = flags,
				  .context = (void *)d};
}

static const size_t lens[] = {0, 24, 4096, 8193, 300000};

/* With a posted receive: when the send completes, the message is in the buffer. */
static void filled(struct side *s, uint64_t level, bool tagged, size_t len, unsigned int seed)
{
	if (s->a->rank) {
		struct data d = data_full(len, 2, seed);
		struct form_args f = args_of(s, tagged, &d, level);

		api_meet(s->a);
		FORM_SEND(s, &f);
		data_check(s->a->shared, len, seed);
		data_free(&d);
	} else {
		struct data d = seen(s->a, len);
		struct form_args f = args_of(s, tagged, &d, 0);

		memset(s->a->shared, DATA_EMPTY, len);
		POST(s, form_recv(s, &f));
		api_meet(s->a);
		GOT(s, &d, form_kind(&f), len);
	}
	api_meet(s->a);
}

/* With a late receive: the send does not complete before, whatever progress the receiver makes. */
static void late(struct side *s, uint64_t level, bool tagged, size_t len, unsigned int seed)
{
	if (s->a->rank) {
		struct data d = data_full(len, 2, seed);
		struct form_args f = args_of(s, tagged, &d, level);

		POST(s, form_send(s, &f));
		QUIET(s, s->tx, WAIT_MS);
		api_meet(s->a);
		SENT(s, &d, form_kind(&f));
		data_check(s->a->shared, len, seed);
		data_free(&d);
	} else {
		struct data d = seen(s->a, len);
		struct form_args f = args_of(s, tagged, &d, 0);

		memset(s->a->shared, DATA_EMPTY, len);
		api_meet(s->a);
		POST(s, form_recv(s, &f));
		GOT(s, &d, form_kind(&f), len);
	}
	api_meet(s->a);
}

static void walk(struct api *a, uint64_t level,
		 void (*step)(struct side *, uint64_t, bool, size_t, unsigned int))
{
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (unsigned int i = 0; i < 2 * API_COUNT(lens); i++)
		if (!(i & 1) || !pair_bare())
			step(&s, level, i & 1, lens[i / 2], i + 1);
	side_close(&s);
}

static void delivery(struct api *a)
{
	walk(a, FI_DELIVERY_COMPLETE, filled);
}

static void delivery_late(struct api *a)
{
	walk(a, FI_DELIVERY_COMPLETE, late);
}

static void match(struct api *a)
{
	pair_not_bare("nobody tells that a message was matched");
	walk(a, FI_MATCH_COMPLETE, late);
}

/* The level as default flag of the endpoint, for calls without flags. */
static void delivery_default(struct api *a)
{
	bool tagged = !pair_bare();
	struct side s;

	side_open(&s, a, &(struct side_opts){.tx_flags = FI_DELIVERY_COMPLETE});
	for (unsigned int i = 0; i < API_COUNT(lens); i++) {
		struct data d = a->rank ? data_full(lens[i], 1, i) : seen(a, lens[i]);
		struct form_args f = args_of(&s, tagged, &d, 0);

		f.form = FORM_PLAIN;
		if (a->rank) {
			POST(&s, form_send(&s, &f));
			QUIET(&s, s.tx, WAIT_MS);
			api_meet(a);
			SENT(&s, &d, form_kind(&f));
			data_check(a->shared, lens[i], i);
			data_free(&d);
		} else {
			api_meet(a);
			POST(&s, form_recv(&s, &f));
			GOT(&s, &d, form_kind(&f), lens[i]);
		}
		api_meet(a);
	}
	side_close(&s);
}

/* The send buffer can be reused after the completion, or with FI_INJECT at once. */
static void reuse(struct api *a)
{
	static const uint64_t levels[] = {FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_INJECT, 0};
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (unsigned int i = 0; i < API_COUNT(levels) * API_COUNT(lens); i++) {
		uint64_t level = levels[i / API_COUNT(lens)];
		size_t len = lens[i % API_COUNT(lens)];
		bool fits = level != FI_INJECT || len <= s.info->tx_attr->inject_size;
		struct data d =
			a->rank ? data_full(fits ? len : 0, 3, i) : data_new(fits ? len : 0, 1);
		struct form_args f = args_of(&s, i & 1 && !pair_bare(), &d, level);

		if (a->rank) {
			POST(&s, form_send(&s, &f));
			if (level == FI_INJECT)
				memset(d.memory, 0xee, d.total);
			api_meet(a);
			SENT(&s, &d, form_kind(&f));
			memset(d.memory, 0xee, d.total);
		} else {
			f.flags = 0;
			api_meet(a);
			POST(&s, form_recv(&s, &f));
			GOT(&s, &d, form_kind(&f), d.len);
			DATA_EXPECT(&d, d.len, i);
		}
		data_free(&d);
	}
	side_close(&s);
}

/* The same for the first messages to a peer, sent before the connection exists. */
static void reuse_first(struct api *a)
{
	enum { COUNT = 50 };
	size_t len = 1000;
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	if (len > s.info->tx_attr->inject_size)
		len = s.info->tx_attr->inject_size;
	for (unsigned int i = 0; i < COUNT; i++) {
		struct data d = a->rank ? data_full(len, 4, i) : data_new(len, 2);
		struct form_args f = args_of(&s, false, &d, FI_INJECT);

		if (a->rank) {
			POST(&s, form_send(&s, &f));
			memset(d.memory, 0xee, d.total);
		} else {
			f.flags = 0;
			POST(&s, form_recv(&s, &f));
			GOT(&s, &d, FI_MSG, len);
			DATA_EXPECT(&d, len, i);
		}
		data_free(&d);
	}
	for (unsigned int i = 0; i < COUNT && a->rank; i++)
		TAKE(&s, s.tx);
	side_close(&s);
}

/*
 * A long message without receive, then a fenced short one, then another: both short ones wait for
 * the long one, although receives for them are posted; the second one is not accepted so long.
 */
static void fence(struct api *a)
{
	struct data big = data_full(300001, 1, 1), into = data_new(300001, 1);
	struct side s;

	pair_not_bare("what is sent first comes first, fenced or not");
	side_open(&s, a, &(struct side_opts){.caps = FI_MSG | FI_TAGGED | FI_FENCE});
	for (int i = 0; i < 4; i++) {
		struct data d = data_full(16, 1, 2);
		struct form_args f = args_of(&s, true, &d, a->rank ? FI_FENCE : 0);
		struct form_args g = args_of(&s, i & 1, a->rank ? &big : &into, 0);

		f.tag = 2;
		f.flags |= a->rank && i & 2 ? FI_DELIVERY_COMPLETE : 0;
		if (a->rank) {
			POST(&s, form_send(&s, &g));
			POST(&s, form_send(&s, &f));
			f.flags = 0;
			CHECK_EQ(form_send(&s, &f), -FI_EAGAIN);
			QUIET(&s, s.tx, WAIT_MS);
			api_meet(a);
			POST(&s, form_send(&s, &f));
			SENT(&s, &big, form_kind(&g)); /* the fenced send comes after */
			SENT(&s, &d, FI_TAGGED);
			SENT(&s, &d, FI_TAGGED);
		} else {
			POST(&s, form_recv(&s, &f));
			POST(&s, form_recv(&s, &f));
			QUIET(&s, s.rx, WAIT_MS);
			api_meet(a);
			POST(&s, form_recv(&s, &g));
			GOT(&s, &into, form_kind(&g), big.len);
			DATA_EXPECT(&into, big.len, 1);
			GOT(&s, &d, FI_TAGGED, 16);
			GOT(&s, &d, FI_TAGGED, 16);
		}
		api_meet(a);
		data_free(&d);
	}
	side_close(&s);
	data_free(&big);
	data_free(&into);
}

/* Sends with FI_MORE all go out; the last one has no FI_MORE. */
static void more(struct api *a)
{
	enum { COUNT = 64 };
	static uint64_t words[COUNT];
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (uint64_t i = 0; i < COUNT; i++) {
		struct data d = {.iov = {{&words[i], 8}}, .count = 1, .len = 8};
		struct form_args f =
			args_of(&s, i & 1 && !pair_bare(), &d, i + 1 < COUNT ? FI_MORE : 0);

		words[i] = a->rank ? i : 0;
		f.context = &words[i];
		POST(&s, a->rank ? form_send(&s, &f) : form_recv(&s, &f));
	}
	for (uint64_t i = 0; i < COUNT; i++) {
		TAKE(&s, a->rank ? s.tx : s.rx);
	}
	for (uint64_t i = 0; i < COUNT; i++)
		CHECK_EQ(words[i], i);
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"delivery", delivery, 2, {0}},
		{"delivery-late", delivery_late, 2, {0}},
		{"delivery-default", delivery_default, 2, {0}},
		{"match", match, 2, {0}},
		{"reuse", reuse, 2, {0}},
		{"reuse-first", reuse_first, 2, {0}},
		{"fence", fence, 2, {0}},
		{"more", more, 2, {0}},
		{"delivery-late-no-cma", delivery_late, 2, {"FI_SHM_DISABLE_CMA=yes"}},
		{"match-no-cma", match, 2, {"FI_SHM_DISABLE_CMA=yes"}},
		{"fence-no-cma", fence, 2, {"FI_SHM_DISABLE_CMA=yes"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
