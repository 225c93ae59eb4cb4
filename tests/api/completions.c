/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: formats, selective completion, order, errors, overflow. */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"

static const size_t entry_sizes[] = {
	[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
	[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
	[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
	[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
};

/* Reads exactly `count` entries and checks that no further one exists. */
static void read_entries(struct side *s, enum fi_cq_format format, unsigned char *to, size_t count)
{
	size_t size = entry_sizes[format], room = (count + 1) * size;

	memset(to, DATA_GUARD, room);
	for (size_t have = 0; have < count;) {
		ssize_t ret = fi_cq_read(s->rx, to + have * size, count - have);

		if (ret == -FI_EAGAIN) {
			side_progress(s);
			continue;
		}
		CHECK(ret > 0 && (size_t)ret <= count - have);
		have += (size_t)ret;
		CHECK(data_all(to + have * size, room - have * size, DATA_GUARD));
	}
}

/* Each format is a prefix of the longest one. */
static void check_entry(const unsigned char *at, enum fi_cq_format format, uintptr_t i)
{
	struct fi_cq_tagged_entry e;

	memset(&e, 0, sizeof(e));
	memcpy(&e, at, entry_sizes[format]);
	CHECK_EQ((uintptr_t)e.op_context, i);
	if (format >= FI_CQ_FORMAT_MSG) {
		CHECK_EQ(e.flags & SIDE_FLAGS, FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA);
		CHECK_EQ(e.len, i);
	}
	if (format >= FI_CQ_FORMAT_DATA)
		CHECK_EQ(e.data, ~(uint64_t)i);
	if (format >= FI_CQ_FORMAT_TAGGED)
		CHECK_EQ(e.tag, i << 32);
}

static void formats(struct api *a)
{
	enum { COUNT = 20 };
	unsigned char bufs[COUNT][COUNT] = {{0}};
	unsigned char entries[(COUNT + 1) * sizeof(struct fi_cq_tagged_entry)];

	pair_not_bare("no tags");
	for (enum fi_cq_format f = FI_CQ_FORMAT_CONTEXT; f <= FI_CQ_FORMAT_TAGGED; f++) {
		struct side s;

		side_open(&s, a, &(struct side_opts){.format = f});
		for (uintptr_t i = 0; i < COUNT && a->rank == 0; i++)
			POST(&s, fi_trecv(s.ep, bufs[i], COUNT, NULL, FI_ADDR_UNSPEC, i << 32, 0,
					  (void *)i));
		api_meet(a);
		for (uintptr_t i = 0; i < COUNT && a->rank; i++)
			POST(&s,
			     fi_tinjectdata(s.ep, bufs[i], i, ~(uint64_t)i, s.addr[0], i << 32));
		if (a->rank == 0) {
			read_entries(&s, f, entries, COUNT);
			for (uintptr_t i = 0; i < COUNT; i++)
				check_entry(entries + i * entry_sizes[f], f, i);
		}
		side_close(&s);
	}
}

#define LEN 60 /* short enough for fi_inject on all transports */

/* Only calls with FI_COMPLETION complete; failed ones always do. */
static void selective_send(struct side *s)
{
	struct data d = data_full(LEN, 1, 1);
	struct form_args f = {.d = &d, .peer = s->addr[0], .context = &f};

	for (f.form = FORM_PLAIN; f.form < FORM_COUNT; f.form++)
		POST(s, form_send(s, &f));
	QUIET(s, s->tx, 5);
	f.form = FORM_MSG;
	f.flags = FI_COMPLETION;
	FORM_SEND(s, &f);
	f.tagged = true;
	f.form = FORM_PLAIN;
	if (!pair_bare()) {
		POST(s, form_send(s, &f));
		f.form = FORM_MSG;
		FORM_SEND(s, &f);
	}
	api_meet(s->a);
	QUIET(s, s->tx, 5);
	data_free(&d);
}

static void selective_receive(struct side *s)
{
	struct data d = data_new(LEN, 1), less = data_new(LEN - 1, 1);
	struct form_args f = {.d = &d, .peer = FI_ADDR_UNSPEC, .context = &f, .form = FORM_MSG};

	for (int i = 0; i < FORM_COUNT; i++) {
		f.form = i & 1 ? FORM_MSG : FORM_PLAIN;
		POST(s, form_recv(s, &f));
	}
	f.form = FORM_MSG;
	f.flags = FI_COMPLETION;
	POST(s, form_recv(s, &f));
	GOT(s, &f, FI_MSG, LEN);
	DATA_EXPECT(&d, LEN, 1);
	f.flags = 0;
	f.tagged = true;
	f.d = &less;
	if (!pair_bare()) {
		POST(s, form_recv(s, &f));
		TAKE_ERR(s, s->rx, FI_ETRUNC);
		f.d = &d;
		f.flags = FI_COMPLETION;
		POST(s, form_recv(s, &f));
		GOT(s, &f, FI_TAGGED, LEN);
	}
	api_meet(s->a);
	QUIET(s, s->rx, 5);
	data_free(&d);
	data_free(&less);
}

static void selective(struct api *a)
{
	struct side_opts o = {.tx_bind = FI_SELECTIVE_COMPLETION,
			      .rx_bind = FI_SELECTIVE_COMPLETION};
	struct side s;

	side_open(&s, a, &o);
	if (a->rank)
		selective_send(&s);
	else
		selective_receive(&s);
	side_close(&s);
}

/*
 * With FI_COMPLETION as default flag, calls without flags complete; flags of a call replace the
 * default.
 */
static void defaults(struct api *a)
{
	struct side_opts o = {.tx_bind = FI_SELECTIVE_COMPLETION,
			      .rx_bind = FI_SELECTIVE_COMPLETION,
			      .tx_flags = FI_COMPLETION,
			      .rx_flags = FI_COMPLETION};
	struct data d = data_new(10, 1);
	struct form_args f = {.d = &d, .context = &f};
	struct side s;

	side_open(&s, a, &o);
	f.peer = a->rank ? s.addr[0] : FI_ADDR_UNSPEC;
	for (int i = 0; i < 4; i++) {
		f.form = i & 1 ? FORM_MSG : FORM_PLAIN;
		POST(&s, a->rank ? form_send(&s, &f) : form_recv(&s, &f));
		if (a->rank && !(i & 1))
			SENT(&s, &f, FI_MSG);
		if (!a->rank && !(i & 1))
			GOT(&s, &f, FI_MSG, 10);
	}
	QUIET(&s, a->rank ? s.tx : s.rx, 5);
	side_close(&s);
	data_free(&d);
}

#define FLOOD 5000

/* A queue opened with size 8 keeps all completions, in order. */
static void overflow(struct api *a)
{
	static uint64_t values[FLOOD];
	struct side s;

	side_open(&s, a, &(struct side_opts){.cq_size = 8});
	for (uintptr_t i = 0; i < FLOOD; i++) {
		values[i] = i;
		if (a->rank)
			POST(&s, fi_send(s.ep, &values[i], 8, NULL, s.addr[0], (void *)i));
		else
			POST(&s, fi_recv(s.ep, &values[i], 8, NULL, s.addr[1], (void *)i));
		if (i % 100 == 0)
			side_progress(&s);
	}
	api_meet(a);
	for (uintptr_t i = 0; i < FLOOD; i++) {
		if (a->rank)
			SENT(&s, (void *)i, FI_MSG);
		else
			GOT(&s, (void *)i, FI_MSG, 8);
		CHECK_EQ(values[i], i);
	}
	QUIET(&s, s.rx, 1);
	QUIET(&s, s.tx, 1);
	side_close(&s);
}

/* Reading zero entries makes progress, even if completions are queued. */
static void count_zero(struct api *a)
{
	volatile uint64_t word[2] = {0};
	struct fi_cq_tagged_entry e;
	struct side s;

	side_open(&s, a, &(struct side_opts){.one_cq = true});
	for (int i = 0; i < 2; i++) {
		uint64_t one = 1;

		if (a->rank) {
			POST(&s, fi_inject(s.ep, &one, 8, s.addr[0]));
			api_meet(a);
			continue;
		}
		POST(&s, fi_recv(s.ep, (void *)&word[i], 8, NULL, FI_ADDR_UNSPEC, &s));
		api_at(__FILE__, __LINE__);
		while (!word[i])
			fi_cq_read(s.rx, NULL, 0);
		api_meet(a);
	}
	for (int i = 0; i < 2 && !a->rank; i++)
		CHECK_EQ(fi_cq_read(s.rx, &e, 1), 1);
	side_close(&s);
}

/* An error keeps its place among the completions. */
static void errors(struct api *a)
{
	struct fi_cq_tagged_entry e[4];
	struct fi_cq_err_entry err = {0};
	char buf[8] = "";
	struct side s;

	pair_not_bare("a message that is too long ends the connection");
	side_open(&s, a, &(struct side_opts){0});
	CHECK_EQ(fi_cq_readerr(s.rx, &err, 0), -FI_EAGAIN);
	for (uintptr_t i = 0; i < 4; i++) {
		if (a->rank)
			POST(&s, fi_inject(s.ep, buf, 8, s.addr[0]));
		else
			POST(&s,
			     fi_recv(s.ep, buf, i == 2 ? 7 : 8, NULL, FI_ADDR_UNSPEC, (void *)i));
	}
	api_meet(a);
	for (double end = api_seconds() + 0.02 * api_limit(); api_seconds() < end;)
		side_progress(&s);
	if (a->rank == 0) {
		CHECK_EQ(fi_cq_readerr(s.rx, &err, 0), -FI_EAGAIN);
		CHECK_EQ(fi_cq_read(s.rx, e, 4), 2);
		CHECK_EQ(fi_cq_read(s.rx, e, 4), -FI_EAVAIL);
		CHECK_EQ(fi_cq_read(s.rx, e, 4), -FI_EAVAIL);
		err = TAKE_ERR(&s, s.rx, FI_ETRUNC);
		CHECK_EQ((uintptr_t)err.op_context, 2);
		CHECK(fi_cq_strerror(s.rx, err.prov_errno, err.err_data, NULL, 0));
		CHECK_EQ(fi_cq_readerr(s.rx, &err, 0), -FI_EAGAIN);
		GOT(&s, (void *)3, FI_MSG, 8);
	}
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"formats", formats, 2, {0}},       {"selective", selective, 2, {0}},
		{"defaults", defaults, 2, {0}},     {"overflow", overflow, 2, {0}},
		{"count-zero", count_zero, 2, {0}}, {"errors", errors, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
