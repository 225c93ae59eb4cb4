/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=120
 * No truncation is missed: messages of the lengths around each threshold of the library come to receives that are too
 * short by one byte and by half, over each way that a message can take, and each way that a receive can find it. Each
 * ends with FI_ETRUNC, holds what fits, and leaves the next message alone.
 */
#define API_LIMIT 60
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"

/* How a receive and its message meet. */
enum meeting {
	POSTED,  /* the receive is there before the message */
	KEPT,    /* the message has come, and is kept */
	RACING,  /* neither waits for the other */
	CLAIMED, /* the message is kept; a peek claims it */
	MULTI,   /* the receive is a multi-receive buffer, posted before */
	MEETINGS
};

struct step {
	size_t len, room;
	enum meeting meeting;
	bool tagged;
	size_t pieces;
	uint64_t flags; /* of the send */
	unsigned int seed;
	struct fi_context *context;
};

/* On both sides of each: cache lines and slots of the ring, copies, packets, protocols, their defaults. */
static const size_t edges[] = {
	1,    8,     16,    24,    32,     64,     1024,    2048,   4096,
	8192, 16384, 32768, 65536, 131072, 262144, 1048576, 1052672 /* TCP_PACKET_MAX */};

static struct form_args args_of(const struct side *s, const struct step *st, const struct data *d)
{
	return (struct form_args){.form = FORM_MSG,
				  .tagged = st->tagged,
				  .d = d,
				  .tag = st->seed,
				  .peer = s->a->rank ? s->addr[0] : FI_ADDR_UNSPEC,
				  .data = st->seed,
				  .context = st->context};
}

/* The sender gets no error. Each truncated message is followed by one that fits. */
static void step_send(struct side *s, const struct step *st)
{
	struct data d = data_full(st->len, st->pieces, st->seed), after = data_full(8, 1, 77);
	struct form_args f = args_of(s, st, &d), g = args_of(s, st, &after);

	f.flags = st->flags | FI_COMPLETION;
	g.flags = FI_COMPLETION;
	if (st->meeting == POSTED || st->meeting == MULTI)
		api_meet(s->a);
	POST(s, form_send(s, &f));
	if (st->meeting == KEPT)
		api_meet(s->a);
	SENT(s, f.context, form_kind(&f));
	POST(s, form_send(s, &g));
	SENT(s, g.context, form_kind(&g));
	data_free(&d);
	data_free(&after);
}

/* Waits for the message, claims it, and receives it into too little room. */
static void claim(struct side *s, struct form_args *f, size_t len)
{
	struct fi_cq_err_entry err;
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	for (;;) {
		f->flags = FI_PEEK | FI_CLAIM;
		POST(s, form_recv(s, f));
		while ((ret = fi_cq_read(s->rx, &e, 1)) == -FI_EAGAIN)
			side_progress(s);
		if (ret == 1)
			break;
		CHECK_EQ(fi_cq_readerr(s->rx, &err, 0), 1);
		CHECK_EQ(err.err, FI_ENOMSG);
	}
	CHECK_EQ(e.len, len);
	f->flags = FI_CLAIM;
	POST(s, form_recv(s, f));
}

static void post(struct side *s, const struct step *st, struct form_args *f)
{
	switch (st->meeting) {
	case CLAIMED:
		claim(s, f, st->len);
		return;
	case KEPT:
		api_meet(s->a);
		side_progress(s);
		break;
	case MULTI:
		f->flags = FI_MULTI_RECV;
		break;
	default:
		break;
	}
	f->flags |= FI_COMPLETION;
	POST(s, form_recv(s, f));
	if (st->meeting == POSTED || st->meeting == MULTI)
		api_meet(s->a);
}

static void step_receive(struct side *s, const struct step *st)
{
	struct data d = data_new(st->room, st->meeting == MULTI ? 1 : st->pieces),
		    after = data_new(8, 1);
	struct form_args f = args_of(s, st, &d), g = args_of(s, st, &after);
	struct fi_cq_err_entry err;

	post(s, st, &f);
	err = TAKE_ERR(s, s->rx, FI_ETRUNC);
	CHECK(err.op_context == f.context);
	CHECK_EQ(err.olen, st->len - st->room);
	CHECK_EQ(err.flags & (FI_RECV | FI_MSG | FI_TAGGED | FI_MULTI_RECV),
		 FI_RECV | form_kind(&f) | (st->meeting == MULTI ? FI_MULTI_RECV : 0));
	CHECK_EQ(err.len, st->room);
	DATA_EXPECT(&d, st->room, st->seed);
	g.flags = FI_COMPLETION;
	POST(s, form_recv(s, &g));
	GOT(s, g.context, form_kind(&g), 8);
	DATA_EXPECT(&after, 8, 77);
	data_free(&d);
	data_free(&after);
}

static bool possible(const struct step *st)
{
	if (st->meeting == CLAIMED)
		return st->tagged;
	if (st->meeting == MULTI)
		return !st->tagged && st->room;
	return true;
}

static void run(struct side *s, struct step *st)
{
	static struct fi_context context;
	static const uint64_t flags[] = {0, FI_DELIVERY_COMPLETE, FI_REMOTE_CQ_DATA};
	unsigned int n = st->seed++;

	st->context = &context;
	st->pieces = n % 5 == 4 ? 3 : 1;
	st->flags = flags[n % 3];
	if (!possible(st))
		return;
	if (s->a->rank)
		step_send(s, st);
	else
		step_receive(s, st);
}

static void walk(struct side *s)
{
	struct step st = {.seed = 0};

	for (unsigned int i = 0; i < 6 * API_COUNT(edges); i++) {
		st.len = edges[i / 6] + i % 3 - 1;
		st.room = i / 3 % 2 ? st.len / 2 : st.len - 1;
		for (st.meeting = 0; st.len && st.meeting < MEETINGS; st.meeting++)
			for (int tagged = 0; tagged < 2; tagged++) {
				st.tagged = tagged;
				run(s, &st);
			}
	}
}

static void all(struct api *a)
{
	struct side s;

	side_open(&s, a, &(struct side_opts){.min_multi_recv = 1});
	walk(&s);
	side_close(&s);
}

/* With counters and selective completion: an error is an entry all the same. */
static void selective(struct api *a)
{
	struct side s;

	side_open(&s, a,
		  &(struct side_opts){.min_multi_recv = 1,
				      .tx_bind = FI_SELECTIVE_COMPLETION,
				      .rx_bind = FI_SELECTIVE_COMPLETION});
	walk(&s);
	side_close(&s);
}

/* Receives that name their source. */
static void directed(struct api *a)
{
	struct side s;

	side_open(&s, a,
		  &(struct side_opts){.min_multi_recv = 1,
				      .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV});
	walk(&s);
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"all", all, 2, {0}},
		{"selective", selective, 2, {0}},
		{"directed", directed, 2, {0}},
		{"no-joint-copies", all, 2, {"FI_WEFT_JOINT_MIN=-1"}},
		{"no-cma", all, 2, {"FI_SHM_DISABLE_CMA=yes"}},
		{"long-packets",
		 all,
		 2,
		 {"FI_WEFT_EAGER_MAX=16384", "FI_WEFT_TCP_EAGER_MAX=1048576"}},
		{"short-packets", all, 2, {"FI_WEFT_TCP_EAGER_MAX=4096"}},
		{"connected", all, 2, {"EP=msg"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
