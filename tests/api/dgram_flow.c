/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many datagrams: streams, FI_MORE, multi-receive, cancelled receives, counters, selective
 * completion. HW=udp
 */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"
#include "lib/dgram_side.h"

#define WINDOW 32

/* Sends `count` numbers to rank 0, at most WINDOW ahead of what rank 0 has received. */
static void send_numbers(struct side *s, uint64_t count, uint64_t flags)
{
	uint64_t sent = 0, done = 0, values[WINDOW], heard = 0;

	POST(s, fi_recv(s->ep, &heard, sizeof(heard), NULL, FI_ADDR_UNSPEC, &heard));
	while (sent < count || done < count) {
		struct fi_cq_tagged_entry e;
		struct iovec iov = {&values[sent % WINDOW], sizeof(sent)};
		struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = s->addr[0]};
		bool last = sent + 1 == count || sent + 1 == done + WINDOW;

		if (sent < count && sent < done + WINDOW) {
			values[sent % WINDOW] = (uint64_t)s->a->rank << 32 | sent;
			POST(s, fi_sendmsg(s->ep, &m, last ? 0 : flags));
			sent++;
		} else {
			sched_yield();
		}
		while (fi_cq_read(s->tx, &e, 1) == 1)
			;
		if (fi_cq_read(s->rx, &e, 1) == 1) {
			done = heard;
			POST(s,
			     fi_recv(s->ep, &heard, sizeof(heard), NULL, FI_ADDR_UNSPEC, &heard));
		}
	}
	OK(fi_cancel(&s->ep->fid, &heard));
	TAKE_ERR(s, s->rx, FI_ECANCELED);
}

/*
 * Takes numbers, whose upper half is the sender's rank. Receives complete in the order of posting,
 * no number of a sender is lost or doubled, and each completion has the right source.
 */
static void take_numbers(struct side *s, uint64_t count, unsigned int posted)
{
	uint64_t values[WINDOW], next[API_RANKS] = {0}, all = count * (uint64_t)(s->a->ranks - 1);

	for (unsigned int i = 0; i < posted; i++)
		POST(s, fi_recv(s->ep, &values[i], sizeof(values[i]), NULL, FI_ADDR_UNSPEC,
				&values[i]));
	api_meet_still(s->a);
	for (uint64_t i = 0; i < all; i++) {
		uint64_t *v = &values[i % posted], rank;
		fi_addr_t src = FI_ADDR_NOTAVAIL;
		struct fi_cq_tagged_entry e = TAKE_FROM(s, s->rx, &src);

		CHECK(e.op_context == v && e.len == sizeof(*v));
		rank = *v >> 32;
		CHECK(rank > 0 && rank < (uint64_t)s->a->ranks);
		CHECK_EQ((uint32_t)*v, next[rank]);
		CHECK_EQ(src, s->addr[rank]);
		next[rank]++;
		POST(s, fi_recv(s->ep, v, sizeof(*v), NULL, FI_ADDR_UNSPEC, v));
		if (next[rank] % (WINDOW / 4) == 0 || next[rank] == count)
			POST(s, fi_inject(s->ep, &next[rank], sizeof(*v), s->addr[rank]));
	}
	for (unsigned int i = 0; i < posted; i++) {
		OK(fi_cancel(&s->ep->fid, &values[i]));
		TAKE_ERR(s, s->rx, FI_ECANCELED);
	}
}

static void stream(struct api *a, enum fi_threading threading, uint64_t flags, unsigned int posted)
{
	struct side_opts o = dgram_opts(FI_MSG | FI_SOURCE, false);
	const uint64_t count = 2000;
	struct side s;

	o.threading = threading;
	side_open(&s, a, &o);
	s.yields = true;
	if (a->rank) {
		api_meet_still(a);
		send_numbers(&s, count, flags);
	} else {
		take_numbers(&s, count, posted);
	}
	side_close(&s);
}

static void stream_one(struct api *a)
{
	stream(a, FI_THREAD_SAFE, 0, 1);
}

static void stream_many(struct api *a)
{
	stream(a, FI_THREAD_SAFE, 0, WINDOW);
}

static void stream_unlocked(struct api *a)
{
	stream(a, FI_THREAD_DOMAIN, 0, WINDOW);
}

