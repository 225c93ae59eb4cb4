/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links with several rails over sockets of the test, and between two workers: order and completeness while rails come and
 * go, what a peer may not send, and what is asked of the engine.
 */
#include <poll.h>
#include <sys/mman.h>

#include "rails_pair.h"

START_TEST(in_order)
{
	pass_in_order(_i);
}
END_TEST

static void put_chunk(int sock, uint64_t at, uint64_t ack, uint32_t len, uint32_t asks)
{
	struct tcp_chunk c = {at, ack, len, asks};

	write_all(sock, &c, sizeof(c));
}

/* A stream cut in the middle of a head, that comes by two rails, twice, the second part first. */
START_TEST(out_of_order)
{
	uint32_t id = raw_link();
	int other = add_raw(id, 1);
	unsigned char stream[2 * FRAME + 10];

	put_frame(stream, MSG, 7, 0, 10);
	memcpy(stream + FRAME, "0123456789", 10);
	put_frame(stream + FRAME + 10, MSG, 8, 0, 0);
	put_chunk(other, 20, 0, sizeof(stream) - 20, 0);
	write_all(other, stream + 20, sizeof(stream) - 20);
	quiet_calls(20);
	ck_assert_uint_eq(seen_count, 0);
	for (int twice = 0; twice < 2; twice++) {
		put_chunk(peer_of(id), 0, 0, 30, 0);
		write_all(peer_of(id), stream, 30);
		put_chunk(other, 20, 0, 30, 0);
		write_all(other, stream + 20, 30);
	}
	PROGRESS_UNTIL(seen_count == 2);
	quiet_calls(20);
	ck_assert_uint_eq(seen_count, 2);
	ck_assert_uint_eq(seen[0].tag, 7);
	ck_assert_mem_eq(seen[0].payload, "0123456789", 10);
	ck_assert_uint_eq(seen[1].tag, 8);
	ck_assert_int_eq(joints[id - 1].ends, 0);
}
END_TEST

/* A chunk whose parts come far from each other: the window stays. */
START_TEST(in_the_middle)
{
	uint32_t id = raw_link();
	unsigned char stream[FRAME];

	put_frame(stream, MSG, 7, 0, 0);
	put_chunk(peer_of(id), 0, 0, FRAME, 0);
	quiet_calls(200);
	write_all(peer_of(id), stream, FRAME);
	PROGRESS_UNTIL(seen_count == 1);
	ck_assert_uint_eq(seen[0].tag, 7);
}
END_TEST

/* No chunk of ours: the link ends. */
START_TEST(hostile)
{
	static const struct tcp_chunk bad[] = {
		{.len = TCP_CHUNK + 1},       {.asks = 2},
		{.asks = 1, .len = 1},        {.ack = 1},
		{.at = TCP_WINDOW, .len = 1}, {.at = UINT64_MAX, .len = 1},
	};
	uint32_t id = raw_link();

	ck_assert_uint_eq(sizeof(bad) / sizeof(bad[0]), 6);
	write_all(peer_of(id), &bad[_i], sizeof(bad[_i]));
	PROGRESS_UNTIL(joints[id - 1].ends == 1);
	ck_assert_int_eq(joints[id - 1].ended, FI_EPROTO);
}
END_TEST

/* Reads what the link sends by a socket of the test. Returns the bytes. */
static size_t hear(int sock, unsigned char *to, size_t len)
{
	size_t have = 0;

	for (int i = 0; i < 500 && have < len; i++) {
		ssize_t n = recv(sock, to + have, len - have, 0);

		have += n > 0 ? (size_t)n : 0;
		make_progress(0);
		usleep(1000);
	}
	return have;
}

static size_t hear_now(int sock, unsigned char *to, size_t len)
{
	ssize_t n = recv(sock, to, len, 0);

	return n > 0 ? (size_t)n : 0;
}

