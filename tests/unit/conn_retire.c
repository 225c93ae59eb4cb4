/* SPDX-License-Identifier: BSD-2-Clause */
/* An idle connection is closed if both ends agree, and only then. */
#include <sys/socket.h>
#include <unistd.h>

#include "coll/coll.h"
#include "fake_link.h"
#include "hw/transports.h"
#include "xfer/worker.h"
#include "conn/conn_options.h"
#include "conn/conn_own.h"
#include "xfer/msg/rx.h"

#define RETIRE WIRE_HEAD(WIRE_RETIRE, 0, 0, 0)

static char buf[4 * FAKE_EAGER];

static int ends[2];  /* of a connection */
static bool arrived; /* all that was sent on it */

static int fake_sock(const struct link *link)
{
	(void)link;
	return ends[0];
}

static bool fake_arrived(const struct link *link)
{
	(void)link;
	return arrived;
}

/* Across the network, where alone there is anything to close. */
static void setup(void)
{
	static struct transport network;

	network = tcp_transport;
	network.sock = fake_sock;
	network.arrived = fake_arrived;
	arrived = true;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	fake_open_connected();
	fake.peer->conn.kind = LINK_SOCKET;
	fake.worker->conn.via[LINK_SOCKET].transport = &network;
}

static void shut(void)
{
	fake_shut();
	close(ends[0]);
	close(ends[1]);
}

static void hear(enum wire_retire word)
{
	fake_says(RETIRE, word, 0, NULL, 0);
}

/* The last packet says `word` about the connection. */
static bool has_said(enum wire_retire word)
{
	return fake.count && wire_op(fake_last(0)->head) == WIRE_RETIRE &&
	       fake_last(0)->tag == word;
}

/* The connection is closed in good order, and the fixture is not to close it again. */
static void closed(void)
{
	ck_assert_int_eq(fake.closed, 1);
	ck_assert(!fake.link.failed);
	ck_assert_ptr_null(fake.peer->conn.real);
	fake.closed = 0;
}

/* Neither agrees to close the connection nor closes it. */
static void stays(void)
{
	fake.peer->conn.asked = true;
	hear(WIRE_RETIRE_ASK);
	ck_assert(!has_said(WIRE_RETIRE_AGREE));
	hear(WIRE_RETIRE_AGREE);
	ck_assert(has_said(WIRE_RETIRE_STAY));
	ck_assert_int_eq(fake.peer->conn.state, PEER_CONNECTED);
}

START_TEST(idle_agrees_and_closes)
{
	hear(WIRE_RETIRE_ASK);
	ck_assert(has_said(WIRE_RETIRE_AGREE));
	hear(WIRE_RETIRE_DONE);
	closed();
	ck_assert_int_eq(fake.peer->conn.state, PEER_IDLE);
}
END_TEST

START_TEST(asker_closes_when_its_peer_agrees)
{
	fake.peer->conn.asked = true;
	hear(WIRE_RETIRE_AGREE);
	ck_assert(has_said(WIRE_RETIRE_DONE));
	closed();
	ck_assert_int_eq(fake.peer->conn.state, PEER_IDLE);
}
END_TEST

START_TEST(both_ask)
{
	fake.peer->conn.asked = true;
	hear(WIRE_RETIRE_ASK);
	hear(WIRE_RETIRE_AGREE);
	ck_assert(has_said(WIRE_RETIRE_DONE));
	closed();
}
END_TEST

/* Nothing is sent between the agreement and its answer. */
START_TEST(who_agreed_waits)
{
	size_t before;

	hear(WIRE_RETIRE_ASK);
	before = fake.count;
	ck_assert_int_eq(fi_send(fake.ep, buf, 8, NULL, fake.addr, buf), -FI_EAGAIN);
	ck_assert_int_eq(fi_inject(fake.ep, buf, 8, fake.addr), -FI_EAGAIN);
	hear(WIRE_RETIRE_ASK);
	ck_assert_uint_eq(fake.count, before);
	hear(WIRE_RETIRE_STAY);
	ck_assert_int_eq(fi_send(fake.ep, buf, 8, NULL, fake.addr, buf), 0);
	ck_assert_uint_eq(fake.count, before + 1);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_MSG);
	fake_expect(buf, FI_SEND | FI_MSG);
}
END_TEST

/* It connects again, here to nobody. */
START_TEST(who_waited_connects_again)
{
	hear(WIRE_RETIRE_ASK);
	ck_assert_int_eq(fi_send(fake.ep, buf, 8, NULL, fake.addr, buf), -FI_EAGAIN);
	hear(WIRE_RETIRE_DONE);
	closed();
	ck_assert_int_eq(fi_send(fake.ep, buf, 8, NULL, fake.addr, buf), -FI_ECONNREFUSED);
}
END_TEST

/* The peer may not have it when the connection is closed for good. */
START_TEST(bytes_that_have_not_arrived)
{
	fake.peer->conn.asked = true;
	arrived = false;
	hear(WIRE_RETIRE_AGREE);
	ck_assert(has_said(WIRE_RETIRE_STAY));
	ck_assert_int_eq(fake.peer->conn.state, PEER_CONNECTED);
}
END_TEST

START_TEST(a_send_under_way)
{
	ck_assert_int_eq(fi_send(fake.ep, buf, sizeof(buf), NULL, fake.addr, NULL), 0);
	stays();
}
END_TEST

START_TEST(a_receive_that_names_the_peer)
{
	ck_assert_int_eq(fi_recv(fake.ep, buf, sizeof(buf), NULL, fake.addr, NULL), 0);
	stays();
}
END_TEST

