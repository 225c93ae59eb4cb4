/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_SOURCE, FI_SOURCE_ERR, and FI_DIRECTED_RECV, which receives from one sender. */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"

#define SENDERS 3

static void send_word(struct side *s, bool tagged, uint64_t value)
{
	struct data d = {.iov = {{&value, 8}}, .count = 1, .len = 8};

	POST(s, form_send(s, &(struct form_args){.form = FORM_INJECT,
						 .tagged = tagged,
						 .d = &d,
						 .tag = 3,
						 .peer = s->addr[0]}));
}

static void post_word(struct side *s, bool tagged, uint64_t *value, fi_addr_t from)
{
	struct data d = {.iov = {{value, 8}}, .count = 1, .len = 8};

	POST(s, form_recv(s, &(struct form_args){.tagged = tagged,
						 .d = &d,
						 .tag = 3,
						 .peer = from,
						 .context = value}));
}

/* Each message contains its sender's rank, which must match the source of the completion. */
static void reported(struct api *a, enum fi_av_type type)
{
	struct side_opts o = {.caps = FI_MSG | FI_TAGGED | FI_SOURCE, .av_type = type};
	enum { EACH = 50 };
	struct side s;

	side_open(&s, a, &o);
	for (int i = 0; i < EACH && a->rank; i++)
		send_word(&s, i & 1, (uint64_t)a->rank);
	for (int i = 0; i < EACH * SENDERS && !a->rank; i++) {
		fi_addr_t src = FI_ADDR_NOTAVAIL;
		uint64_t rank = 0;

		if (i == EACH)
			api_meet(a); /* later messages are unexpected */
		post_word(&s, i & 1, &rank, FI_ADDR_UNSPEC);
		TAKE_FROM(&s, s.rx, &src);
		CHECK(rank >= 1 && rank <= SENDERS);
		CHECK_EQ(src, s.addr[rank]);
	}
	if (a->rank)
		api_meet(a);
	side_close(&s);
}

static void source_map(struct api *a)
{
	reported(a, FI_AV_MAP);
}

static void source_table(struct api *a)
{
	reported(a, FI_AV_TABLE);
}

/* The sender is not in the vector. */
static void unknown(struct api *a)
{
	struct side_opts o = {.caps = FI_MSG | FI_TAGGED | FI_SOURCE, .knows_nobody = !a->rank};
	struct side s;

	side_open(&s, a, &o);
	if (a->rank) {
		send_word(&s, false, 5);
	} else {
		fi_addr_t src = 0;
		uint64_t value = 0;

		post_word(&s, false, &value, FI_ADDR_UNSPEC);
		TAKE_FROM(&s, s.rx, &src);
		CHECK_EQ(src, FI_ADDR_NOTAVAIL);
		CHECK_EQ(value, 5);
	}
	side_close(&s);
}

/* The message is an error completion that contains the sender's address. */
static void take_unknown(struct side *s, const struct form_args *f)
{
	unsigned char name[SIDE_NAME] = {0};
	struct fi_cq_err_entry e = {.err_data = name, .err_data_size = sizeof(name)};
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(s->rx, &entry, 1)) == -FI_EAGAIN)
		side_progress(s);
	CHECK_EQ(ret, -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(s->rx, &e, 0), 1);
	CHECK_EQ(e.err, FI_EADDRNOTAVAIL);
	CHECK(e.op_context == f->context);
	CHECK_EQ(e.len, f->d->len);
	CHECK_EQ(e.flags & (FI_RECV | FI_MSG | FI_TAGGED), FI_RECV | form_kind(f));
	CHECK_EQ(e.err_data_size, s->name_len);
	CHECK(e.err_data == name && !memcmp(name, s->names[1], s->name_len));
	DATA_EXPECT(f->d, f->d->len, 4);
}

/* The address suits fi_av_insert; from then on the sender is known. */
static void get_to_know(struct side *s)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL, src = FI_ADDR_NOTAVAIL;
	uint64_t value = 0;

	CHECK_EQ(fi_av_insert(s->av, s->names[1], 1, &addr, 0, NULL), 1);
	api_meet(s->a);
	post_word(s, false, &value, FI_ADDR_UNSPEC);
	TAKE_FROM(s, s->rx, &src);
	CHECK_EQ(src, addr);
	CHECK_EQ(value, 6);
}

static void unknown_reported(struct api *a)
{
	struct side_opts o = {.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR,
			      .knows_nobody = !a->rank};
	static const size_t lens[] = {8, 100000};
	struct side s;

	side_open(&s, a, &o);
	for (int i = 0; i < 6; i++) {
		struct data d = a->rank ? data_full(lens[i & 1], 1, 4) : data_new(lens[i & 1], 1);
		struct form_args f = {.tagged = i & 2, .d = &d, .tag = 3, .context = &f};

		f.peer = a->rank ? s.addr[0] : FI_ADDR_UNSPEC;
		if (a->rank) {
			FORM_SEND(&s, &f);
		} else {
			POST(&s, form_recv(&s, &f));
			take_unknown(&s, &f);
		}
		data_free(&d);
		api_meet(a);
	}
	if (a->rank) {
		api_meet(a);
		send_word(&s, false, 6);
	} else {
		get_to_know(&s);
	}
	side_close(&s);
}

