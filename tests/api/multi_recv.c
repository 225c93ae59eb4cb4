/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_MULTI_RECV: one buffer for many messages, released once, with or after the last message. */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"

/* A posted buffer and how much of it is used. */
struct pool {
	struct data d;
	size_t used;
	unsigned int messages;
	bool released;
};

static struct side_opts options(size_t min)
{
	struct side_opts o = {.caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV | FI_TAGGED_MULTI_RECV,
			      .min_multi_recv = min};

	if (api_other())
		o.caps &= ~FI_TAGGED_MULTI_RECV;
	return o;
}

static void pool_post(struct side *s, struct pool *p, size_t len, bool tagged)
{
	*p = (struct pool){.d = data_new(len, 1)};
	POST(s, form_recv(s, &(struct form_args){.form = FORM_MSG,
						 .tagged = tagged,
						 .d = &p->d,
						 .tag = 5,
						 .ignore = 3,
						 .peer = FI_ADDR_UNSPEC,
						 .flags = FI_MULTI_RECV | FI_COMPLETION,
						 .context = p}));
}

/* Takes one completion. Its message must lie behind all earlier ones. */
static struct pool *pool_take(struct side *s, bool tagged, size_t len, unsigned int seed)
{
	struct fi_cq_tagged_entry e = TAKE(s, s->rx);
	struct pool *p = e.op_context;
	size_t at;

	CHECK(!p->released);
	p->released = e.flags & FI_MULTI_RECV;
	if (!(e.flags & FI_RECV)) {
		CHECK(p->released);
		CHECK(!(e.flags & SIDE_FLAGS & ~FI_MULTI_RECV));
		return pool_take(s, tagged, len, seed);
	}
	CHECK_EQ(e.flags & (FI_MSG | FI_TAGGED), tagged ? FI_TAGGED : FI_MSG);
	CHECK_EQ(e.len, len);
	at = (size_t)((char *)e.buf - (char *)data_at(&p->d));
	CHECK(at >= p->used && at + len <= p->d.len);
	data_check(e.buf, len, seed);
	p->used = at + len;
	p->messages++;
	return p;
}

/* Checks the release of a buffer, which may be a completion of its own. */
static void pool_released(struct side *s, struct pool *p)
{
	if (!p->released) {
		struct fi_cq_tagged_entry e = TAKE(s, s->rx);

		CHECK(e.op_context == p);
		CHECK_EQ(e.flags & SIDE_FLAGS, FI_MULTI_RECV);
		p->released = true;
	}
	CHECK(data_all((char *)data_at(&p->d) + p->d.len, DATA_GAP, DATA_GUARD));
	data_free(&p->d);
}

static void send_message(struct side *s, bool tagged, size_t len, unsigned int seed)
{
	struct data d = data_full(len, seed % 3 ? 1 : 2, seed);
	struct form_args f = {.form = seed % 3 ? FORM_PLAIN : FORM_VECTOR,
			      .tagged = tagged,
			      .d = &d,
			      .tag = 4 + seed % 4,
			      .peer = s->addr[0],
			      .context = &d};

	FORM_SEND(s, &f);
	data_free(&d);
}

#define BUFFER  10000
#define MINIMUM 1000
#define COUNT   300

static size_t length(unsigned int i)
{
	return i * 37 % (MINIMUM + 1); /* fits into each buffer not yet released */
}

/* Two buffers in turns: a released buffer is posted again. */
static void receive_stream(struct side *s, bool tagged, bool late)
{
	struct pool pools[2];

	if (late)
		api_meet(s->a);
	pool_post(s, &pools[0], BUFFER, tagged);
	pool_post(s, &pools[1], BUFFER, tagged);
	if (!late)
		api_meet(s->a);
	for (unsigned int i = 0; i < COUNT; i++) {
		struct pool *p = pool_take(s, tagged, length(i), i);

		if (p->d.len - p->used < MINIMUM) {
			pool_released(s, p);
			pool_post(s, p, BUFFER, tagged);
		}
	}
	for (int i = 0; i < 2; i++) {
		OK(fi_cancel(&s->ep->fid, &pools[i]));
		TAKE_ERR(s, s->rx, FI_ECANCELED);
		data_free(&pools[i].d);
	}
	QUIET(s, s->rx, 2);
}

