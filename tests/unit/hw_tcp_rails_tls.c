/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encrypted links with several rails: who is on the path of one sees nothing, and can end that rail alone, whatever of its
 * bytes he changes, repeats or leaves out. All packets arrive whole, once and in order. Where the kernel has TLS, it encrypts;
 * tests/lab/tls.sh runs both.
 */
#include <dlfcn.h>

#include "base/tls.h"
#include "rails_pair.h"

#define MARK     "sixteen letters!"
#define MARK_LEN (sizeof(MARK) - 1)

static const uint8_t key[TLS_KEY] = {1, 2, 3}, other_key[TLS_KEY] = {3, 2, 1};

/* ---- The one on the path, who forwards a connection ---- */

enum deed { NONE, CHANGES, REPEATS, LEAVES_OUT, DEEDS };

static struct path {
	int sock[2];    /* of the first worker's connection, of the second one's; -1: none */
	size_t bytes;   /* from the first worker */
	enum deed deed; /* once, when so many bytes have come from there */
	size_t when;
	bool done;
	unsigned int marks; /* times that MARK was seen */
} path;

/* Makes a connection by way of the path. */
static void connect_by_path(int ends[2])
{
	int first[2], second[2];

	tcp_sockets(first);
	tcp_sockets(second);
	path.sock[0] = first[1];
	path.sock[1] = second[0];
	ends[0] = first[0];
	ends[1] = second[1];
}

static void end_path(void)
{
	for (int i = 0; i < 2 && path.sock[i] >= 0; i++) {
		close(path.sock[i]);
		path.sock[i] = -1;
	}
}

/* Does its deed to bytes of the first worker. Returns how many of them to forward. */
static size_t act(unsigned char *at, size_t len)
{
	size_t i = path.when - path.bytes;

	if (path.done || path.deed == NONE || path.bytes > path.when || i >= len)
		return len;
	path.done = true;
	if (path.deed == CHANGES)
		at[i] ^= 1;
	if (path.deed == REPEATS) {
		memmove(at + len, at, len);
		return 2 * len;
	}
	if (path.deed == LEAVES_OUT) {
		memmove(at + i, at + i + 1, len - i - 1);
		return len - 1;
	}
	return len;
}

static void look(const unsigned char *at, size_t len)
{
	for (size_t i = 0; i + MARK_LEN <= len; i++)
		path.marks += !memcmp(at + i, MARK, MARK_LEN);
}

