/* SPDX-License-Identifier: BSD-2-Clause */
/* Our hello and its answer, once there is a socket. */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "conn/conn_own.h"
#include "conn/connect.h"

#define CROSSED_MS                                                                                 \
	1000 /* in which the attempt that won is here: its hello was out before the answer */
/*
 * ms from connect() to our hello. After a later hello the acceptor may have closed the silent
 * connection; coarse clocks lag some ms.
 */
#define LATE_MS (ACCEPTOR_FULL_MS - 50)
#define RETRIES 8 /* of one attempt, after late hellos and crossings */

/* True: retried, and the attempt goes on or has failed. */
static bool conn_handshake_retry(struct contact *peer, const char *why)
{
	if (peer->attempt->retries++ >= RETRIES)
		return false;
	LOG_INFO(LOG_EP_CTRL, "%s %s: connecting again", contact_text(peer), why);
	conn_restart(peer);
	return true;
}

/*
 * After a late hello, or while keys are being proven: an acceptor closes connections that stay silent, so the end of the
 * socket is no refusal. Returns as retry does.
 */
static bool retry_silent(struct contact *peer)
{
	return (peer->attempt->late || peer->attempt->auth) &&
	       conn_handshake_retry(peer, "closed the connection before our hello");
}

/* Our hello could not be sent, with `err`. */
static void conn_handshake_unsent(struct contact *peer, int err)
{
	bool closed = err == -FI_ECONNRESET || err == -EPIPE;

	if (closed &&
	    (retry_silent(peer) || (peer->attempt->pauses < PAUSES_MAX && conn_later(peer))))
		return;
	if (err == -FI_ECONNREFUSED && conn_reach_outward(peer))
		conn_restart(peer);
	else
		conn_fail(peer, err == -FI_ECONNRESET ? FI_ECONNREFUSED : -err, NULL);
}

void conn_handshake_greet(struct contact *peer)
{
	int err = connect_result(peer->sock);

	if (err == -FI_EAGAIN)
		return; /* a stale event, of the peer's former socket */
	peer->attempt->late = clock_coarse_ms() - peer->attempt_ms >= LATE_MS;
	/* Making a hello takes time where devices are involved. */
	if (!err && peer->attempt->late && connect_closed(peer->sock))
		err = -FI_ECONNRESET;
	if (!err)
		err = conn_say_hello(peer);
	if (!err)
		err = conn_control(peer->station, EPOLL_CTL_MOD, peer, EPOLLIN);
	if (err)
		conn_handshake_unsent(peer, err);
	else
		conn_event(peer, CONN_GREETS, NULL);
}

void conn_handshake_prove(struct contact *peer)
{
	int err = conn_say_hello(peer);

	if (err)
		conn_handshake_unsent(peer, err);
}

void conn_handshake_yield(struct contact *peer, const struct wire_hello *hello)
{
	connect_close(peer->sock);
	peer->sock = peer->wake = -1;
	peer->incarnation = hello->incarnation;
	peer->attempt->deadline = clock_coarse_ms() + CROSSED_MS;
}

void conn_handshake_rejected(struct contact *peer, const struct wire_hello *hello)
{
	int err = hello->error && hello->error <= UINT16_MAX ? (int)hello->error : FI_ECONNREFUSED;

	if (err == FI_EAGAIN && conn_later(peer))
		return;
	if (err == FI_EADDRINUSE && hello->incarnation && conn_names_join(peer, hello))
		return;
	conn_fail(peer, err == FI_EAGAIN ? FI_ETIMEDOUT : err, hello);
}

void conn_handshake_link(struct contact *peer, struct accepted *conn)
{
	struct station *station = peer->station;
	int err;

	if (accepted_lacks_fds(conn) && conn_later(peer))
		return;
	if (!conn->inside)
		epoll_ctl(station->driven.fd, EPOLL_CTL_DEL, peer->sock, NULL);
	err = conn_link(peer, conn, &(struct wire_nic){.qpn = 0});
	if (!err && !conn->inside && peer->sock >= 0)
		err = conn_watch(peer, EPOLLIN);
	if (err) {
		conn_fail(peer, -err, NULL);
		return;
	}
	attempt_end(peer);
	peer->real->silent = false;
	/* Within a host this byte tells the peer that we have its hello; across the network the first packet does. */
	if (conn->inside)
		send(peer->sock, &(char){BOOT_WAKE}, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	contact_connected(peer);
	if (station->cm)
		station->cm->connected(station, conn->hello.data, conn->hello.data_len);
}

static enum conn_event conn_handshake_answer(const struct contact *peer,
					     const struct accepted *conn)
{
	switch (conn->hello.kind) {
	case HELLO_CROSSED:
		return CONN_CROSSED;
	case HELLO_REJECT:
		return CONN_REJECTED;
	case HELLO_ACCEPT:
		return CONN_ACCEPTED;
	case HELLO_CHALLENGE:
		return peer->attempt->auth ? CONN_CHALLENGED : CONN_GARBLED;
	default:
		return CONN_GARBLED;
	}
}

void conn_handshake_hear(struct contact *peer)
{
	struct accepted conn = {.sock = peer->sock, .inside = contact_inside(peer)};
	int ret = hello_recv(peer->sock, contact_inside(peer), &conn.hello, conn.fds);

	if (ret == 0 || (ret == -FI_ECONNRESET && retry_silent(peer)))
		return;
	if (ret < 0) {
		conn_fail(peer, ret == -FI_ECONNRESET ? FI_ECONNREFUSED : -ret, NULL);
		return;
	}
	conn.pid = conn.inside ? connect_pid(peer->sock) : 0;
	if (auth_hear(peer, peer->attempt->auth, &conn))
		conn_event(peer, conn_handshake_answer(peer, &conn),
			   &(struct conn_with){.conn = &conn});
	else
		conn_fail(peer, FI_EACCES, NULL);
}

void conn_handshake_anew(struct contact *peer)
{
	if (!conn_handshake_retry(peer, "does not connect after all"))
		conn_fail(peer, conn_overdue(peer), NULL);
}