static void stream(struct api *a)
{
	struct side_opts o = options(MINIMUM);
	struct side s;

	side_open(&s, a, &o);
	for (int i = 0; i < (api_other() ? 1 : 4); i++) {
		bool tagged = i & 1, late = i & 2;

		if (!a->rank)
			receive_stream(&s, tagged, late);
		if (a->rank && !late)
			api_meet(a);
		for (unsigned int n = 0; n < COUNT && a->rank; n++)
			send_message(&s, tagged, length(n), n);
		if (a->rank && late)
			api_meet(a);
		api_meet(a);
	}
	side_close(&s);
}

#define LONG_LEN   60000
#define LONG_COUNT 8

/* Takes a message that may complete before earlier ones. Messages lie in the order of sending. */
static void pool_take_any(struct side *s, struct pool *p, bool tagged, bool seen[LONG_COUNT])
{
	struct fi_cq_tagged_entry e = TAKE(s, s->rx);
	size_t at = (size_t)((char *)e.buf - (char *)data_at(&p->d)), which = at / LONG_LEN;

	CHECK(e.op_context == p);
	CHECK_EQ(e.flags & (FI_MSG | FI_TAGGED), tagged ? FI_TAGGED : FI_MSG);
	CHECK_EQ(e.len, LONG_LEN);
	CHECK_EQ(at % LONG_LEN, 0);
	CHECK(which < LONG_COUNT && !seen[which]);
	seen[which] = true;
	data_check(e.buf, LONG_LEN, (unsigned int)which);
	p->released = e.flags & FI_MULTI_RECV;
}

static void receive_long(struct side *s, bool tagged, bool late)
{
	bool seen[LONG_COUNT] = {false};
	struct pool p;

	if (late)
		api_meet(s->a);
	pool_post(s, &p, LONG_LEN * LONG_COUNT, tagged);
	if (!late)
		api_meet(s->a);
	for (unsigned int i = 0; i < LONG_COUNT; i++) {
		pool_take_any(s, &p, tagged, seen);
		CHECK(!p.released || i + 1 == LONG_COUNT);
	}
	pool_released(s, &p);
}

static void send_long(struct side *s, bool tagged, bool late)
{
	struct data d[LONG_COUNT];

	if (!late)
		api_meet(s->a);
	for (unsigned int i = 0; i < LONG_COUNT; i++) {
		d[i] = data_full(LONG_LEN, 1, i);
		POST(s, form_send(s, &(struct form_args){.tagged = tagged,
							 .d = &d[i],
							 .tag = 6,
							 .peer = s->addr[0]}));
	}
	if (late)
		api_meet(s->a);
	for (unsigned int i = 0; i < LONG_COUNT; i++)
		TAKE(s, s->tx);
	for (unsigned int i = 0; i < LONG_COUNT; i++)
		data_free(&d[i]);
}

/*
 * Long messages in flight together fill a buffer exactly: the buffer is released after the last
 * one, in any order of arrival. In every third round they arrive before the buffer is posted.
 */
static void long_ones(struct api *a)
{
	struct side_opts o = options(1);
	struct side s;

	side_open(&s, a, &o);
	for (int round = 0; round < 6; round++) {
		bool tagged = round & 1 && !api_other();

		(a->rank ? send_long : receive_long)(&s, tagged, round % 3 == 2);
		api_meet(a);
	}
	side_close(&s);
}

/*
 * A message longer than the space left is truncated and the buffer released. The next message needs
 * another buffer.
 */
