/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each event of a connection in each state: the row's action is done, which an effect of it shows, or the event is refused
 * and leaves a line in the log, and the state is the row's. Events are as they come, but for links: none can be made.
 */
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_link.h"
#include "base/log.h"
#include "xfer/worker.h"
#include "conn/conn_options.h"
#include "conn/conn_own.h"

#define RUN 7 /* of who sends a hello */

static char logged[512];
static bool asked;            /* for others' help with a peer that has to come */
static int far, newcomer_end; /* the other ends of the peer's socket, and of a newcomer's */

static void ask(struct contact *c)
{
	asked = c == &fake.peer->conn;
}

static bool enabled(const char *prov, int level, int subsys)
{
	(void)prov, (void)level, (void)subsys;
	return true;
}

static bool ready(const char *prov, int level, int subsys, uint64_t *showtime)
{
	(void)showtime;
	return enabled(prov, level, subsys);
}

static void note(const struct log_place *place, const char *msg)
{
	(void)place;
	if (strstr(msg, "refused in this state"))
		snprintf(logged, sizeof(logged), "%s", msg);
}

/* Returns one end of a connection over the loopback. */
static int pair(int *other)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), sock = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, len), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	ck_assert_int_eq(connect(sock, (struct sockaddr *)&at, len), 0);
	*other = accept(listener, NULL, NULL);
	ck_assert_int_ge(*other, 0);
	close(listener);
	return sock;
}

/* Has something come at this end, or the end of the connection (0)? -1: neither. */
static ssize_t comes(int end)
{
	char byte;

	return recv(end, &byte, 1, MSG_DONTWAIT);
}

/* The peer as it is in this state when this event comes: what brings events about has begun in PEER_IDLE, too. */
static void open_in(enum peer_state state, enum conn_event event)
{
	static const struct conn_option asks = {.await = ask};
	static const struct conn_option *const options[] = {&asks, NULL};
	bool attempts = state > PEER_IDLE && state < PEER_SECURING;
	struct peer *peer;

	fake_open();
	fake.worker->conn.options = options;
	peer = fake.peer;
	if (!attempts && !(state == PEER_IDLE && event >= CONN_REACHES))
		attempt_end(&peer->conn);
	if (state >= PEER_SECURING || event == CONN_SECURES || event == CONN_LINKS)
		peer->conn.real = &fake.link;
	peer->conn.state = state;
	logged[0] = '\0';
	asked = false;
	far = -1;
	if (state != PEER_CONNECTING && state != PEER_HANDSHAKE && state < PEER_SECURING)
		return;
	peer->conn.sock = peer->conn.wake = pair(&far);
	ck_assert_int_eq(conn_watch(&peer->conn, EPOLLIN), 0);
}

static void shut(void)
{
	fake.closed = 0; /* what the event has closed is looked at */
	fake_shut();
	close(far);
	close(newcomer_end);
}

/* What becomes visible of an action, after what open_in and conn_with bring about. */
static bool is_done(enum conn_action action, int ret)
{
	const struct peer *peer = fake.peer;
	const struct attempt *a = peer->conn.attempt;
	int err = peer->conn.last_error;

	switch (action) {
	case DO_REFUSE:
		return ret == -FI_EOPBADSTATE && logged[0];
	case DO_NOTHING:
		return !ret && !err && comes(far) < 0 && comes(newcomer_end) < 0 && !fake.count;
	case DO_ATTEMPT:
		return ret == -FI_ECONNREFUSED && err == FI_ECONNREFUSED && !a;
	case DO_AGAIN:
	case DO_ANEW:
		return err == FI_ECONNREFUSED && !a;
	case DO_ASK:
		return asked;
	case DO_GIVE_UP:
		return (err == FI_ETIMEDOUT || err == FI_EFIREWALLADDR) && !a;
	case DO_EXPEL:
		return err == FI_EPROTO && fake.closed;
	case DO_PART:
		return wire_op(fake_last(0)->head) == WIRE_DISCONNECT;
	case DO_GREET:
	case DO_PROVE:
		return comes(far) == 1 && peer->conn.state == PEER_HANDSHAKE;
	case DO_HEAR:
		return err == FI_ECONNREFUSED && comes(far) == 0;
	case DO_LISTEN:
		return peer->conn.end == END_CLOSED;
	case DO_LOSE:
		return err == FI_ECONNRESET && fake.closed;
	case DO_LINK:
		return err == FI_EHOSTUNREACH && !a;
	case DO_YIELD:
		return peer->conn.incarnation == RUN && comes(far) == 0;
	case DO_REJECTED:
		return err == FI_EACCES && !a;
	case DO_BREAK:
		return err == FI_EPROTO && !a;
	case DO_TAKE:
		return comes(newcomer_end) == 0 && comes(far) <= 0 && !a;
	case DO_HOLD:
		return fake.worker->conn.acceptor.held_count == 1 && comes(newcomer_end) < 0;
	case DO_CROSS:
		return comes(newcomer_end) == 1 && a;
	case DO_DISMISS:
		return comes(newcomer_end) == 0 && peer->conn.real;
	case DO_WAIT:
		return !list_empty(&peer->tx.in_busy) && a;
	case DO_ABANDON:
		return peer->conn.sock < 0 && !a;
	case DO_OPEN:
		return peer->conn.connections == 1;
	}
	return false;
}

