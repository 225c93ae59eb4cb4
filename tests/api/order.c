/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_ORDER_SAS: messages of all sizes meet receives in the order they were sent. */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"

#define MESSAGES 300

static const size_t all_sizes[] = {8, 0, 100000, 33, 4096, 1, 300001, 8192, 64, 8193, 16, 50000, 3};
/* Lengths that transports may send together, and longer ones. */
static const size_t long_sizes[] = {65536,  65536, 65536,  65536, 16384,
				    100000, 65536, 262143, 300001};

static const size_t *sizes = all_sizes;
static size_t size_count = API_COUNT(all_sizes), messages = MESSAGES;

static size_t size_of(size_t i)
{
	return sizes[i * 7 % size_count];
}

static struct form_args args_of(size_t i, bool tagged, const struct data *d)
{
	return (struct form_args){.form = d->count > 1 ? FORM_VECTOR : FORM_PLAIN,
				  .tagged = tagged,
				  .d = d,
				  .tag = 77,
				  .peer = FI_ADDR_UNSPEC,
				  .context = (void *)(uintptr_t)i};
}

/* Sends all messages without waiting; short ones must not overtake. */
static void send_all(struct side *s, bool tagged)
{
	static struct data d[MESSAGES];
	size_t done = 0;

	for (size_t i = 0; i < messages; i++) {
		d[i] = data_full(size_of(i), i % 5 == 0 ? 2 : 1, (unsigned int)i);
		struct form_args f = args_of(i, tagged, &d[i]);

		f.peer = s->addr[0];
		POST(s, form_send(s, &f));
	}
	api_meet(s->a); /* all receives are posted */
	for (; done < messages; done++) {
		struct fi_cq_tagged_entry e = TAKE(s, s->tx);

		data_free(&d[(uintptr_t)e.op_context]);
	}
}

static void receive_all(struct side *s, bool tagged, size_t early)
{
	static struct data d[MESSAGES];

	for (size_t i = 0; i < messages; i++) {
		d[i] = data_new(size_of(i), i % 3 == 0 ? 2 : 1);
		struct form_args f = args_of(i, tagged, &d[i]);

		if (i == early)
			api_meet(s->a);
		POST(s, form_recv(s, &f));
	}
	if (early == messages)
		api_meet(s->a);
	for (size_t n = 0; n < messages; n++) {
		struct fi_cq_tagged_entry e = TAKE(s, s->rx);
		size_t i = (uintptr_t)e.op_context;

		CHECK(i < messages && d[i].memory);
		CHECK_EQ(e.len, size_of(i));
		DATA_EXPECT(&d[i], size_of(i), (unsigned int)i);
		data_free(&d[i]);
	}
}

static void enough_room(struct fi_info *hints)
{
	hints->tx_attr->size = hints->rx_attr->size = 2 * MESSAGES;
}

/*
 * All, none, or half of the receives are posted early. Bare queue pairs have no tags and no
 * unexpected messages: all.
 */
static void order(struct api *a)
{
	const size_t early[] = {messages, 0, messages / 2};
	struct side s;

	side_open(&s, a, &(struct side_opts){.tune = pair_bare() ? enough_room : NULL});
	for (size_t i = 0; i < (pair_bare() ? 1 : 2 * API_COUNT(early)); i++) {
		if (a->rank)
			send_all(&s, i & 1);
		else
			receive_all(&s, i & 1, early[i / 2]);
		api_meet(a);
	}
	side_close(&s);
}

/* Long messages only, which transports may send together. */
static void long_ones(struct api *a)
{
	sizes = long_sizes;
	size_count = API_COUNT(long_sizes);
	messages = MESSAGES / 4;
	order(a);
}

/* Pairs: a long message without a receive, then a short one with the same tag. */
static void overtake(struct api *a)
{
	struct data big = data_full(300001, 1, 1), small = data_full(8, 1, 2);
	struct data to = data_new(300001, 1);
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (int i = 0; i < 50; i++) {
		if (i & 1 && pair_bare())
			continue;
		if (a->rank) {
			struct form_args f = args_of(1, i & 1, &big);

			f.peer = s.addr[0];
			POST(&s, form_send(&s, &f));
			f.d = &small;
			f.form = FORM_INJECT;
			POST(&s, form_send(&s, &f));
			api_meet(a);
			SENT(&s, f.context, form_kind(&f));
		} else {
			struct form_args f = args_of(2, i & 1, &to);

			if (i % 4 < 2) {
				api_meet(a);
				side_progress(&s);
			}
			POST(&s, form_recv(&s, &f));
			if (i % 4 >= 2)
				api_meet(a);
			GOT(&s, f.context, form_kind(&f), big.len);
			DATA_EXPECT(&to, big.len, 1);
			POST(&s, form_recv(&s, &f));
			GOT(&s, f.context, form_kind(&f), small.len);
			data_check(data_at(&to), small.len, 2);
		}
		api_meet(a);
	}
	side_close(&s);
	data_free(&big);
	data_free(&small);
	data_free(&to);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"order", order, 2, {0}},
		{"long", long_ones, 2, {0}},
		{"overtake", overtake, 2, {0}},
		{"order-no-cma", order, 2, {"FI_SHM_DISABLE_CMA=yes"}},
		{"overtake-no-cma", overtake, 2, {"FI_SHM_DISABLE_CMA=yes"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
