/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves how the TCP transport reads: packets cut at any place, direct placement, and malformed
 * packets.
 */
#include "tcp_pair.h"

#define MSG(flags) WIRE_HEAD(WIRE_MSG, flags, 0, 0)

static unsigned char stream[8 << 20];
static size_t stream_len;
static size_t sizes[4096];
static unsigned int packets;

static void add_packet(size_t len, bool data)
{
	stream_len += put_frame(stream + stream_len, MSG(data ? WIRE_DATA : 0), packets,
				packets * 3 + 1, (uint32_t)len);
	ck_assert_uint_le(stream_len + len, sizeof(stream));
	fill(stream + stream_len, packets, len);
	stream_len += len;
	sizes[packets++] = len;
}

static void begin_stream(void)
{
	stream_len = packets = 0;
	srand(7);
}

/*
 * Checks that all added packets came from link `src`, whole and in order, placed directly or not.
 */
static void expect_all(uint32_t src)
{
	ck_assert_uint_eq(seen_count, packets);
	for (unsigned int i = 0; i < packets; i++) {
		size_t good = sizes[i];

		if (seen[i].landed && good > engine.wanted)
			good = engine.wanted;
		expect_seen(i, src, i, sizes[i], good);
		if (wire_flags(seen[i].head) & WIRE_DATA)
			ck_assert_uint_eq(seen[i].data, i * 3 + 1);
	}
	ck_assert_int_eq(joints[src - 1].ends, 0);
}

static void add_mixture(unsigned int count, size_t longest)
{
	for (unsigned int i = 0; i < count; i++) {
		size_t top = rand() % 8 ? 64 : longest;

		add_packet((size_t)rand() % (top + 1), rand() % 2);
	}
}

START_TEST(byte_by_byte)
{
	uint32_t id = join_raw();

	engine.places = _i & 1;
	engine.segment = _i & 2 ? 100 : SIZE_MAX;
	begin_stream();
	add_mixture(60, 100);
	add_packet(4096, true);
	add_packet(4097, false);
	add_packet(6000, true);
	add_packet(0, true);
	for (size_t i = 0; i < stream_len; i++) {
		write_all(peer_of(id), stream + i, 1);
		make_progress(0);
	}
	PROGRESS_UNTIL(seen_count == packets);
	expect_all(id);
	ck_assert(seen[packets - 2].landed == engine.places);
}
END_TEST

START_TEST(in_fragments)
{
	uint32_t id = join_raw();
	size_t most = _i & 4 ? 200000 : 3000;

	engine.places = _i & 1;
	engine.segment = _i & 2 ? 1000 : SIZE_MAX;
	begin_stream();
	add_mixture(300, TCP_EAGER_MAX);
	for (size_t at = 0; at < stream_len;) {
		size_t n = (size_t)rand() % most + 1;

		if (n > stream_len - at)
			n = stream_len - at;
		write_all(peer_of(id), stream + at, n);
		at += n;
		if (rand() % 2)
			make_progress(0);
	}
	PROGRESS_UNTIL(seen_count == packets);
	expect_all(id);
}
END_TEST

/* A packet is cut at every place, with a packet before and after it. */
START_TEST(every_cut)
{
	uint32_t id = join_raw();

	for (int data = 0; data < 2; data++)
		for (size_t cut = 1; cut < 200; cut++) {
			begin_stream();
			add_packet(9, !data);
			add_packet(100, data);
			add_packet(0, data);
			if (cut >= stream_len)
				break;
			write_all(peer_of(id), stream, cut);
			make_progress(0);
			write_all(peer_of(id), stream + cut, stream_len - cut);
			PROGRESS_UNTIL(seen_count == packets);
			expect_all(id);
			forget();
		}
}
END_TEST

/*
 * A receive is withdrawn during direct placement: the rest of its payload is discarded, later
 * packets are not.
 */
START_TEST(places_vanish)
{
	uint32_t id = join_raw();
	static const size_t wanted[] = {0, 1, 5000, 60000, 99999};

	engine.places = true;
	engine.segment = 4000;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		begin_stream();
		add_packet(100000, true);
		add_packet(8, false);
		add_packet(70000, false);
		add_packet(8, false);
		/* Withdrawn at the beginning, or after a part of the payload. */
		engine.wanted = _i ? SIZE_MAX : wanted[i];
		write_all(peer_of(id), stream, 30000);
		PROGRESS_UNTIL(placements[0].to);
		engine.wanted = placements[0].wanted = wanted[i];
		for (size_t at = 30000; at < stream_len; at += 10000) {
			write_all(peer_of(id), stream + at,
				  stream_len - at < 10000 ? stream_len - at : 10000);
			make_progress(0);
		}
		PROGRESS_UNTIL(seen_count == packets);
		ck_assert(seen[0].landed);
		/* Bytes placed before the withdrawal stay. */
		for (size_t at = 0; at < wanted[i]; at++)
			ck_assert_uint_eq(seen[0].payload[at], byte_of(0, at));
		expect_seen(1, id, 1, 8, 8);
		expect_seen(2, id, 2, 70000,
			    seen[2].landed && wanted[i] < 70000 ? wanted[i] : 70000);
		expect_seen(3, id, 3, 8, 8);
		forget();
	}
}
END_TEST