/* Reads a whole chunk, while the link's owner does not call. Returns the place of its end. */
static uint64_t hear_chunk(int sock)
{
	static unsigned char got[TCP_CHUNK];
	struct pollfd p = {.fd = sock, .events = POLLIN};
	struct tcp_chunk c = {.len = 0};

	for (size_t have = 0, n; have < CHUNK + c.len; have += n) {
		ck_assert_int_eq(poll(&p, 1, 5000), 1);
		n = have < CHUNK ? hear_now(sock, (unsigned char *)&c + have, CHUNK - have)
				 : hear_now(sock, got, CHUNK + c.len - have);
		ck_assert_uint_gt(n, 0);
	}
	return c.at + c.len;
}

/* What the kernel has not taken of packets goes out although the owner never calls again. */
START_TEST(leaves)
{
	uint32_t id = raw_link();
	uint64_t stream = 0;

	let_flusher(id, true);
	while (!post(id, 200000, 1))
		stream += FRAME + 200000;
	while (hear_chunk(peer_of(id)) != stream)
		;
}
END_TEST

/* What was under way on a rail that ends, and is not acknowledged, goes over the other one; what is acknowledged does not. */
START_TEST(sent_again)
{
	uint32_t id = raw_link();
	int other = add_raw(id, 1);
	unsigned char got[2 * (CHUNK + FRAME + 100)];
	struct tcp_chunk c;

	ck_assert_int_eq(post(id, 100, 1), 0);
	ck_assert_int_eq(post(id, 100, 2), 0);
	ck_assert_uint_eq(hear(peer_of(id), got, sizeof(got)), sizeof(got));
	put_chunk(peer_of(id), 0, FRAME + 100, 0, 0);
	quiet_calls(10);
	shutdown(peer_of(id), SHUT_RDWR);
	ck_assert_uint_eq(hear(other, got, CHUNK + FRAME + 100), CHUNK + FRAME + 100);
	memcpy(&c, got, sizeof(c));
	ck_assert_uint_eq(c.at, FRAME + 100);
	ck_assert_uint_eq(c.len, FRAME + 100);
	ck_assert_mem_eq(got + CHUNK + FRAME, bytes, 100);
	ck_assert_int_eq(joints[id - 1].ends, 0);
	PROGRESS_UNTIL(wanted[0] > 0);
	ck_assert_uint_eq(wanted[1], 0);
	shutdown(other, SHUT_RDWR);
	PROGRESS_UNTIL(joints[id - 1].ends == 1);
	ck_assert_int_eq(joints[id - 1].ended, FI_ECONNRESET);
}
END_TEST

/* A packet has arrived when the peer says so: its kernel may have it, and yet none but us can send it over another rail. */
START_TEST(arrived)
{
	uint32_t id = raw_link();
	unsigned char got[CHUNK + FRAME + 100];

	ck_assert(tcp_transport.arrived(link_of(id)));
	ck_assert_int_eq(post(id, 100, 1), 0);
	ck_assert_uint_eq(hear(peer_of(id), got, sizeof(got)), sizeof(got));
	ck_assert(!tcp_transport.arrived(link_of(id)));
	put_chunk(peer_of(id), 0, FRAME + 100, 0, 0);
	quiet_calls(10);
	ck_assert(tcp_transport.arrived(link_of(id)));
}
END_TEST

