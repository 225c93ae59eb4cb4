/* SPDX-License-Identifier: BSD-2-Clause */
/* What the rows of conn_rows.c make happen. */
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "conn/conn_options.h"
#include "conn/conn_own.h"

/* What is said to the peer, and what becomes of a connection that it has made. */
static void do_hello(struct contact *peer, enum conn_action action, const struct conn_with *with)
{
	switch (action) {
	case DO_GREET:
		conn_handshake_greet(peer);
		break;
	case DO_HEAR:
		conn_handshake_hear(peer);
		break;
	case DO_LISTEN:
		conn_socket_hear(peer);
		break;
	case DO_LINK:
		conn_handshake_link(peer, with->conn);
		break;
	case DO_YIELD:
		conn_handshake_yield(peer, &with->conn->hello);
		break;
	case DO_REJECTED:
		conn_handshake_rejected(peer, &with->conn->hello);
		break;
	case DO_PROVE:
		conn_handshake_prove(peer);
		break;
	case DO_BREAK:
		hello_close_fds(with->conn->fds);
		conn_fail(peer, FI_EPROTO, NULL);
		break;
	case DO_TAKE:
		conn_on_hello_take(peer, with);
		break;
	case DO_HOLD:
		conn_hold(peer, with->conn);
		break;
	case DO_CROSS:
		conn_on_hello_cross(peer, with->conn);
		break;
	case DO_DISMISS:
		acceptor_dismiss(with->conn);
		break;
	case DO_ABANDON:
		conn_on_hello_abandon(peer);
		break;
	/* Of do_action. */
	case DO_REFUSE:
	case DO_NOTHING:
	case DO_ATTEMPT:
	case DO_AGAIN:
	case DO_ASK:
	case DO_ANEW:
	case DO_GIVE_UP:
	case DO_EXPEL:
	case DO_PART:
	case DO_LOSE:
	case DO_WAIT:
	case DO_OPEN:
		break;
	}
}

static int do_action(struct contact *peer, enum conn_action action, const struct conn_with *with)
{
	switch (action) {
	case DO_REFUSE:
		return -FI_EOPBADSTATE;
	case DO_NOTHING:
		break;
	case DO_ATTEMPT:
		return conn_begin(peer, with);
	case DO_AGAIN:
		conn_again(peer);
		break;
	case DO_ASK:
		conn_options_await(peer);
		break;
	case DO_ANEW:
		conn_handshake_anew(peer);
		break;
	case DO_GIVE_UP:
		conn_fail(peer, conn_overdue(peer), NULL);
		break;
	case DO_EXPEL:
		conn_expelled(peer);
		break;
	case DO_PART:
		conn_disconnect(peer);
		break;
	case DO_LOSE:
		conn_ended(peer, with->err);
		break;
	case DO_WAIT:
		conn_wait(peer);
		break;
	case DO_OPEN:
		contact_open(peer);
		break;
	case DO_GREET:
	case DO_HEAR:
	case DO_LISTEN:
	case DO_LINK:
	case DO_YIELD:
	case DO_REJECTED:
	case DO_PROVE:
	case DO_BREAK:
	case DO_TAKE:
	case DO_HOLD:
	case DO_CROSS:
	case DO_DISMISS:
	case DO_ABANDON:
		do_hello(peer, action, with);
	}
	return 0;
}

/* Messages may be sent in PEER_CONNECTED alone, once the engine has found that they may. */
static void conn_event_enter(struct contact *peer, enum peer_state next)
{
	peer->link = &contact_full_link;
	peer->state = next;
}

int conn_event(struct contact *peer, enum conn_event event, const struct conn_with *with)
{
	const struct conn_row *row = &conn_rows[event][peer->state];

	if (row->action == DO_REFUSE)
		LOG_PEER(LOG_EP_CTRL, "%s: refused in this state (%s): %s", contact_text(peer),
			 conn_rows_states[peer->state], conn_rows_events[event]);
	else if (row->next != PEER_STATES)
		conn_event_enter(peer, row->next);
	return do_action(peer, row->action, with);
}