static void stream_more(struct api *a)
{
	stream(a, FI_THREAD_DOMAIN, FI_MORE, WINDOW);
}

static ssize_t send_more(struct side *s, const struct data *d, uint64_t flags, void *context)
{
	return form_send(s, &(struct form_args){.form = FORM_MSG,
						.d = d,
						.flags = flags,
						.peer = s->addr[0],
						.context = context});
}

/*
 * Sends with FI_MORE go out in order with the next send without the flag, or with the next read of
 * a queue. Injected memory can be reused at once.
 */
static void more_sends(struct side *s)
{
	enum { COUNT = 40 };
	struct data d[COUNT];
	uint64_t word = 7;
	struct data w = {.iov = {{&word, sizeof(word)}}, .count = 1, .len = sizeof(word)};

	for (unsigned int i = 0; i < COUNT; i++)
		d[i] = data_full(i * 10, i % 3 + 1, i);
	for (unsigned int i = 0; i < COUNT; i++)
		POST(s, send_more(s, &d[i], i + 1 < COUNT ? FI_MORE : 0, &d[i]));
	api_meet_still(s->a); /* all messages arrive without any progress of this process */
	api_meet_still(s->a);
	for (unsigned int i = 0; i < COUNT; i++)
		SENT(s, &d[i], FI_MSG);
	POST(s, send_more(s, &d[3], FI_MORE, &d[3]));
	SENT(s, &d[3], FI_MSG);
	POST(s, send_more(s, &d[4], FI_MORE, &d[4]));
	POST(s, send_more(s, &w, FI_MORE | FI_INJECT, &w));
	word = 8;
	SENT(s, &d[4], FI_MSG);
	api_meet(s->a);
	for (unsigned int i = 0; i < COUNT; i++)
		data_free(&d[i]);
}

static void take_message(struct side *s, size_t len, unsigned int seed)
{
	struct data d = data_new(len, 1);

	POST(s, fi_recv(s->ep, data_at(&d), len, NULL, FI_ADDR_UNSPEC, &d));
	GOT(s, &d, FI_MSG, len);
	DATA_EXPECT(&d, len, seed);
	data_free(&d);
}

static void more(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG, false);
	uint64_t word = 0;
	struct side s;

	side_open(&s, a, &o);
	if (a->rank) {
		more_sends(&s);
	} else {
		api_meet_still(a);
		for (unsigned int i = 0; i < 40; i++)
			take_message(&s, i * 10, i);
		api_meet_still(a);
		take_message(&s, 30, 3);
		take_message(&s, 40, 4);
		POST(&s, fi_recv(s.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, &word));
		GOT(&s, &word, FI_MSG, sizeof(word));
		CHECK_EQ(word, 7);
		api_meet(a);
	}
	side_close(&s);
}

/* If the call that ends a series of FI_MORE is refused, the earlier sends still go out. */
static void more_refused(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG, false);
	struct data d[3], long_one;
	struct side s;

	side_open(&s, a, &o);
	if (a->rank) {
		for (unsigned int i = 0; i < 3; i++) {
			d[i] = data_full(10 + i, 1, i);
			POST(&s, send_more(&s, &d[i], FI_MORE, &d[i]));
		}
		long_one = data_full(70000, 1, 9);
		CHECK_EQ(send_more(&s, &long_one, 0, &long_one), -FI_EMSGSIZE);
		api_meet_still(a);
		api_meet_still(a);
		for (unsigned int i = 0; i < 3; i++) {
			CHECK(TAKE(&s, s.tx).op_context == &d[i]);
			data_free(&d[i]);
		}
		data_free(&long_one);
	} else {
		api_meet_still(a);
		for (unsigned int i = 0; i < 3; i++) {
			d[i] = data_new(10 + i, 1);
			POST(&s,
			     fi_recv(s.ep, data_at(&d[i]), 10 + i, NULL, FI_ADDR_UNSPEC, &d[i]));
			CHECK(TAKE(&s, s.rx).op_context == &d[i]);
			DATA_EXPECT(&d[i], 10 + i, i);
			data_free(&d[i]);
		}
		api_meet_still(a);
	}
	side_close(&s);
}

/*
 * A multi-receive buffer takes messages until less than `min` bytes are left. The last completion
 * releases the buffer.
 */