/* Malformed heads: op and flags, length, and the field that must be zero. */
static const struct bad {
	uint64_t head;
	uint32_t len, zero;
} bad[] = {
	{WIRE_HEAD(0, 0, 0, 0), 8, 0},
	{WIRE_HEAD(WIRE_OPS, 0, 0, 0), 8, 0},
	{WIRE_HEAD(0xff, WIRE_DATA, 0, 0), 0, 0},
	{MSG(0), TCP_PACKET_MAX + 1, 0},
	{MSG(WIRE_DATA), UINT32_MAX, 0},
	{MSG(0), 8, 1},
	{MSG(WIRE_DATA), 0, 0x80000000},
	{UINT64_MAX, UINT32_MAX, UINT32_MAX},
};

START_TEST(no_packet)
{
	uint32_t id = join_raw(), other = join_raw();
	size_t at;

	begin_stream();
	add_packet(50, true);
	at = stream_len;
	add_packet(8, true);
	put_frame(stream + at, bad[_i].head, 1, 0, bad[_i].len);
	memcpy(stream + at + AT_ZERO, &bad[_i].zero, 4);
	write_all(peer_of(id), stream, stream_len);
	PROGRESS_UNTIL(joints[id - 1].ends);
	ck_assert_int_eq(joints[id - 1].ended, FI_EPROTO);
	quiet_calls(20);
	/*
	 * Packets before the malformed one are delivered, later ones are not; the other link is
	 * unaffected.
	 */
	ck_assert_uint_eq(seen_count, 1);
	expect_seen(0, id, 0, 50, 50);
	ck_assert_int_eq(joints[id - 1].ends, 1);
	write_all(peer_of(other), stream, at);
	PROGRESS_UNTIL(seen_count == 2);
	expect_seen(1, other, 0, 50, 50);
}
END_TEST

/* Random bytes cause packets or an end, but no read beyond the buffers. */
START_TEST(noise)
{
	unsigned int i, ends = 0;

	srand((unsigned int)_i + 1);
	engine.places = _i & 1;
	for (i = 0; i < 50; i++) {
		uint32_t id = join_raw();

		begin_stream();
		srand((unsigned int)(_i * 50) + i);
		add_mixture(20, 9000);
		for (int flips = rand() % 4; flips >= 0; flips--)
			stream[(size_t)rand() % stream_len] ^= (unsigned char)(1 << rand() % 8);
		for (size_t at = 0; at < stream_len && joints[id - 1].link; at += 5000) {
			write_all(peer_of(id), stream + at,
				  stream_len - at < 5000 ? stream_len - at : 5000);
			make_progress(0);
		}
		shutdown(peer_of(id), SHUT_WR);
		PROGRESS_UNTIL(!joints[id - 1].link);
		ck_assert_int_eq(joints[id - 1].ends, 1);
		ends += joints[id - 1].ended == FI_EPROTO;
		close(peer_of(id));
		joints[id - 1].peer = -1;
		forget();
	}
	ck_assert_uint_gt(ends, 0);
}
END_TEST

/* The connection ends after `after` bytes of two packets, by a close or by a reset. */
START_TEST(the_end)
{
	static const size_t after[] = {0, 1, 31, 32, 81, 82, 83, 113, 114, 115, 5000};
	struct linger hard = {1, 0};

	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
		uint32_t id = join_raw();

		engine.places = _i & 2;
		begin_stream();
		add_packet(50, true);
		add_packet(9000, false);
		write_all(peer_of(id), stream, after[i]);
		/* A reset may discard unread bytes, so read first. */
		PROGRESS_UNTIL(seen_count == (after[i] >= 82));
		if (_i & 1)
			setsockopt(peer_of(id), SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
		close(peer_of(id));
		joints[id - 1].peer = -1;
		PROGRESS_UNTIL(joints[id - 1].ends);
		ck_assert_int_eq(joints[id - 1].ended, FI_ECONNRESET);
		quiet_calls(2);
		ck_assert_int_eq(joints[id - 1].ends, 1);
		ck_assert_uint_eq(seen_count, after[i] >= 82);
		forget();
	}
}
END_TEST

static uint32_t victim;

