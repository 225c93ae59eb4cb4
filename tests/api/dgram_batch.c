/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams under FI_MORE of datagrams of many lengths: what leaves and arrives together stays whole
 * and in order, to one receiver and to two. HW=udp
 */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"
#include "lib/dgram_side.h"

#define WINDOW 48
#define ROUNDS 20

/* Lengths of a round: runs of one length, shorter ones behind them, empty ones, single ones. */
static size_t length(const struct side *s, unsigned int round, unsigned int i)
{
	static const size_t mixed[] = {0, 1, 1, 8, 8, 8, 0, 0, 1400, 1400, 1400, 700, 700, 9, 8, 8};
	static const size_t same[] = {0, 1, 8, 1400};
	size_t len = round % 5 < 4 ? same[round % 5] : mixed[(i + round) % API_COUNT(mixed)];

	return dgram_fit(s->info, len);
}

static unsigned int seed(unsigned int round, unsigned int i, int to)
{
	return round * WINDOW + i + (unsigned int)to * 1000;
}

static struct data outgoing(const struct side *s, unsigned int round, unsigned int i, int to)
{
	return data_full(length(s, round, i), i % 3 + 1, seed(round, i, to));
}

static ssize_t send_to(struct side *s, const struct data *d, int to, uint64_t flags)
{
	return form_send(s, &(struct form_args){.form = FORM_MSG,
						.d = d,
						.flags = flags,
						.peer = s->addr[to],
						.context = (void *)(uintptr_t)d});
}

/* Sends a window to each other process, by turns of three. */
static void send_round(struct side *s, unsigned int round)
{
	struct data d[API_RANKS][WINDOW];
	unsigned int left = WINDOW * (unsigned int)(s->a->ranks - 1);

	for (unsigned int i = 0; i < WINDOW; i += 3)
		for (int to = 1; to < s->a->ranks; to++)
			for (unsigned int k = i; k < i + 3; k++) {
				d[to][k] = outgoing(s, round, k, to);
				POST(s, send_to(s, &d[to][k], to, --left ? FI_MORE : 0));
			}
	api_meet_still(s->a); /* all arrive without any progress of this process */
	for (unsigned int i = 0; i < WINDOW * (unsigned int)(s->a->ranks - 1); i++)
		TAKE(s, s->tx);
	for (int to = 1; to < s->a->ranks; to++)
		for (unsigned int i = 0; i < WINDOW; i++)
			data_free(&d[to][i]);
}

static void take_round(struct side *s, unsigned int round)
{
	struct data d[WINDOW];

	for (unsigned int i = 0; i < WINDOW; i++) {
		struct form_args f;

		d[i] = data_new(length(s, round, i), 1);
		f = dgram_args(s, FORM_PLAIN, &d[i], &d[i]);
		POST(s, form_recv(s, &f));
	}
	for (unsigned int i = 0; i < WINDOW; i++) {
		fi_addr_t src = FI_ADDR_NOTAVAIL;
		struct fi_cq_tagged_entry e = TAKE_FROM(s, s->rx, &src);

		CHECK(e.op_context == &d[i]);
		CHECK_EQ(e.len, d[i].len);
		CHECK_EQ(src, s->addr[0]);
		DATA_EXPECT(&d[i], d[i].len, seed(round, i, s->a->rank));
		data_free(&d[i]);
	}
	api_meet_still(s->a);
}

static void rounds(struct api *a, bool ipv6)
{
	struct side_opts o = dgram_opts(FI_MSG | FI_SOURCE, ipv6);
	struct side s;

	side_open(&s, a, &o);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		if (a->rank)
			take_round(&s, round);
		else
			send_round(&s, round);
		api_meet(a);
	}
	side_close(&s);
}

static void in4(struct api *a)
{
	rounds(a, false);
}

static void in6(struct api *a)
{
	rounds(a, true);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"one", in4, 2, {0}},
		{"one6", in6, 2, {0}},
		{"two", in4, 3, {0}},
		{"two6", in6, 3, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