static void fill_buffer(struct side *s, size_t room, size_t min, size_t len)
{
	struct data d = data_new(room, 1);
	size_t used = 0;
	struct form_args f = {.form = FORM_MSG,
			      .d = &d,
			      .peer = FI_ADDR_UNSPEC,
			      .flags = FI_MULTI_RECV | FI_COMPLETION,
			      .context = &d};

	POST(s, form_recv(s, &f));
	api_meet_still(s->a);
	for (unsigned int i = 0; room - used >= min; i++) {
		struct fi_cq_tagged_entry e = TAKE(s, s->rx);
		bool released = room - used - len < min;

		CHECK(e.op_context == &d && e.len == len);
		CHECK(e.buf == (char *)data_at(&d) + used);
		data_check(e.buf, len, i);
		used += len;
		CHECK_EQ(e.flags & SIDE_FLAGS, FI_RECV | FI_MSG | (released ? FI_MULTI_RECV : 0));
		api_meet_still(s->a);
	}
	CHECK(data_all((char *)data_at(&d) + used, room - used, DATA_EMPTY));
	CHECK(data_all((char *)data_at(&d) + room, DATA_GAP, DATA_GUARD));
	data_free(&d);
}

static void multi_recv(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG | FI_MULTI_RECV, false);
	const size_t room = 2000, min = 300, len = 250;
	struct side s;

	o.min_multi_recv = min;
	side_open(&s, a, &o);
	for (int round = 0; round < 3; round++) {
		if (!a->rank) {
			fill_buffer(&s, room, min, len);
			continue;
		}
		api_meet_still(a);
		for (unsigned int i = 0; room - i * len >= min; i++) {
			struct data d = data_full(len, 1, i);
			struct form_args f = dgram_args(&s, FORM_PLAIN, &d, &d);

			FORM_SEND(&s, &f);
			data_free(&d);
			api_meet_still(a);
		}
	}
	side_close(&s);
}

/* Several multi-receive buffers: the first is filled before the second, at any rate. */
static void multi_recv_burst(struct api *a)
{
	enum { EACH = 40, BUFFERS = 3 };
	struct side_opts o = dgram_opts(FI_MSG | FI_MULTI_RECV, false);
	uint64_t buffers[BUFFERS][EACH], word;
	struct side s;

	o.min_multi_recv = sizeof(word);
	side_open(&s, a, &o);
	for (word = 0; word < EACH * BUFFERS && a->rank; word++)
		POST(&s, fi_inject(s.ep, &word, sizeof(word), s.addr[0]));
	api_meet_still(a);
	for (int i = 0; i < BUFFERS && !a->rank; i++) {
		struct data d = {.iov = {{buffers[i], sizeof(buffers[i])}}, .count = 1};

		POST(&s, form_recv(&s, &(struct form_args){.form = FORM_MSG,
							   .d = &d,
							   .peer = FI_ADDR_UNSPEC,
							   .flags = FI_MULTI_RECV,
							   .context = buffers[i]}));
	}
	for (word = 0; word < EACH * BUFFERS && !a->rank; word++) {
		struct fi_cq_tagged_entry e = TAKE(&s, s.rx);

		CHECK(e.op_context == buffers[word / EACH]);
		CHECK(e.buf == &buffers[word / EACH][word % EACH]);
		CHECK_EQ(*(uint64_t *)e.buf, word);
		CHECK_EQ(!!(e.flags & FI_MULTI_RECV), word % EACH == EACH - 1);
	}
	side_close(&s);
}

/* A cancelled receive ends with an error, and its memory stays unchanged. */
static void cancel(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG, false);
	uint64_t first = 1, second = 2;
	struct fi_cq_err_entry e;
	struct side s;

	side_open(&s, a, &o);
	if (a->rank) {
		uint64_t word = 9;

		api_meet_still(a);
		POST(&s, fi_inject(s.ep, &word, sizeof(word), s.addr[0]));
	} else {
		POST(&s, fi_recv(s.ep, &first, 8, NULL, FI_ADDR_UNSPEC, &first));
		POST(&s, fi_recv(s.ep, &second, 8, NULL, FI_ADDR_UNSPEC, &second));
		OK(fi_cancel(&s.ep->fid, &first));
		e = TAKE_ERR(&s, s.rx, FI_ECANCELED);
		CHECK(e.op_context == &first);
		OK(fi_cancel(&s.ep->fid, &first)); /* already cancelled */
		QUIET(&s, s.rx, 2);
		api_meet_still(a);
		GOT(&s, &second, FI_MSG, 8);
		CHECK_EQ(second, 9);
		CHECK_EQ(first, 1);
		POST(&s, fi_recv(s.ep, &first, 8, NULL, FI_ADDR_UNSPEC, &first));
	}
	side_close(&s); /* a receive is still posted */
}