/* A receiver acknowledges when it has read as far as it was asked, and not before. */
START_TEST(acknowledges)
{
	uint32_t id = raw_link();
	unsigned char stream[2 * FRAME];
	struct tcp_chunk c;

	put_frame(stream, MSG, 7, 0, 0);
	put_frame(stream + FRAME, MSG, 8, 0, 0);
	put_chunk(peer_of(id), 0, 0, FRAME, 0);
	write_all(peer_of(id), stream, FRAME);
	put_chunk(peer_of(id), sizeof(stream), 0, 0, 1);
	PROGRESS_UNTIL(seen_count == 1);
	quiet_calls(200);
	ck_assert_int_eq(recv(peer_of(id), &c, CHUNK, 0), -1);
	put_chunk(peer_of(id), FRAME, 0, FRAME, 0);
	write_all(peer_of(id), stream + FRAME, FRAME);
	ck_assert_uint_eq(hear(peer_of(id), (unsigned char *)&c, CHUNK), CHUNK);
	ck_assert_uint_eq(c.ack, sizeof(stream));
	ck_assert_uint_eq(c.len, 0);
	ck_assert_uint_eq(c.asks, 0);
	put_chunk(peer_of(id), sizeof(stream), 0, 0, 1); /* the answer may have been lost */
	ck_assert_uint_eq(hear(peer_of(id), (unsigned char *)&c, CHUNK), CHUNK);
	ck_assert_uint_eq(c.ack, sizeof(stream));
}
END_TEST

/*
 * While an answer is due, nothing behind the place that it is about is reported: the process may end then, and what comes late
 * would make its kernel drop what has not gone out.
 */
START_TEST(holds_reports)
{
	uint32_t id = raw_link();
	static unsigned char got[4096];
	unsigned int posted = 0, answered;

	while (!rails_of(id)->ask) { /* plays a receiver that reads, and does not answer */
		posted += !post(id, 50000, posted);
		hear_now(peer_of(id), got, sizeof(got));
		make_progress(0);
	}
	answered = (unsigned int)link_of(id)->zcopy_done;
	ck_assert_uint_gt(answered, 0);
	while (post(id, 1000, posted))
		hear_now(peer_of(id), got, sizeof(got)), make_progress(0);
	for (int i = 0; i < 2000; i++)
		hear_now(peer_of(id), got, sizeof(got)), make_progress(0);
	ck_assert(link_holds(link_of(id)));
	put_chunk(peer_of(id), 0, rails_of(id)->ask, 0, 0);
	PROGRESS_UNTIL(!link_holds(link_of(id)));
}
END_TEST

/* A rail is silent in the middle of a chunk, which goes over the other one: it is reported all the same. */
START_TEST(silent_within_chunk)
{
	uint32_t id = raw_link();
	int other = add_raw(id, 1);
	struct tcp_link *l = (struct tcp_link *)link_of(id);
	struct tcp_rail *first = &rails_of(id)->rail[0];
	static unsigned char got[1 << 20];
	unsigned int posted = 0;

	buffers(l->sock, 4096);
	first[1].silent = true;
	while (!first->busy)
		posted += !post(id, 60000, posted);
	first->silent = true;
	first[1].silent = false;
	tcp_rails_again(l, 0);
	tcp_rails_flush(l);
	for (int i = 0; i < 2000 && link_holds(link_of(id)); i++)
		hear_now(other, got, sizeof(got)), make_progress(0);
	ck_assert(!link_holds(link_of(id)));
	ck_assert(first->busy);
}
END_TEST

