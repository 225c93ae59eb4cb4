/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_PEEK, FI_CLAIM and FI_DISCARD: finding, reserving and dropping unexpected messages. */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/atomic.h"
#include "lib/forms.h"

#define CQ_DATA UINT64_C(0x8877665544332211)

static size_t message_len; /* of this case: short or long */

static struct form_args look(struct side *s, bool tagged, uint64_t tag, uint64_t flags)
{
	(void)s;
	return (struct form_args){.form = FORM_MSG,
				  .tagged = tagged,
				  .tag = tag,
				  .peer = FI_ADDR_UNSPEC,
				  .flags = flags};
}

/* Peeks until the message is found; it may still be in flight. */
static struct fi_cq_tagged_entry find(struct side *s, struct form_args *f)
{
	struct fi_cq_tagged_entry e = {0};
	ssize_t ret;

	for (;;) {
		struct fi_cq_err_entry err = {0};

		POST(s, form_recv(s, f));
		while ((ret = fi_cq_read(s->rx, &e, 1)) == -FI_EAGAIN)
			side_progress(s);
		if (ret == 1)
			break;
		CHECK_EQ(ret, -FI_EAVAIL);
		CHECK_EQ(fi_cq_readerr(s->rx, &err, 0), 1);
		CHECK_EQ(err.err, FI_ENOMSG);
		CHECK(err.op_context == f->context);
		side_progress(s);
	}
	CHECK(e.op_context == f->context);
	CHECK_EQ(e.flags & (FI_RECV | FI_MSG | FI_TAGGED), FI_RECV | form_kind(f));
	CHECK_EQ(e.len, message_len);
	if (f->tagged)
		CHECK_EQ(e.tag & ~f->ignore, f->tag & ~f->ignore);
	return e;
}

static void find_nothing(struct side *s, struct form_args *f)
{
	struct fi_cq_err_entry err;

	POST(s, form_recv(s, f));
	err = TAKE_ERR(s, s->rx, FI_ENOMSG);
	CHECK(err.op_context == f->context);
}

/* Receives the next message of this kind and checks its data. */
static void receive(struct side *s, bool tagged, uint64_t tag, uint64_t ignore, unsigned int seed)
{
	struct data d = data_new(message_len, 1);
	struct form_args f = {.tagged = tagged,
			      .d = &d,
			      .tag = tag,
			      .ignore = ignore,
			      .peer = FI_ADDR_UNSPEC,
			      .context = &d};

	POST(s, form_recv(s, &f));
	GOT(s, &d, form_kind(&f), message_len);
	DATA_EXPECT(&d, message_len, seed);
	data_free(&d);
}

/* Sends messages with these tags, seeds 1, 2, ..., and waits for the other side. */
static void send_tags(struct side *s, bool tagged, const uint64_t *tags, unsigned int count)
{
	struct data d[8];

	for (unsigned int i = 0; i < count; i++) {
		d[i] = data_full(message_len, 1, i + 1);
		POST(s, form_send(s, &(struct form_args){.tagged = tagged,
							 .d = &d[i],
							 .tag = tags[i],
							 .peer = s->addr[0],
							 .context = &d[i]}));
	}
	api_meet(s->a);
	for (unsigned int i = 0; i < count; i++)
		TAKE(s, s->tx);
	for (unsigned int i = 0; i < count; i++)
		data_free(&d[i]);
	QUIET(s, s->tx, 1);
}

static void peek_receive(struct side *s, bool tagged)
{
	struct form_args f = look(s, tagged, 3, FI_PEEK);
	struct fi_context ctx;

	api_meet(s->a);
	f.context = &ctx;
	for (int i = 0; i < 3; i++)
		CHECK(find(s, &f).len == message_len); /* peeking leaves the message */
	if (tagged) {
		f.tag = 4;
		find_nothing(s, &f);
		f.tag = UINT64_C(1) << 60 | 3;
		find_nothing(s, &f);
		f.ignore = UINT64_C(1) << 60;
		find(s, &f);
		f.tagged = false;
		if (!api_other())
			find_nothing(s, &f);
	}
	receive(s, tagged, 3, 0, 1);
	receive(s, tagged, 5, 0, 2);
	f = look(s, tagged, 0, FI_PEEK);
	f.context = &ctx;
	f.ignore = ~UINT64_C(0);
	find_nothing(s, &f);
}

/* A claimed message is hidden from other receives. */
static void claim_receive(struct side *s, bool tagged)
{
	struct form_args f = look(s, tagged, 3, FI_PEEK | FI_CLAIM);
	struct data d = data_new(message_len, 2);
	struct fi_context one, two;

	api_meet(s->a);
	f.context = &one;
	find(s, &f);
	f.context = &two;
	find(s, &f);
	receive(s, tagged, 3, 0, 3);
	f.flags = FI_CLAIM;
	f.d = &d;
	POST(s, form_recv(s, &f));
	GOT(s, &two, form_kind(&f), message_len);
	DATA_EXPECT(&d, message_len, 2);
	data_free(&d);
	d = data_new(message_len, 1);
	f.context = &one;
	POST(s, form_recv(s, &f));
	GOT(s, &one, form_kind(&f), message_len);
	DATA_EXPECT(&d, message_len, 1);
	data_free(&d);
}