START_TEST(a_message_that_nobody_has_received)
{
	fake_says(WIRE_HEAD(WIRE_MSG, 0, 0, 0), 0, 0, buf, 8);
	stays();
}
END_TEST

START_TEST(a_peer_that_the_vector_does_not_hold)
{
	ck_assert_int_eq(fi_av_remove(fake.av, &fake.addr, 1, 0), 0);
	stays();
}
END_TEST

START_TEST(an_open_group)
{
	struct coll *coll = coll_of(fake.worker);
	struct list group;

	list_push(&coll->groups, &group);
	stays();
	list_remove(&group);
}
END_TEST

/* Somebody has spoken of groups, but none is open. */
START_TEST(no_group_any_more)
{
	ck_assert_ptr_nonnull(coll_of(fake.worker));
	hear(WIRE_RETIRE_ASK);
	ck_assert(has_said(WIRE_RETIRE_AGREE));
}
END_TEST

/* Who lacks a descriptor waits, though no connection is ready to be closed yet. */
START_TEST(a_connection_that_becomes_encrypted)
{
	fake.peer->conn.state = PEER_SECURING;
	ck_assert(conn_options_make_room(&fake.worker->conn));
	fake.peer->conn.state = PEER_CONNECTED;
}
END_TEST

/* It has no descriptor that others could use: who lacks one is told. */
START_TEST(a_connection_within_the_host)
{
	fake.peer->conn.kind = LINK_HOST;
	ck_assert(!conn_options_make_room(&fake.worker->conn));
	fake.peer->conn.kind = LINK_SOCKET;
}
END_TEST

/* The asker began a long message, and says that it closes: a receive that waits for it must not hang. */
START_TEST(done_while_a_message_comes)
{
	const struct wire_rts rts = {
		.len = sizeof(buf), .count = 1, .segment = {{.addr = 4096, .len = sizeof(buf)}}};

	hear(WIRE_RETIRE_ASK);
	ck_assert_int_eq(fi_recv(fake.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, buf), 0);
	fake_says(WIRE_HEAD(WIRE_RTS, 0, 0, 1), 0, 0, &rts,
		  offsetof(struct wire_rts, segment) + sizeof(rts.segment[0]));
	hear(WIRE_RETIRE_DONE);
	fake_expect_error(buf, FI_EPROTO);
	ck_assert_ptr_null(fake.peer->conn.real);
	fake.closed = 0;
}
END_TEST

/* Answers go out while it waits, as soon as there is space. */
START_TEST(who_agreed_answers)
{
	hear(WIRE_RETIRE_ASK);
	fake.room = 0;
	hear(WIRE_RETIRE_AGREE);
	ck_assert(has_said(WIRE_RETIRE_AGREE));
	fake.room = FAKE_PLENTY;
	fi_cq_read(fake.cq, NULL, 0);
	ck_assert(has_said(WIRE_RETIRE_STAY));
	ck_assert_int_eq(fake.peer->conn.state, PEER_RETIRING);
}
END_TEST

/* One that came after the agreement, and is received after the end. */
START_TEST(a_kept_message_names_its_sender)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t from = FI_ADDR_NOTAVAIL;

	ck_assert_int_eq(fi_av_set_user_id(fake.av, fake.addr, 77, 0), 0);
	hear(WIRE_RETIRE_ASK);
	fake_says(WIRE_HEAD(WIRE_MSG, 0, 0, 0), 0, 0, buf, 8);
	hear(WIRE_RETIRE_DONE);
	closed();
	ck_assert_int_eq(fi_recv(fake.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), 0);
	ck_assert_int_eq(fi_cq_readfrom(fake.cq, &entry, 1, &from), 1);
	ck_assert_uint_eq(from, 77);
}
END_TEST

/* Words that answer nothing change nothing. */
START_TEST(words_out_of_place)
{
	hear(WIRE_RETIRE_AGREE);
	ck_assert(has_said(WIRE_RETIRE_STAY));
	fake.count = 0;
	hear(WIRE_RETIRE_DONE);
	hear(WIRE_RETIRE_STAY);
	hear(WIRE_RETIRE_STAY + 1);
	ck_assert_int_eq(fake.peer->conn.state, PEER_CONNECTED);
	ck_assert_uint_eq(fake.count, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conn_retire");
	TCase *tcase = tcase_create("retire");

	tcase_add_checked_fixture(tcase, setup, shut);
	tcase_add_test(tcase, idle_agrees_and_closes);
	tcase_add_test(tcase, asker_closes_when_its_peer_agrees);
	tcase_add_test(tcase, both_ask);
	tcase_add_test(tcase, who_agreed_waits);
	tcase_add_test(tcase, who_waited_connects_again);
	tcase_add_test(tcase, bytes_that_have_not_arrived);
	tcase_add_test(tcase, a_send_under_way);
	tcase_add_test(tcase, a_receive_that_names_the_peer);
	tcase_add_test(tcase, a_message_that_nobody_has_received);
	tcase_add_test(tcase, a_peer_that_the_vector_does_not_hold);
	tcase_add_test(tcase, an_open_group);
	tcase_add_test(tcase, no_group_any_more);
	tcase_add_test(tcase, a_connection_that_becomes_encrypted);
	tcase_add_test(tcase, a_connection_within_the_host);
	tcase_add_test(tcase, done_while_a_message_comes);
	tcase_add_test(tcase, who_agreed_answers);
	tcase_add_test(tcase, a_kept_message_names_its_sender);
	tcase_add_test(tcase, words_out_of_place);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