static bool forward(int from)
{
	static unsigned char seen[2 * 8192];
	ssize_t len = recv(path.sock[from], seen, 8192, 0), sent = 0, n;
	size_t all;

	if (len <= 0)
		return len < 0 && errno == EAGAIN;
	look(seen, (size_t)len);
	all = from ? (size_t)len : act(seen, (size_t)len);
	path.bytes += from ? 0 : (size_t)len;
	for (; sent<(ssize_t)all; sent += n> 0 ? n : 0) {
		n = send(path.sock[!from], seen + sent, all - (size_t)sent, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			return false;
		if (n < 0)
			make_progress(!from);
	}
	return true;
}

static void forward_all(void)
{
	if (path.sock[0] >= 0 && !(forward(0) && forward(1)))
		end_path();
}

/* ---- */

static void begin(void)
{
	path = (struct path){.sock = {-1, -1}};
	engine.key = key;
}

START_TEST(in_order)
{
	begin();
	pass_in_order(_i);
}
END_TEST

#define FORWARD_UNTIL(condition) PROGRESS_UNTIL((forward_all(), condition))

/* Makes a link of two rails, the first of which, which is preferred, goes by the path. */
static uint32_t link_by_path(void)
{
	int ends[2];
	uint32_t id;

	rails();
	connect_by_path(ends);
	id = join_socket(&sides[0], ends[0]);
	join_socket(&sides[1], ends[1]);
	FORWARD_UNTIL(!engine.key || (joints[id - 1].ready && joints[id].ready));
	path.bytes = 0;
	add_both(id, 1);
	return id;
}

static void pass_by_path(uint32_t id)
{
	uint64_t end = clock_coarse_ms() + 20000;

	for (unsigned int i = 0; i < COUNT || seen_count < COUNT;) {
		if (i < COUNT && !post(id, length_of(i), i))
			i++;
		make_progress(0), make_progress(1);
		forward_all();
		ck_assert_uint_lt(clock_coarse_ms(), end);
	}
	check_seen();
	ck_assert_int_eq(joints[id - 1].ends + joints[id].ends, 0);
}

/* Without encryption the test would see the marks. */
START_TEST(nothing_is_seen)
{
	uint32_t id;

	begin();
	engine.key = _i ? key : NULL;
	id = link_by_path();
	for (size_t i = 0; i < sizeof(bytes); i += MARK_LEN)
		memcpy(bytes + i, MARK, MARK_LEN);
	pass_by_path(id);
	ck_assert_uint_gt(path.bytes, sizeof(bytes));
	ck_assert(_i ? !path.marks : path.marks);
	end_path();
}
END_TEST

static const size_t places[] = {8, 100, 2000, 70000, 300000};
#define PLACES (int)(sizeof(places) / sizeof(places[0]))

START_TEST(one_rail_ends)
{
	uint32_t id;

	begin();
	id = link_by_path();
	path.deed = NONE + 1 + (enum deed)(_i / PLACES);
	path.when = places[_i % PLACES];
	pass_by_path(id);
	ck_assert(path.done);
	FORWARD_UNTIL(rails_of(id + 1)->rail[0].sock < 0 && wanted[0]);
	ck_assert_int_ge(rails_of(id + 1)->rail[1].sock, 0);
	end_path();
}
END_TEST

/* In the hello of TLS, whose first bytes are the head of a record, and behind it. */
static const size_t early[] = {8, 50, 200, 300};
#define EARLY (int)(sizeof(early) / sizeof(early[0]))

START_TEST(handshake)
{
	uint32_t id;
	int ends[2];

	begin();
	path.deed = NONE + 1 + (enum deed)(_i / EARLY);
	path.when = early[_i % EARLY];
	id = link_between();
	connect_by_path(ends);
	add_rail(id + 1, 1, ends[1]);
	add_rail(id, 1, ends[0]);
	FORWARD_UNTIL(path.done && rails_of(id + 1)->rail[1].sock < 0 &&
		      rails_of(id)->rail[1].sock < 0);
	ck_assert_int_eq(post(id, 100, 0), 0);
	FORWARD_UNTIL(seen_count == 1);
	ck_assert_int_eq(joints[id - 1].ends + joints[id].ends, 0);
	end_path();
}
END_TEST

/* A rail of another key: nothing goes over it, and it ends. */
START_TEST(another_key)
{
	uint32_t id;
	int fds[2];

	begin();
	id = link_between();
	tcp_sockets(fds);
	add_rail(id + 1, 1, fds[1]);
	engine.key = other_key;
	add_rail(id, 1, fds[0]);
	ck_assert_int_eq(post(id, 100, 0), 0);
	PROGRESS_UNTIL(seen_count == 1 && rails_of(id)->rail[1].sock < 0 &&
		       rails_of(id + 1)->rail[1].sock < 0);
	ck_assert_int_eq(joints[id - 1].ends + joints[id].ends, 0);
}
END_TEST

/* No packet goes before the first rail is ready; if it cannot be, the link ends. */
START_TEST(first_rail)
{
	uint32_t id;
	int fds[2];

	begin();
	rails();
	tcp_sockets(fds);
	id = join_socket(&sides[0], fds[0]);
	engine.key = _i ? other_key : key;
	join_socket(&sides[1], fds[1]);
	ck_assert(link_of(id)->securing && link_of(id + 1)->securing);
	ck_assert_int_eq(
		link_of(id)->ops->send(link_of(id), bytes, 1, 0, WIRE_HEAD(WIRE_XOFF, 0, 0, 0), 0),
		-FI_EAGAIN);
	ck_assert_uint_eq(wanted[1], 0);
	if (_i) {
		PROGRESS_UNTIL(joints[id].ends == 1 && joints[id - 1].ends == 1);
		ck_assert_int_eq(joints[id].ended, FI_EACCES);
		ck_assert(!joints[id].ready && !joints[id - 1].ready);
	} else {
		PROGRESS_UNTIL(joints[id].ready && joints[id - 1].ready && wanted[1]);
		ck_assert_uint_eq(wanted[0], 0);
	}
}
END_TEST

/* A closed link sends all that it has. */
START_TEST(lingers)
{
	uint32_t id;

	begin();
	id = link_between();
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

/* What we encrypt has memory only while something is under way. */
START_TEST(gives_back)
{
	uint32_t id;

	begin();
	id = link_between();
	ck_assert_int_eq(post(id, 100, 0), 0);
	PROGRESS_UNTIL(seen_count == 1);
	if (rails_of(id)->rail[0].secure.tls)
		ck_assert_ptr_nonnull(rails_of(id)->rail[0].encrypted.bytes);
	PROGRESS_UNTIL(!rails_of(id)->rail[0].encrypted.bytes);
	ck_assert_int_eq(post(id, 100, 1), 0);
	PROGRESS_UNTIL(seen_count == 2);
}
END_TEST

/* ---- A peer with the key that asks for new keys of ours: RFC 8446, section 4.6.3 ---- */

#define UPDATE_REQUESTED 1
#define REQUESTS         300u

/* A connection begins with that of the library. */
static void ask_for_keys(struct tls *tls)
{
	void *library = dlopen("libssl.so.3", RTLD_NOW), *call = dlsym(library, "SSL_key_update");
	int (*update)(void *ssl, int what);

	memcpy(&update, &call, sizeof(update));
	ck_assert_int_eq(update(*(void **)tls, UPDATE_REQUESTED), 1);
	dlclose(library);
}

static bool send_one(uint32_t id)
{
	const uint64_t head = WIRE_HEAD(WIRE_XOFF, 0, 0, 0);

	return link_of(id)->ops->send(link_of(id), bytes, 1, 0, head, 0) == 0;
}

/* It reads nothing of a rail, which has more to send: no answer is kept, and what is kept does not move. The rail ends. */
START_TEST(asks_for_keys)
{
	const struct tcp_rail *first;
	unsigned int posted = 0;
	uint32_t id;

	begin();
	id = link_between();
	first = rails_of(id)->rail;
	if (!first->secure.tls)
		return; /* the kernel encrypts, and lets no such request pass */
	let_flusher(id, false);
	while (!_i && !first->busy)
		posted += !post(id, 200000, posted);
	for (unsigned int i = 0; i < REQUESTS && !joints[id - 1].ends; i++) {
		ask_for_keys(rails_of(id + 1)->rail[0].secure.tls);
		ck_assert(send_one(id + 1));
		make_progress(0);
	}
	ck_assert_int_eq(joints[id - 1].ends, 1);
	ck_assert_int_eq(joints[id - 1].ended, FI_EPROTO);
}
END_TEST

/* The first rail leaves packets unanswered in its handshake, and answers again before the next look: the link opens. */
START_TEST(silent_in_handshake)
{
	uint32_t id;
	int fds[2];

	begin();
	for (int i = 0; i < (_i ? TCP_DIRECT_MAX + 1 : 0); i++)
		link_between();
	rails();
	tcp_sockets(fds);
	id = join_socket(&sides[0], fds[0]);
	join_socket(&sides[1], fds[1]);
	rails_of(id)->rail[0].silent = true;
	PROGRESS_UNTIL(joints[id - 1].ready && joints[id].ready);
	ck_assert_int_eq(post(id, 100, 1), 0);
	PROGRESS_UNTIL(seen_count == 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_tcp_rails_tls");
	TCase *tcase = tcase_create("rails");

	if (!tls_load()) {
		printf("no libssl.so.3 here, or built without it\n");
		return 77;
	}
	tcase_add_loop_test(tcase, in_order, 0, 2);
	tcase_add_loop_test(tcase, nothing_is_seen, 0, 2);
	tcase_add_loop_test(tcase, one_rail_ends, 0, (DEEDS - 1) * PLACES);
	tcase_add_loop_test(tcase, handshake, 0, (DEEDS - 1) * EARLY);
	tcase_add_test(tcase, another_key);
	tcase_add_loop_test(tcase, first_rail, 0, 2);
	tcase_add_test(tcase, lingers);
	tcase_add_test(tcase, gives_back);
	tcase_add_loop_test(tcase, asks_for_keys, 0, 2);
	tcase_add_loop_test(tcase, silent_in_handshake, 0, 2);
	suite_add_tcase(suite, tcase);
	return run_suite(suite, tcase);
}