/* Messages that nobody waits for; their sender is gone before they are received, and so is its entry if it had one. */
static void gone(struct api *a, bool had_entry)
{
	struct side_opts o = {.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR,
			      .knows_nobody = !a->rank && !had_entry};
	struct side s;

	side_open(&s, a, &o);
	for (int tagged = 0; tagged < 2 && a->rank; tagged++) {
		struct data d = data_full(8, 1, 4);
		struct form_args f = {.tagged = tagged, .d = &d, .tag = 3, .context = &f};

		f.peer = s.addr[0];
		FORM_SEND(&s, &f);
		data_free(&d);
	}
	if (a->rank)
		side_close(&s);
	api_meet(a);
	if (a->rank)
		return;
	QUIET(&s, s.rx, 20); /* they come, and the end of the connection */
	if (had_entry)
		OK(fi_av_remove(s.av, &s.addr[1], 1, 0));
	for (int tagged = 0; tagged < 2; tagged++) {
		struct data d = data_new(8, 1);
		struct form_args f = {.tagged = tagged, .d = &d, .tag = 3, .context = &f};

		f.peer = FI_ADDR_UNSPEC;
		POST(&s, form_recv(&s, &f));
		take_unknown(&s, &f);
		data_free(&d);
	}
	side_close(&s);
}

static void unknown_gone(struct api *a)
{
	gone(a, false);
}

static void removed_gone(struct api *a)
{
	gone(a, true);
}

/* Directed receives, posted in another order than the messages arrive. */
static void directed(struct api *a)
{
	struct side_opts o = {.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE};
	uint64_t value[SENDERS + 1];
	struct side s;

	side_open(&s, a, &o);
	for (int i = 0; i < 4; i++) {
		bool tagged = i & 1, is_late = i & 2;

		if (a->rank) {
			if (!is_late)
				api_meet(a);
			send_word(&s, tagged, (uint64_t)a->rank);
			if (is_late)
				api_meet(a);
			api_meet(a);
			continue;
		}
		if (is_late)
			api_meet(a);
		for (int from = SENDERS; from > 0; from--)
			post_word(&s, tagged, &value[from], s.addr[from]);
		if (!is_late)
			api_meet(a);
		for (int n = 0; n < SENDERS; n++) {
			fi_addr_t src;
			struct fi_cq_tagged_entry e = TAKE_FROM(&s, s.rx, &src);
			uint64_t from = (uint64_t)((uint64_t *)e.op_context - value);

			CHECK_EQ(*(uint64_t *)e.op_context, from);
			CHECK_EQ(src, s.addr[from]);
		}
		api_meet(a);
	}
	side_close(&s);
}

/* A receive for a silent sender does not block others; receives for any source match in order. */
static void silent(struct api *a)
{
	struct side_opts o = {.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV};
	uint64_t value[3] = {0};
	struct side s;

	side_open(&s, a, &o);
	for (int tagged = 0; tagged < 2; tagged++) {
		if (a->rank == 0) {
			post_word(&s, tagged, &value[0], s.addr[2]);
			post_word(&s, tagged, &value[1], FI_ADDR_UNSPEC);
			post_word(&s, tagged, &value[2], s.addr[1]);
		}
		api_meet(a);
		if (a->rank == 1) {
			send_word(&s, tagged, 11);
			send_word(&s, tagged, 12);
		} else if (a->rank == 0) {
			GOT(&s, &value[1], tagged ? FI_TAGGED : FI_MSG, 8);
			GOT(&s, &value[2], tagged ? FI_TAGGED : FI_MSG, 8);
			CHECK_EQ(value[1], 11);
			CHECK_EQ(value[2], 12);
			QUIET(&s, s.rx, 2);
			OK(fi_cancel(&s.ep->fid, &value[0]));
			TAKE_ERR(&s, s.rx, FI_ECANCELED);
		}
		api_meet(a);
	}
	side_close(&s);
}

/* Without FI_DIRECTED_RECV the source address of a receive is ignored. */
static void undirected(struct api *a)
{
	static const uint64_t caps[] = {0, FI_TAGGED_DIRECTED_RECV};

	for (size_t i = 0; i < (api_other() ? 1 : API_COUNT(caps)); i++) {
		struct side_opts o = {.caps = FI_MSG | FI_TAGGED | caps[i]};
		uint64_t value = 0;
		struct side s;

		side_open(&s, a, &o);
		for (int tagged = 0; tagged < (caps[i] ? 1 : 2); tagged++) {
			if (a->rank) {
				send_word(&s, tagged, 9);
				continue;
			}
			post_word(&s, tagged, &value, s.addr[0]); /* own address */
			GOT(&s, &value, tagged ? FI_TAGGED : FI_MSG, 8);
			CHECK_EQ(value, 9);
		}
		side_close(&s);
	}
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"source-map", source_map, SENDERS + 1, {0}},
		{"source-table", source_table, SENDERS + 1, {0}},
		{"unknown", unknown, 2, {0}},
		{"unknown-told", unknown_reported, 2, {0}},
		{"unknown-told-no-cma", unknown_reported, 2, {"FI_SHM_DISABLE_CMA=yes"}},
		{"unknown-gone", unknown_gone, 2, {0}},
		{"removed-gone", removed_gone, 2, {0}},
		{"directed", directed, SENDERS + 1, {0}},
		{"silent", silent, 3, {0}},
		{"undirected", undirected, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
