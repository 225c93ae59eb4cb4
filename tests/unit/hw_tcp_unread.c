/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a sender that never makes progress is stopped until it reads, and that a failed link
 * sends no more.
 */
#include "tcp_pair.h"

#define LEN  4096
#define MSG  WIRE_HEAD(WIRE_MSG, 0, 0, 0)
#define PUT  WIRE_HEAD(WIRE_PUT, 0, 0, 1)
#define MOST (8 * TCP_UNREAD_MAX / LEN)

static unsigned char bytes[LEN];

static bool reset;

/* Reads everything at the peer's socket. Returns the number of bytes. */
static size_t drain(uint32_t id)
{
	static char scrap[1 << 20];
	size_t all = 0;
	ssize_t n;

	while ((n = recv(peer_of(id), scrap, sizeof(scrap), 0)) > 0)
		all += (size_t)n;
	reset |= n < 0 && errno == ECONNRESET;
	return all;
}

/* Sends up to MOST packets, in turn by `send` and `sendv`. Returns how many were accepted. */
static unsigned int talk(uint32_t id, uint64_t head)
{
	struct link *link = link_of(id);
	struct packet p = {.head = head, .len = LEN};
	struct iovec iov = {bytes, LEN};

	for (unsigned int i = 0; i < MOST; i++) {
		int err = i % 2 ? link->ops->send(link, bytes, LEN, 0, head, 0)
				: link->ops->sendv(link, &p, &iov, 1);

		drain(id);
		if (err) {
			ck_assert_int_eq(err, -FI_EAGAIN);
			return i;
		}
	}
	return MOST;
}

START_TEST(hears)
{
	uint32_t id = join_raw();
	unsigned char words[3 * FRAME];

	ck_assert_uint_eq(talk(id, MSG), MOST); /* no unread input */
	for (int i = 0; i < 3; i++)
		put_frame(words + (ptrdiff_t)i * FRAME, WIRE_HEAD(WIRE_XOFF, 0, 0, 0), 0, 0, 0);
	write_all(peer_of(id), words, sizeof(words));
	ck_assert_uint_le(talk(id, MSG), 2 * TCP_UNREAD_MAX / LEN);
	ck_assert_uint_eq(talk(id, MSG), 0);
	ck_assert_uint_eq(talk(id, PUT), MOST); /* puts: the peer does not have to keep them */
	ck_assert_uint_eq(seen_count, 0);
	PROGRESS_UNTIL(seen_count == 3);
	ck_assert_uint_eq(talk(id, MSG), MOST);
	/* Reading the input that had come by then is enough. */
	write_all(peer_of(id), words, sizeof(words));
	ck_assert_uint_lt(talk(id, MSG), MOST);
	write_all(peer_of(id), bytes, 1); /* a part of a packet */
	PROGRESS_UNTIL(seen_count == 6);
	ck_assert_uint_gt(talk(id, MSG), 0);
}
END_TEST

/* The last packets of a link closed in good order arrive; a failed link sends nothing more. */
START_TEST(failed)
{
	uint32_t id = join_raw();
	size_t sent = 0, came;

	reset = false;
	while (!link_of(id)->ops->send(link_of(id), bytes, LEN, 0, MSG, 0))
		sent += FRAME + LEN;
	link_of(id)->failed = _i;
	close_joint(id);
	came = drain(id);
	for (int i = 0; i < 200; i++, usleep(1000)) {
		make_progress(0);
		came += drain(id);
	}
	ck_assert_int_eq(reset, _i);
	if (_i)
		ck_assert_uint_lt(came, sent);
	else
		ck_assert_uint_eq(came, sent);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_tcp_unread");
	TCase *tcase = tcase_create("unread");

	tcase_add_test(tcase, hears);
	tcase_add_loop_test(tcase, failed, 0, 2);
	suite_add_tcase(suite, tcase);
	return run_suite(suite, tcase);
}