/* The peer has closed its link, and does not hear what we send: what it has sent before is read. */
START_TEST(read_after_reset)
{
	uint32_t id = raw_link();
	const struct linger now = {.l_onoff = 1};
	struct tcp *t = ((struct tcp_link *)link_of(id))->own;
	unsigned char stream[FRAME];

	put_frame(stream, MSG, 7, 0, 0);
	put_chunk(peer_of(id), 0, 0, FRAME, 0);
	write_all(peer_of(id), stream, FRAME);
	setsockopt(peer_of(id), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(peer_of(id));
	joints[id - 1].peer = -1;
	ck_assert_int_eq(post(id, 100, 1), 0);
	ck_assert(rails_of(id)->rail[0].broken);
	t->next_rails = 0;
	tcp_rails_poll(t, clock_coarse_ms());
	PROGRESS_UNTIL(seen_count == 1 && joints[id - 1].ends == 1);
	ck_assert_uint_eq(seen[0].tag, 7);
	ck_assert_int_eq(joints[id - 1].ended, FI_ECONNRESET);
}
END_TEST

/* Windows have memory only while something is under way. */
START_TEST(gives_back)
{
	uint32_t id = link_between();

	add_both(id, 1);
	ck_assert_ptr_null(rails_of(id)->out.bytes);
	ck_assert_int_eq(post(id, 100, 1), 0);
	PROGRESS_UNTIL(seen_count == 1);
	ck_assert_ptr_nonnull(rails_of(id)->out.bytes);
	PROGRESS_UNTIL(!rails_of(id)->out.bytes && !rails_of(id + 1)->in.bytes);
	ck_assert_int_eq(post(id, 100, 2), 0);
	PROGRESS_UNTIL(seen_count == 2);
	ck_assert_int_eq(joints[id - 1].ends + joints[id].ends, 0);
}
END_TEST

/* Fills the window but for the stream's first byte. */
static void fill_window(uint32_t id)
{
	for (uint64_t at = 1; at < TCP_WINDOW; at += 32768) {
		uint32_t len = at + 32768 <= TCP_WINDOW ? 32768 : (uint32_t)(TCP_WINDOW - at);

		put_chunk(peer_of(id), at, 0, len, 0);
		write_all(peer_of(id), bytes, len);
	}
	PROGRESS_UNTIL(rails_of(id)->in.count == 1 && rails_of(id)->in.span[0].to == TCP_WINDOW);
}

/* What comes out of order is held, until it is read; the engine may refuse that. */
START_TEST(holds)
{
	uint32_t id = raw_link(), other = join_raw();

	fill_window(id);
	ck_assert_uint_eq(joints[id - 1].held, TCP_WINDOW);
	ck_assert_uint_eq(joints[id - 1].renewed, 0);
	engine.holds_none = true;
	put_chunk(peer_of(other), 1, 0, 1, 0);
	PROGRESS_UNTIL(joints[other - 1].ends == 1);
	ck_assert_int_eq(joints[other - 1].ended, FI_EPROTO);
}
END_TEST

/* Bytes of the window that are in memory. */
static size_t resident(uint32_t id)
{
	static unsigned char in[TCP_WINDOW / 4096];
	size_t pages = 0;

	ck_assert_int_eq(mincore(rails_of(id)->in.bytes, TCP_WINDOW, in), 0);
	for (size_t i = 0; i < sizeof(in); i++)
		pages += in[i] & 1;
	return pages * 4096;
}

/* A link that is closed, and still has something to send, keeps nothing of what comes. */
START_TEST(lingers_empty)
{
	uint32_t id = raw_link();
	struct tcp_link *l = (struct tcp_link *)link_of(id);
	uint64_t tag = 0;

	fill_window(id);
	ck_assert_uint_gt(resident(id), TCP_WINDOW / 2);
	while (!post(id, sizeof(bytes), tag++))
		make_progress(0);
	close_joint(id);
	ck_assert_ptr_nonnull(l->rails->in.bytes);
	joints[id - 1].link = &l->link;
	ck_assert_uint_eq(resident(id), 0);
	put_chunk(peer_of(id), 0, 0, 32768, 0);
	write_all(peer_of(id), bytes, 32768);
	PROGRESS_UNTIL(l->rails->in.begin == TCP_WINDOW);
	ck_assert_uint_eq(resident(id), 0);
	joints[id - 1].link = NULL;
}
END_TEST

/* No rail is left, but one is being made: the link stays, and goes on by it. */
START_TEST(awaits)
{
	uint32_t id = raw_link();
	unsigned char got[CHUNK + FRAME + 100];
	int other;

	ck_assert_int_eq(post(id, 100, 1), 0);
	engine.coming = true;
	shutdown(peer_of(id), SHUT_RDWR);
	quiet_calls(200);
	ck_assert_int_eq(joints[id - 1].ends, 0);
	if (_i) {
		other = add_raw(id, 0);
		ck_assert_uint_eq(hear(other, got, sizeof(got)), sizeof(got));
		ck_assert_mem_eq(got + CHUNK + FRAME, bytes, 100);
		ck_assert_int_eq(joints[id - 1].ends, 0);
	} else {
		engine.coming = false;
		PROGRESS_UNTIL(joints[id - 1].ends == 1);
		ck_assert_int_eq(joints[id - 1].ended, FI_ECONNRESET);
	}
}
END_TEST

/* A closed link sends all that it has, by all rails. */
START_TEST(lingers)
{
	uint32_t id = link_between();

	add_both(id, 1);
	for (unsigned int i = 0; i < COUNT;)
		if (!post(id, length_of(i), i))
			i++;
		else
			make_progress(0), make_progress(1);
	close_joint(id);
	PROGRESS_UNTIL(seen_count == COUNT);
	check_seen();
	PROGRESS_UNTIL(joints[id].ends == 1);
	ck_assert_int_eq(joints[id].ended, FI_ECONNRESET);
}
END_TEST

/* Sends a packet about a request. */
static int send_about(uint32_t id, enum wire_op op, uint32_t request, size_t len, uint64_t tag)
{
	const struct packet p = {.head = WIRE_HEAD(op, 0, 0, request), .tag = tag, .len = len};
	const struct iovec iov = {bytes, len};

	return link_of(id)->ops->sendv(link_of(id), &p, &iov, 1);
}

/* Sends a packet of this kind that nobody waits for. */
static int send_one(uint32_t id, enum wire_op op, size_t len, uint64_t tag)
{
	return send_about(id, op, 0, len, tag);
}

/* Where rails take no more, a fragment waits for those before it; a bounded number of others go behind them. All come in order. */
START_TEST(follows)
{
	uint32_t id = link_between();
	const struct tcp_link *l = (const struct tcp_link *)link_of(id);
	unsigned int fragments = 0, count;

	buffers(l->sock, 4096);
	buffers(((const struct tcp_link *)link_of(id + 1))->sock, 4096);
	while (!send_one(id, WIRE_FRAG, 50000, fragments))
		fragments++;
	ck_assert_int_eq(l->tx, TCP_REST);
	for (count = fragments; !post(id, 1000, count); count++)
		ck_assert_uint_lt(count, fragments + TCP_CHUNK / 1000);
	ck_assert_uint_ge(count, fragments + TCP_CHUNK / 1100);
	ck_assert_int_eq(send_one(id, WIRE_RTS, 40, count), -FI_EAGAIN);
	while (send_one(id, WIRE_FRAG, 50000, count)) { /* it need not wait for the messages */
		ck_assert_uint_lt(seen_count, fragments + 1);
		make_progress(0);
		make_progress(1);
	}
	ck_assert_int_eq(send_one(id, WIRE_RTS, 40, count + 1), 0);
	PROGRESS_UNTIL(seen_count == count + 2);
	for (unsigned int i = 0; i < seen_count; i++)
		ck_assert_uint_eq(seen[i].tag, i);
	ck_assert_uint_eq(wire_op(seen[count].head), WIRE_FRAG);
	ck_assert_uint_eq(wire_op(seen[count + 1].head), WIRE_RTS);
}
END_TEST

static uint32_t requests; /* announced by the test */

/* Announces long messages until the link takes no more. Returns how many it took. */
static unsigned int announce(uint32_t id)
{
	uint32_t before = requests;

	while (!send_about(id, WIRE_RTS, requests + 1, 40, 1))
		requests++;
	return requests - before;
}

/* The peer answers so many requests, from the `first` on, and the link has got that. */
static void answer(uint32_t id, enum wire_op op, uint32_t first, unsigned int count)
{
	unsigned int end = seen_count + count;

	for (unsigned int i = 0; i < count; i++)
		ck_assert_int_eq(send_about(id + 1, op, first + i, 0, 0), 0);
	for (int i = 0; i < 5000 && seen_count < end; i++) {
		make_progress(0);
		usleep(100);
	}
	ck_assert_uint_eq(seen_count, end);
}

/*
 * While the rails are full, a further long message is announced for each that begins, or that the peer refuses, beyond the
 * first 64.
 */
START_TEST(announces_few)
{
	uint32_t id = link_between();
	const struct tcp_link *l = (const struct tcp_link *)link_of(id);
	unsigned int begun;

	buffers(l->sock, 4096);
	buffers(((const struct tcp_link *)link_of(id + 1))->sock, 4096);
	while (!send_one(id, WIRE_FRAG, 50000, 1))
		;
	ck_assert_uint_eq(announce(id), 64);
	ck_assert_int_eq(send_one(id, WIRE_MSG, 40, 1), 0);
	answer(id, WIRE_CTS, 1, 3);
	ck_assert_uint_eq(announce(id), 0);
	for (begun = 0; begun < 3; begun++) {
		while (send_one(id, WIRE_FRAG, 50000, 0)) {
			make_progress(0);
			make_progress(1);
		}
		ck_assert_int_eq(l->tx, TCP_REST);
	}
	ck_assert_uint_eq(announce(id), begun);
	answer(id, WIRE_ATS, 4, 5);
	ck_assert_uint_eq(announce(id), 5);
	answer(id, WIRE_ATS, 1, 3); /* they have begun */
	ck_assert_uint_eq(announce(id), 0);
	answer(id, WIRE_CTS, 9, 4);
	ck_assert_uint_eq(announce(id), 0);
	answer(id, WIRE_ATS, 9, 4); /* they were given up before they began */
	ck_assert_uint_eq(announce(id), 4);
}
END_TEST

/* A closed link that has sent all, and its end, answers no question any more, and loses no rail by that. */
START_TEST(asked_too_late)
{
	uint32_t id = raw_link();
	struct tcp_link *l = (struct tcp_link *)link_of(id);
	const struct tcp *t = l->own;
	static unsigned char got[65536];
	ssize_t len = 1;

	buffers(l->sock, 4096);
	buffers(peer_of(id), 4096);
	for (unsigned int i = 0; l->tx != TCP_REST; i++) /* more than the peer's kernel takes */
		post(id, 60000, i);
	while (l->tx == TCP_REST) {
		hear_now(peer_of(id), got, 4096);
		make_progress(0);
	}
	close_joint(id);
	ck_assert(l->shut);
	put_chunk(peer_of(id), 0, 0, 0, 1);
	for (int i = 0; i < 20 && !list_empty(&t->lingering); i++) {
		ck_assert(!l->rails->rail[0].broken);
		ck_assert_int_ne(l->tx, TCP_REST);
		usleep(5000);
		make_progress(0);
	}
	for (int i = 0; i < 2000 && len; i++) { /* up to the end of the stream */
		len = recv(peer_of(id), got, sizeof(got), 0);
		usleep(len < 0 ? 1000 : 0);
	}
	ck_assert_int_eq(len, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_tcp_rails");
	TCase *tcase = tcase_create("rails");

	tcase_add_loop_test(tcase, in_order, 0, 2);
	tcase_add_test(tcase, out_of_order);
	tcase_add_test(tcase, in_the_middle);
	tcase_add_loop_test(tcase, hostile, 0, 6);
	tcase_add_test(tcase, leaves);
	tcase_add_test(tcase, sent_again);
	tcase_add_test(tcase, arrived);
	tcase_add_test(tcase, acknowledges);
	tcase_add_test(tcase, holds_reports);
	tcase_add_test(tcase, silent_within_chunk);
	tcase_add_test(tcase, read_after_reset);
	tcase_add_test(tcase, gives_back);
	tcase_add_test(tcase, holds);
	tcase_add_test(tcase, lingers_empty);
	tcase_add_loop_test(tcase, awaits, 0, 2);
	tcase_add_test(tcase, lingers);
	tcase_add_test(tcase, follows);
	tcase_add_test(tcase, announces_few);
	tcase_add_test(tcase, asked_too_late);
	suite_add_tcase(suite, tcase);
	return run_suite(suite, tcase);
}
