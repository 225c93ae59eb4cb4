/* SPDX-License-Identifier: BSD-2-Clause */
/* Every form of send with every form of receive, with remote CQ data, in 1 to 16 pieces. */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"

#define CQ_DATA UINT64_C(0xfedcba9876543210)

/* One message from rank 1 to rank 0; both ranks run the same list. */
struct step {
	unsigned int seed;
	bool early; /* the receive is posted before the send */
	size_t len;
	size_t from, to; /* pieces */
	struct form_args send, recv;
};

static void one_send(struct side *s, struct step *st)
{
	struct data d = data_full(st->len, st->from, st->seed);

	st->send.d = &d;
	st->send.peer = s->addr[0];
	st->send.context = form_injects(st->send.form) ? NULL : &d;
	FORM_SEND(s, &st->send);
	DATA_EXPECT(&d, st->len, st->seed);
	memset(data_at(&d), 0xff, d.iov[0].iov_len);
	if (!st->early)
		api_meet(s->a);
	data_free(&d);
}

static void one_receive(struct side *s, struct step *st)
{
	struct data d = data_new(st->len + 3, st->to);
	uint64_t want = form_kind(&st->recv);
	struct fi_cq_tagged_entry e;

	st->recv.d = &d;
	st->recv.peer = FI_ADDR_UNSPEC;
	st->recv.context = &d;
	if (!st->early)
		api_meet(s->a); /* the message waits here, unexpected */
	POST(s, form_recv(s, &st->recv));
	if (st->early)
		api_meet_still(s->a);
	if (form_has_data(&st->send))
		want |= FI_REMOTE_CQ_DATA;
	e = GOT(s, &d, want, st->len);
	if (st->recv.tagged)
		CHECK(e.tag == st->send.tag);
	if (form_has_data(&st->send))
		CHECK(e.data == st->send.data);
	DATA_EXPECT(&d, st->len, st->seed);
	data_free(&d);
}

/* Returns whether bare queue pairs support the step: receive posted early, no tags. */
static bool is_bare_too(const struct step *st)
{
	return st->early && !st->send.tagged;
}

/* Adapts lengths and remote CQ data to the limits of the provider. */
static void adapt(const struct side *s, struct step *st)
{
	size_t inject = s->info->tx_attr->inject_size;

	if ((form_injects(st->send.form) || st->send.flags & FI_INJECT) && st->len > inject)
		st->len = inject;
	if (s->info->domain_attr->cq_data_size < sizeof(st->send.data))
		st->send.data &= UINT32_MAX;
}

static void one(struct side *s, struct step *step)
{
	struct step one = *step, *st = &one;

	if (pair_bare() && !is_bare_too(st))
		return;
	adapt(s, st);
	if (s->a->rank == 0) {
		one_receive(s, st);
	} else {
		if (st->early)
			api_meet_still(s->a);
		one_send(s, st);
	}
	api_meet(s->a);
}

/* A send that completes only when received would block the barrier, so messages are short. */
static void all_forms(struct side *s, bool tagged)
{
	static const enum form receives[] = {FORM_PLAIN, FORM_VECTOR, FORM_MSG};
	struct step st = {.seed = 1};

	for (enum form from = 0; from < FORM_COUNT; from++)
		for (size_t to = 0; to < API_COUNT(receives); to++)
			for (int early = 0; early < 2; early++) {
				st.seed++;
				st.early = early;
				st.len = 61 + st.seed;
				st.from = from == FORM_VECTOR || from == FORM_MSG ? 2 : 1;
				st.to = to ? 3 : 1;
				st.send = (struct form_args){.form = from,
							     .tagged = tagged,
							     .tag = st.seed * UINT64_C(0x100000001),
							     .data = CQ_DATA + st.seed};
				st.recv = st.send;
				st.recv.form = receives[to];
				one(s, &st);
			}
}

static void forms(struct api *a)
{
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	all_forms(&s, false);
	all_forms(&s, true);
	side_close(&s);
}

/* fi_sendmsg and fi_tsendmsg with flags that do not change the result. */
static void flags(struct api *a)
{
	static const uint64_t sets[] = {FI_REMOTE_CQ_DATA,
					FI_INJECT,
					FI_MORE,
					FI_COMPLETION,
					FI_INJECT_COMPLETE,
					FI_TRANSMIT_COMPLETE,
					FI_REMOTE_CQ_DATA | FI_INJECT | FI_COMPLETION};
	struct step st = {.early = true, .len = 777, .from = 3, .to = 2};
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (size_t i = 0; i < 2 * API_COUNT(sets); i++) {
		st.seed = (unsigned int)i + 50;
		st.send = (struct form_args){.form = FORM_MSG,
					     .tagged = i & 1,
					     .tag = i,
					     .data = ~CQ_DATA,
					     .flags = sets[i / 2]};
		st.recv = st.send;
		st.recv.form = FORM_VECTOR;
		one(&s, &st);
	}
	side_close(&s);
}

/* Pieces on both sides, some of them empty, for a short and a long message. */
static void pieces(struct api *a)
{
	static const size_t sizes[] = {0, 5, 1000, 100003};
	struct step st = {.early = true};
	struct side s;
	size_t max;

	side_open(&s, a, &(struct side_opts){0});
	max = s.info->tx_attr->iov_limit;
	CHECK(max >= (pair_bare() ? 4 : 16) || api_other());
	for (size_t i = 0; i < API_COUNT(sizes); i++)
		for (size_t n = 1; n <= max; n++) {
			st.seed++;
			st.len = sizes[i];
			st.from = n;
			st.to = max + 1 - n;
			st.send = (struct form_args){.form = n & 1 ? FORM_VECTOR : FORM_MSG,
						     .tagged = n & 2,
						     .tag = st.seed};
			st.recv = st.send;
			st.recv.form = n & 1 ? FORM_MSG : FORM_VECTOR;
			one(&s, &st);
		}
	side_close(&s);
}

/* No pieces: an empty message, an empty buffer. */
static void nothing(struct api *a)
{
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (int i = 0; i < (pair_bare() ? 2 : 4); i++) {
		struct form_args f = {.form = i & 1 ? FORM_MSG : FORM_PLAIN,
				      .tagged = i & 2,
				      .tag = 9,
				      .context = &f};

		f.peer = a->rank ? s.addr[0] : FI_ADDR_UNSPEC;
		if (a->rank) {
			FORM_SEND(&s, &f);
		} else {
			POST(&s, form_recv(&s, &f));
			GOT(&s, &f, form_kind(&f), 0);
		}
		api_meet(a);
	}
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"forms", forms, 2, {0}},
		{"flags", flags, 2, {0}},
		{"pieces", pieces, 2, {0}},
		{"nothing", nothing, 2, {0}},
		{"pieces-no-cma", pieces, 2, {"FI_SHM_DISABLE_CMA=yes"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