/* The state in which an action leaves the peer, which by then may be in that of another row. */
static enum peer_state after(const struct conn_row *row, enum peer_state before)
{
	switch (row->action) {
	case DO_AGAIN:
	case DO_ANEW:
	case DO_GIVE_UP:
	case DO_EXPEL:
	case DO_HEAR:
	case DO_LOSE:
	case DO_LINK:
	case DO_REJECTED:
	case DO_BREAK:
	case DO_TAKE:
		return PEER_IDLE; /* ended: CONN_ENDS */
	case DO_GREET:
		return PEER_HANDSHAKE; /* CONN_GREETS */
	default:
		return row->action == DO_REFUSE || row->next == PEER_STATES ? before : row->next;
	}
}

static void try_pair(enum conn_event event, enum peer_state state)
{
	const struct conn_row *row = &conn_rows[event][state];
	struct accepted conn = {.sock = pair(&newcomer_end),
				.fds = {-1, -1},
				.hello = {.incarnation = RUN, .error = FI_EACCES}};
	struct conn_with with = {.conn = &conn, .err = FI_ECONNRESET};
	bool newcomer = event >= CONN_OLD && event <= CONN_LESSER;
	int ret;

	for (unsigned int i = 0; i < WIRE_FDS; i++)
		conn.fds[i] = -1;
	open_in(state, event);
	if (row->action == DO_HEAR)
		shutdown(far, SHUT_WR);
	if (row->action == DO_LISTEN)
		ck_assert_int_eq(send(far, &(char){BOOT_DISCONNECT}, 1, 0), 1);
	if (!newcomer)
		conn.sock = fake.peer->conn.sock;
	ret = conn_event(&fake.peer->conn, event, &with);
	ck_assert_msg(is_done(row->action, ret), "%s: %s: action %d is not done: %d",
		      conn_rows_states[state], conn_rows_events[event], (int)row->action, ret);
	ck_assert_msg(fake.peer->conn.state == after(row, state), "%s: %s: state %d",
		      conn_rows_states[state], conn_rows_events[event], (int)fake.peer->conn.state);
	ck_assert_int_eq(logged[0] != '\0', row->action == DO_REFUSE);
	if (row->action == DO_REFUSE)
		ck_assert(strstr(logged, conn_rows_states[state]) &&
			  strstr(logged, conn_rows_events[event]));
	shut();
}

START_TEST(each_pair)
{
	static const struct log_sink sink = {enabled, ready, note};

	log_redirect(&sink);
	for (enum peer_state state = PEER_IDLE; state < PEER_STATES; state++)
		try_pair((enum conn_event)_i, state);
	log_redirect(NULL);
}
END_TEST

/* A newcomer's connection belongs to the action, so there is one in each state. */
START_TEST(newcomers_are_answered)
{
	for (enum conn_event event = CONN_OLD; event <= CONN_LESSER; event++)
		for (enum peer_state state = PEER_IDLE; state < PEER_STATES; state++)
			ck_assert_int_gt((int)conn_rows[event][state].action, DO_NOTHING);
}
END_TEST

/* No action is left without a row. */
START_TEST(actions_are_of_use)
{
	unsigned int used = 0;

	for (enum conn_event event = 0; event < CONN_EVENTS; event++)
		for (enum peer_state state = PEER_IDLE; state < PEER_STATES; state++)
			used |= 1u << conn_rows[event][state].action;
	ck_assert_uint_eq(used, (1u << (DO_OPEN + 1)) - 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conn_rows");
	TCase *tcase = tcase_create("conn_rows");

	tcase_add_loop_test(tcase, each_pair, 0, CONN_EVENTS);
	tcase_add_test(tcase, newcomers_are_answered);
	tcase_add_test(tcase, actions_are_of_use);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