static void too_long(struct api *a)
{
	static const size_t lens[] = {200, 20000};
	struct side_opts o = options(16);
	struct side s;

	side_open(&s, a, &o);
	for (size_t i = 0; i < API_COUNT(lens); i++) {
		if (a->rank == 0) {
			struct fi_cq_err_entry err;
			struct pool p, q;

			pool_post(&s, &p, 150, false);
			pool_post(&s, &q, 400, false);
			api_meet(a);
			pool_take(&s, false, 100, 1);
			err = TAKE_ERR(&s, s.rx, FI_ETRUNC);
			CHECK(err.op_context == &p);
			CHECK_EQ(err.olen, lens[i] - 50);
			p.released = err.flags & FI_MULTI_RECV;
			pool_released(&s, &p);
			pool_take(&s, false, 390, 3);
			pool_released(&s, &q);
		} else {
			api_meet(a);
			send_message(&s, false, 100, 1);
			send_message(&s, false, lens[i], 2);
			send_message(&s, false, 390, 3);
		}
		api_meet(a);
	}
	side_close(&s);
}

/* With selective completion the release of a buffer is still reported. */
static void selective(struct api *a)
{
	struct side_opts o = options(64);
	char buf[1000];
	struct side s;

	o.rx_bind = FI_SELECTIVE_COMPLETION;
	o.rx_flags = FI_MULTI_RECV;
	side_open(&s, a, &o);
	if (a->rank == 0) {
		struct fi_cq_tagged_entry e;

		POST(&s, fi_recv(s.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, buf));
		api_meet(a);
		e = TAKE(&s, s.rx);
		CHECK(e.op_context == buf);
		CHECK(e.flags & FI_MULTI_RECV);
		QUIET(&s, s.rx, 2);
		data_check(buf + 900, 100, 9);
	} else {
		api_meet(a);
		for (unsigned int i = 0; i < 10; i++)
			send_message(&s, false, 100, i);
	}
	side_close(&s);
}

/* The minimum can be read back; empty messages never fill a buffer. */
static void minimum(struct api *a)
{
	size_t min = 0, len = sizeof(min);
	struct side_opts o = options(77);
	struct pool p;
	struct side s;

	side_open(&s, a, &o);
	OK(fi_getopt(&s.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, &len));
	CHECK_EQ(min, 77);
	if (a->rank) {
		for (unsigned int i = 0; i < 100; i++)
			POST(&s, fi_inject(s.ep, NULL, 0, s.addr[0]));
		send_message(&s, false, 100, 1);
		send_message(&s, false, 60, 2);
	} else {
		pool_post(&s, &p, 200, false);
		for (unsigned int i = 0; i < 100; i++)
			CHECK(!pool_take(&s, false, 0, 0)->released);
		CHECK(!pool_take(&s, false, 100, 1)->released);
		pool_take(&s, false, 60, 2);
		pool_released(&s, &p);
	}
	side_close(&s);
}

/*
 * With the default minimum, messages up to that length are not truncated: the buffer is released
 * with the message that leaves less.
 */
static void unset_minimum(struct api *a)
{
	size_t min = strcmp(api_provider(), "shm") ? 16384 : 4096, got = 0, len = sizeof(got);
	struct side_opts o = options(0);
	struct side s;

	side_open(&s, a, &o);
	OK(fi_getopt(&s.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &len));
	CHECK_EQ(got, min);
	if (a->rank) {
		for (unsigned int i = 0; i < 4; i++)
			send_message(&s, false, min, i);
	} else {
		struct pool p[2];

		for (int i = 0; i < 2; i++)
			pool_post(&s, &p[i], min * 2 + min / 2, false);
		for (unsigned int i = 0; i < 4; i++)
			CHECK(pool_take(&s, false, min, i) == &p[i / 2]);
		for (int i = 0; i < 2; i++)
			pool_released(&s, &p[i]);
	}
	side_close(&s);
}

/* Returns whether the error of a cancelled buffer has FI_MULTI_RECV. Of 1.17, only shm sets it. */
static bool tells_of_cancelled(void)
{
	return !api_other() || !strcmp(api_provider(), "shm");
}

