/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_cancel: a posted receive ends with FI_ECANCELED; other contexts are not found. */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"

static struct form_args args_of(struct side *s, bool tagged, const struct data *d, uint64_t tag)
{
	return (struct form_args){.tagged = tagged,
				  .d = d,
				  .tag = tag,
				  .peer = s->a->rank ? s->addr[0] : FI_ADDR_UNSPEC,
				  .context = (void *)d};
}

/* Cancelling an unknown context is no error, and nothing completes. */
static void not_found(struct side *s, const void *context)
{
	ssize_t ret = fi_cancel(&s->ep->fid, (void *)context);

	CHECK(ret == 0);
}

static void expect_canceled(struct side *s, const struct data *d, bool tagged)
{
	struct fi_cq_err_entry e = TAKE_ERR(s, s->rx, FI_ECANCELED);

	CHECK(e.op_context == d);
	CHECK_EQ(e.flags & (FI_RECV | FI_MSG | FI_TAGGED), FI_RECV | (tagged ? FI_TAGGED : FI_MSG));
}

/* Cancels the middle one of three receives: the messages match the other two. */
static void middle(struct api *a)
{
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (int tagged = 0; tagged < 2; tagged++) {
		struct data d[3];

		for (unsigned int i = 0; i < 3; i++)
			d[i] = a->rank ? data_full(50, 1, i) : data_new(50, 1);
		if (a->rank) {
			api_meet(a);
			for (int i = 0; i < 3; i += 2) {
				struct form_args f = args_of(&s, tagged, &d[i], 4);

				FORM_SEND(&s, &f);
			}
		} else {
			for (int i = 0; i < 3; i++) {
				struct form_args f = args_of(&s, tagged, &d[i], 4);

				POST(&s, form_recv(&s, &f));
			}
			OK(fi_cancel(&s.ep->fid, &d[1]));
			expect_canceled(&s, &d[1], tagged);
			api_meet(a);
			for (int i = 0; i < 3; i += 2) {
				GOT(&s, &d[i], tagged ? FI_TAGGED : FI_MSG, 50);
				DATA_EXPECT(&d[i], 50, (unsigned int)i);
			}
			DATA_EXPECT(&d[1], 0, 0);
			QUIET(&s, s.rx, 2);
		}
		api_meet(a);
		for (int i = 0; i < 3; i++)
			data_free(&d[i]);
	}
	side_close(&s);
}

/* Contexts that were never posted, already cancelled, or completed: nothing happens. */
static void unknown(struct api *a)
{
	struct data d = data_new(8, 1);
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (int tagged = 0; tagged < 2; tagged++) {
		struct form_args f = args_of(&s, tagged, &d, 1);

		not_found(&s, &d);
		if (a->rank) {
			FORM_SEND(&s, &f);
			not_found(&s, &d);
		} else {
			POST(&s, form_recv(&s, &f));
			GOT(&s, &d, form_kind(&f), 8);
			not_found(&s, &d);
			POST(&s, form_recv(&s, &f));
			not_found(&s, &f);
			OK(fi_cancel(&s.ep->fid, &d));
			expect_canceled(&s, &d, tagged);
			not_found(&s, &d);
		}
		api_meet(a);
		QUIET(&s, s.rx, 2);
		QUIET(&s, s.tx, 2);
	}
	side_close(&s);
	data_free(&d);
}

/* One call cancels one of several receives with the same context. */
static void same_context(struct api *a)
{
	enum { COUNT = 5 };
	struct data d = data_new(8, 1);
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (uint64_t i = 0; i < COUNT; i++) {
		struct form_args f = args_of(&s, i & 1, &d, i);

		POST(&s, form_recv(&s, &f));
	}
	for (int i = 0; i < COUNT; i++) {
		OK(fi_cancel(&s.ep->fid, &d));
		TAKE_ERR(&s, s.rx, FI_ECANCELED);
		QUIET(&s, s.rx, 1);
	}
	not_found(&s, &d);
	side_close(&s);
	data_free(&d);
}

/* Cancelling while messages arrive: each receive ends once, and no message is lost. */
static void race(struct api *a)
{
	enum { COUNT = 2000 };
	static uint64_t words[COUNT];
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	if (a->rank) {
		for (uint64_t i = 0; i < COUNT; i++)
			POST(&s, fi_tinject(s.ep, &i, 8, s.addr[0], i));
		side_close(&s);
		return;
	}
	for (uint64_t i = 0; i < COUNT; i++) {
		struct fi_cq_tagged_entry e;
		ssize_t canceled, ret;

		POST(&s, fi_trecv(s.ep, &words[i], 8, NULL, FI_ADDR_UNSPEC, i, 0, &words[i]));
		canceled = fi_cancel(&s.ep->fid, &words[i]);
		CHECK(canceled == 0 || canceled == -FI_ENOENT);
		while ((ret = fi_cq_read(s.rx, &e, 1)) == -FI_EAGAIN)
			side_progress(&s);
		if (ret == 1) {
			CHECK(e.op_context == &words[i]);
			CHECK_EQ(words[i], i);
			continue;
		}
		TAKE_ERR(&s, s.rx, FI_ECANCELED);
		POST(&s, fi_trecv(s.ep, &words[i], 8, NULL, FI_ADDR_UNSPEC, i, 0, &words[i]));
		GOT(&s, &words[i], FI_TAGGED, 8);
		CHECK_EQ(words[i], i);
	}
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"middle", middle, 2, {0}},
		{"unknown", unknown, 2, {0}},
		{"same-context", same_context, 1, {0}},
		{"race", race, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