/* Discards messages with peek, and after a claim. */
static void discard_receive(struct side *s, bool tagged)
{
	struct form_args f = look(s, tagged, 3, FI_PEEK | FI_DISCARD);
	struct fi_context ctx;

	api_meet(s->a);
	f.context = &ctx;
	find(s, &f);
	f.flags = FI_PEEK | FI_CLAIM;
	find(s, &f);
	f.flags = FI_CLAIM | FI_DISCARD;
	POST(s, form_recv(s, &f));
	CHECK(TAKE(s, s->rx).op_context == &ctx);
	receive(s, tagged, 3, 0, 3);
	f.flags = FI_PEEK;
	find_nothing(s, &f);
}

static void each(struct api *a, void (*receive_case)(struct side *, bool), const uint64_t *tags,
		 unsigned int count)
{
	static const size_t lens[] = {100, 0, 70000};
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	/* Untagged messages can be peeked at too. */
	for (size_t i = 0; i < API_COUNT(lens) * (api_other() ? 1 : 2); i++) {
		bool tagged = i < API_COUNT(lens);

		message_len = lens[i % API_COUNT(lens)];
		if (a->rank) {
			send_tags(&s, tagged, tags, count);
		} else {
			receive_case(&s, tagged);
		}
		api_meet(a);
	}
	side_close(&s);
}

static void peek(struct api *a)
{
	each(a, peek_receive, (uint64_t[]){3, 5}, 2);
}

static void claim(struct api *a)
{
	each(a, claim_receive, (uint64_t[]){3, 3, 3}, 3);
}

static void discard(struct api *a)
{
	each(a, discard_receive, (uint64_t[]){3, 3, 3}, 3);
}

/* Peeking reports remote CQ data and source as receiving does. */
static void metadata(struct api *a)
{
	struct side s;

	side_open(&s, a, &(struct side_opts){.caps = FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV});
	message_len = 16;
	if (a->rank) {
		POST(&s, fi_tinjectdata(s.ep, "sixteen letters.", 16, CQ_DATA, s.addr[0], 8));
		api_meet(a);
	} else {
		struct form_args f = look(&s, true, 8, FI_PEEK);
		struct fi_context ctx;
		struct fi_cq_tagged_entry e;
		fi_addr_t src = FI_ADDR_NOTAVAIL;

		api_meet(a);
		f.context = &ctx;
		find(&s, &f);
		f.peer = s.addr[0];
		find_nothing(&s, &f);
		f.peer = s.addr[1];
		POST(&s, form_recv(&s, &f));
		e = TAKE_FROM(&s, s.rx, &src);
		CHECK_EQ(e.tag, 8);
		CHECK(e.flags & FI_REMOTE_CQ_DATA);
		CHECK_EQ(e.data, CQ_DATA);
		CHECK_EQ(src, s.addr[1]);
		f.flags = FI_PEEK | FI_DISCARD;
		find(&s, &f);
	}
	side_close(&s);
}

/* One peek finds a message that has come, behind whatever has come before. */
static void behind_atomics(struct api *a)
{
	static const unsigned int counts[] = {9, 40, 200};
	uint64_t one = 1;
	struct amo_side m;

	if (api_networked())
		api_skip("nothing says here that a message has come");
	amo_open_usual(&m, a);
	for (unsigned int i = 0; i < API_COUNT(counts) * api_times(100); i++) {
		struct form_args f = look(&m.s, true, i, FI_PEEK | FI_DISCARD);
		struct fi_cq_tagged_entry e;

		for (unsigned int n = 0; a->rank && n < counts[i % API_COUNT(counts)]; n++)
			POST(&m.s, fi_inject_atomic(m.s.ep, &one, 1, m.s.addr[0], m.base[0],
						    m.key[0], FI_UINT64, FI_SUM));
		if (a->rank)
			POST(&m.s, fi_tinject(m.s.ep, &one, sizeof(one), m.s.addr[0], i));
		i ? api_meet_still(a) : api_meet(a); /* the first message connects */
		if (!a->rank) {
			OK(form_recv(&m.s, &f));
			CHECK_EQ(fi_cq_read(m.s.rx, &e, 1), 1);
		}
		api_meet_still(a);
	}
	amo_close(&m);
}

/* Claiming a message that was not found is an error. */
static void unclaimed(struct api *a)
{
	struct fi_context ctx = {{0}};
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (int tagged = 0; tagged < 2; tagged++) {
		struct form_args f = look(&s, tagged, 1, FI_CLAIM);

		f.context = &ctx;
		CHECK_EQ(form_recv(&s, &f), -FI_EINVAL);
		f.flags |= FI_DISCARD;
		CHECK_EQ(form_recv(&s, &f), -FI_EINVAL);
	}
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"peek", peek, 2, {0}},
		{"claim", claim, 2, {0}},
		{"discard", discard, 2, {0}},
		{"metadata", metadata, 2, {0}},
		{"behind-atomics", behind_atomics, 2, {0}},
		{"unclaimed", unclaimed, 1, {0}},
		{"claim-no-cma", claim, 2, {"FI_SHM_DISABLE_CMA=yes"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