/* A cancelled buffer is released by the error completion, whether it holds messages or not. */
static void cancelled(struct api *a)
{
	struct side_opts o = options(0);
	struct side s;

	side_open(&s, a, &o);
	for (int i = 0; i < (api_other() ? 2 : 4); i++) {
		bool tagged = i & 2, used = i & 1;

		if (a->rank == 0) {
			struct fi_cq_err_entry err;
			struct pool p;

			pool_post(&s, &p, 100000, tagged);
			api_meet(a);
			if (used)
				pool_take(&s, tagged, 100, 2);
			OK(fi_cancel(&s.ep->fid, &p));
			err = TAKE_ERR(&s, s.rx, FI_ECANCELED);
			CHECK(err.op_context == &p);
			CHECK_EQ(err.flags & (FI_RECV | FI_MSG | FI_TAGGED),
				 FI_RECV | (tagged ? FI_TAGGED : FI_MSG));
			if (tells_of_cancelled())
				CHECK(err.flags & FI_MULTI_RECV);
			OK(fi_cancel(&s.ep->fid, &p));
			QUIET(&s, s.rx, 2);
			data_free(&p.d);
		} else {
			api_meet(a);
			if (used)
				send_message(&s, tagged, 100, 2);
		}
		api_meet(a);
	}
	side_close(&s);
}

/* Takes one completion or error of the buffer. Returns its length. */
static size_t take_any(struct side *s, const char *buf, unsigned int *given_back)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_tagged_entry e = {0};
	ssize_t ret;

	while ((ret = fi_cq_read(s->rx, &e, 1)) == -FI_EAGAIN)
		side_progress(s);
	if (ret == 1) {
		CHECK(e.op_context == buf);
		*given_back += !!(e.flags & FI_MULTI_RECV);
		return e.len;
	}
	CHECK_EQ(ret, -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(s->rx, &err, 0), 1);
	CHECK_EQ(err.err, FI_ECANCELED);
	CHECK(err.op_context == buf);
	*given_back += !!(err.flags & FI_MULTI_RECV);
	return 0;
}

#define CANCEL_ROUNDS 60
#define CANCEL_LEN    200000
#define CANCEL_COUNT  3

/* Cancelling while long messages arrive: the buffer is released once, after the last message. */
static void cancelled_late(struct api *a)
{
	static char buf[CANCEL_LEN * (CANCEL_COUNT + 1)];
	struct side_opts o = options(0);
	struct side s;

	if (!tells_of_cancelled())
		api_skip("nobody tells that a cancelled buffer is given back");
	side_open(&s, a, &o);
	for (unsigned int round = 0; round < api_times(CANCEL_ROUNDS); round++) {
		struct iovec iov = {buf, sizeof(buf)};
		struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC};
		unsigned int given_back = 0;
		size_t got = 0;

		for (int i = 0; i < CANCEL_COUNT && a->rank; i++)
			POST(&s, fi_send(s.ep, buf, CANCEL_LEN, NULL, s.addr[0], buf));
		for (int i = 0; i < CANCEL_COUNT && a->rank; i++)
			SENT(&s, buf, FI_MSG);
		msg.context = buf;
		if (!a->rank) {
			POST(&s, fi_recvmsg(s.ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
			for (unsigned int i = 0; i < round; i++)
				fi_cq_read(s.rx, NULL, 0);
			OK(fi_cancel(&s.ep->fid, buf));
			while (!given_back)
				got += take_any(&s, buf, &given_back);
			QUIET(&s, s.rx, 1);
			POST(&s, fi_recvmsg(s.ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
			while (got < CANCEL_COUNT * CANCEL_LEN)
				got += take_any(&s, buf, &given_back);
			CHECK_EQ(given_back, 1);
			OK(fi_cancel(&s.ep->fid, buf));
			CHECK_EQ(take_any(&s, buf, &given_back), 0);
			CHECK_EQ(given_back, 2);
		}
		api_meet(a);
	}
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"stream", stream, 2, {0}},
		{"long", long_ones, 2, {0}},
		{"too-long", too_long, 2, {0}},
		{"selective", selective, 2, {0}},
		{"minimum", minimum, 2, {0}},
		{"unset-minimum", unset_minimum, 2, {0}},
		{"cancelled", cancelled, 2, {0}},
		{"cancelled-late", cancelled_late, 2, {0}},
		{"cancelled-late-no-cma", cancelled_late, 2, {"FI_SHM_DISABLE_CMA=yes"}},
		{"long-no-cma", long_ones, 2, {"FI_SHM_DISABLE_CMA=yes"}},
		{"too-long-no-cma", too_long, 2, {"FI_SHM_DISABLE_CMA=yes"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