static void close_victim(uint32_t src)
{
	(void)src;
	if (joints[victim - 1].link)
		close_joint(victim);
}

static void close_at_second(uint32_t src, const struct packet *p)
{
	if (p->tag == 1)
		close_victim(src);
}

static unsigned int seen_of(uint32_t src)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < seen_count; i++)
		n += seen[i].src == src;
	return n;
}

/* Writes bytes `from` to `to` of the stream to all open links. */
static void write_part(const uint32_t *id, int count, size_t from, size_t to)
{
	for (int i = 0; i < count; i++)
		if (link_of(id[i]))
			write_all(peer_of(id[i]), stream + from, to - from);
	usleep(1000);
	make_progress(0);
	quiet_calls(2);
}

/*
 * An event for the second packet closes a link: the same one, one read before, or one read next,
 * of few or many. The event: delivery of a short or a collected packet, begin or end of direct
 * placement.
 */
START_TEST(closed_from_above)
{
	int when = _i / 3 % 4, count = _i / 12 ? 12 : 2;
	uint32_t id[12];

	for (int i = 0; i < count; i++)
		id[i] = join_raw();
	victim = id[_i % 3 % count];
	begin_stream();
	add_packet(10, false);
	add_packet(when ? 20000 : 10, true);
	add_packet(10, false);
	engine.places = when > 1;
	if (when < 2)
		engine.on_deliver = close_at_second;
	if (when == 2)
		engine.on_place = close_victim;
	if (when == 3)
		engine.on_placed = close_victim;
	write_part(id, count, 0, when ? 5000 : stream_len - 5);
	write_part(id, count, when ? 5000 : stream_len - 5, stream_len - 5);
	write_part(id, count, stream_len - 5, stream_len);
	ck_assert_ptr_null(link_of(victim));
	for (int i = 0; i < count; i++) {
		ck_assert_int_eq(joints[id[i] - 1].ends, 0);
		if (id[i] == victim)
			ck_assert_uint_le(seen_of(id[i]), 2);
		else
			ck_assert_uint_eq(seen_of(id[i]), 3);
	}
}
END_TEST

static void join_more(uint32_t src, const struct packet *p)
{
	(void)src, (void)p;
	if (joint_count < 20)
		write_all(peer_of(join_raw()), stream, stream_len);
}

/* The event for a packet opens new links, from few to many. */
START_TEST(joined_from_above)
{
	uint32_t id = join_raw();

	begin_stream();
	add_packet(10, false);
	engine.on_deliver = join_more;
	write_all(peer_of(id), stream, stream_len);
	PROGRESS_UNTIL(seen_count == 20);
	for (unsigned int i = 0; i < 20; i++)
		expect_seen(i, i + 1, 0, 10, 10);
}
END_TEST

/* A peer that floods keeps neither other links from being read nor progress from returning. */
START_TEST(fair)
{
	static const int counts[] = {1, 2, 12};
	uint32_t flood = join_raw(), other[12];
	int count = counts[_i % 3];
	size_t len = _i < 3 ? 1000 : 100000;
	int room = 8 << 20; /* bytes of the kernel's receive buffer, if permitted */

	setsockopt(((struct tcp_link *)link_of(flood))->sock, SOL_SOCKET, SO_RCVBUFFORCE, &room,
		   sizeof(room));
	for (int i = 0; i < count; i++)
		other[i] = join_raw();
	begin_stream();
	while (stream_len < 4000000)
		add_packet(len, false);
	for (size_t at = 0; at < stream_len;) {
		ssize_t n = send(peer_of(flood), stream + at, stream_len - at, 0);

		if (n < 0)
			break;
		at += (size_t)n;
	}
	for (int i = 0; i < count; i++)
		write_all(peer_of(other[i]), stream, FRAME + len);
	usleep(1000);
	make_progress(0);
	ck_assert_uint_lt(seen_of(flood), _i < 3 ? 600 : 5);
	for (int i = 0; i < count; i++)
		ck_assert_uint_eq(seen_of(other[i]), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_tcp_frames");
	TCase *tcase = tcase_create("frames");

	tcase_add_loop_test(tcase, byte_by_byte, 0, 4);
	tcase_add_loop_test(tcase, in_fragments, 0, 8);
	tcase_add_test(tcase, every_cut);
	tcase_add_loop_test(tcase, places_vanish, 0, 2);
	tcase_add_loop_test(tcase, no_packet, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_loop_test(tcase, noise, 0, 4);
	tcase_add_loop_test(tcase, the_end, 0, 4);
	tcase_add_loop_test(tcase, closed_from_above, 0, 24);
	tcase_add_test(tcase, joined_from_above);
	tcase_add_loop_test(tcase, fair, 0, 6);
	suite_add_tcase(suite, tcase);
	return run_suite(suite, tcase);
}