/* Counters with and without queues; a truncated datagram counts as an error. */
static void count(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG, false);
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
	struct fid_cntr *cntr;
	uint64_t values[5];
	struct side s;

	o.not_enabled = true;
	side_open(&s, a, &o);
	OK(fi_cntr_open(s.domain, &attr, &cntr, NULL));
	OK(fi_ep_bind(s.ep, &cntr->fid, a->rank ? FI_SEND : FI_RECV));
	OK(fi_enable(s.ep));
	side_exchange(&s, &o);
	for (uint64_t i = 0; i < 5 && !a->rank; i++)
		POST(&s, fi_recv(s.ep, &values[i], i == 2 ? 1 : 8, NULL, FI_ADDR_UNSPEC, NULL));
	api_meet_still(a);
	for (uint64_t i = 0; i < 5 && a->rank; i++)
		POST(&s, i & 1 ? fi_inject(s.ep, &i, 8, s.addr[0])
			       : fi_send(s.ep, &i, 8, NULL, s.addr[0], NULL));
	if (a->rank) {
		OK(fi_cntr_wait(cntr, 5, 5000));
		CHECK_EQ(fi_cntr_readerr(cntr), 0);
	} else {
		CHECK_EQ(fi_cntr_wait(cntr, 5, 5000), -FI_EAVAIL);
		while (fi_cntr_read(cntr) < 4)
			;
		CHECK_EQ(fi_cntr_readerr(cntr), 1);
		CHECK_EQ(values[4], 4);
	}
	api_meet(a);
	OK(fi_close(&s.ep->fid));
	OK(fi_close(&cntr->fid));
	OK(fi_close(&s.tx->fid));
	OK(fi_close(&s.rx->fid));
	OK(fi_close(&s.av->fid));
	OK(fi_close(&s.domain->fid));
	OK(fi_close(&s.fabric->fid));
	fi_freeinfo(s.info);
}

/* Selective completion: calls with FI_COMPLETION complete, and errors always do. */
static void selective(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG, false);
	uint64_t words[3] = {1, 2, 3};
	struct side s;

	o.tx_bind = o.rx_bind = FI_SELECTIVE_COMPLETION;
	side_open(&s, a, &o);
	for (int i = 0; i < 3; i++) {
		struct data d = {.iov = {{&words[i], i == 1 && !a->rank ? 4 : 8}}, .count = 1};
		struct form_args f = dgram_args(&s, FORM_MSG, &d, &words[i]);

		f.flags = i == 2 ? FI_COMPLETION : 0;
		if (!a->rank)
			POST(&s, form_recv(&s, &f));
		api_meet_still(a);
		if (a->rank)
			POST(&s, form_send(&s, &f));
	}
	if (a->rank) {
		SENT(&s, &words[2], FI_MSG);
	} else {
		CHECK(TAKE_ERR(&s, s.rx, FI_ETRUNC).op_context == &words[1]);
		GOT(&s, &words[2], FI_MSG, 8);
	}
	QUIET(&s, a->rank ? s.tx : s.rx, 2);
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"stream-one", stream_one, 2, {0}},
		{"stream-many", stream_many, 2, {0}},
		{"stream-two", stream_many, 3, {0}},
		{"stream-unlocked", stream_unlocked, 2, {0}},
		{"stream-more", stream_more, 2, {0}},
		{"more", more, 2, {0}},
		{"more-refused", more_refused, 2, {0}},
		{"multi-recv", multi_recv, 2, {0}},
		{"multi-recv-burst", multi_recv_burst, 2, {0}},
		{"cancel", cancel, 2, {0}},
		{"count", count, 2, {0}},
		{"selective", selective, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
