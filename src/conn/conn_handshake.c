/* SPDX-License-Identifier: BSD-2-Clause */
/* Our hello and its answer, once there is a socket. */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "conn/conn_options.h"
#include "conn/conn_own.h"
#include "conn/connect.h"
#include "conn/stall.h"

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

/* ---- Links after the hellos, by the best transport that both sides have ---- */

/* `key`, `pending`: as in struct link_peer. */
static int make_link(struct contact *peer, struct accepted *conn, enum link_kind kind,
		     const uint8_t *key, void *pending)
{
	struct station *station = peer->station;
	struct link_peer lp = {.key = key,
			       .initiator = conn->hello.kind == HELLO_ACCEPT,
			       .hello = &conn->hello,
			       .id = conn->inside ? conn->hello.your_id : pool_id(peer),
			       .sock = peer->wake,
			       .pid = conn->pid,
			       .pending = pending};
	int err = kind == LINK_SOCKET ? conn_options_link(peer, conn, &lp) : 0;

	if (err)
		return err;
	memcpy(lp.fds, conn->fds, sizeof(lp.fds));
	err = station->via[kind].transport->connect(station->via[kind].state, &lp, &peer->real);
	if (err)
		return err;
	peer->kind = kind;
	peer->incarnation = conn->hello.incarnation;
	peer->serial = conn->hello.serial;
	peer->hello_flags = conn->hello.flags;
	peer->pinging = peer->socket_lost = false;
	if (kind == LINK_SOCKET)
		peer->sock = peer->wake = -1;
	if (station->via[kind].transport->blocked)
		stall_begin(station);
	return 0;
}

/*
 * May a device serve the connection? It has the address that is our name: whom that reaches, a connection by another
 * address does not tell, and TCP serves such a one.
 */
static bool suits_device(const struct contact *peer)
{
	const struct station *station = peer->station;
	struct addr own;

	if (!station->opener.all || !station->via[LINK_SOCKET].state)
		return true;
	if (!connect_local(peer->sock, &own))
		return false;
	own = addr_unmapped(&own);
	own.port = station->key.port;
	return addr_equal(&own, &station->key);
}

void conn_prepare(struct contact *peer, const struct wire_nic *theirs, struct wire_nic *ours,
		  void **pending)
{
	const struct transport *device = peer->station->via[LINK_DEVICE].transport;
	void *state = peer->station->via[LINK_DEVICE].state;

	if (contact_inside(peer) || !state || peer->device_error || *pending || !suits_device(peer))
		return;
	if (device->prepare(state, theirs, ours, pending))
		*ours = (struct wire_nic){.qpn = 0};
}

/* Makes a link between RDMA devices: both hellos describe an end. Owns `pending`. 0 or a negative error. */
static int link_devices(struct contact *peer, struct accepted *conn, void *pending)
{
	int err = make_link(peer, conn, LINK_DEVICE, NULL, pending);

	if (!err)
		return 0;
	if (peer->station->via[LINK_SOCKET].state)
		peer->device_error = -err;
	attempt_abandon(peer->station, &pending);
	return err;
}

/* Only what we have accepted carries its proof with it. */
static const struct auth *conn_link_proof(const struct contact *peer, const struct accepted *conn)
{
	if (conn->auth.key.len)
		return &conn->auth;
	return peer->attempt ? peer->attempt->auth : NULL;
}

static int link_sockets(struct contact *peer, struct accepted *conn)
{
	const struct auth *auth = conn_link_proof(peer, conn);
	uint8_t key[TLS_KEY];
	bool encrypts = auth && auth->encrypts;
	int err = peer->station->via[LINK_SOCKET].state ? 0 : -FI_EHOSTUNREACH;

	if (!err && encrypts && !auth_link_key(auth, key))
		err = -FI_EIO;
	if (!err)
		err = make_link(peer, conn, LINK_SOCKET, encrypts ? key : NULL, NULL);
	explicit_bzero(key, sizeof(key));
	return err;
}

/* The pending link that our hello has described, if it has; the caller owns it. */
static void *take_pending(struct contact *peer)
{
	void *pending = peer->attempt ? peer->attempt->pending : NULL;

	if (pending)
		peer->attempt->pending = NULL;
	return pending;
}

int conn_link(struct contact *peer, struct accepted *conn, struct wire_nic *ours)
{
	struct station *station = peer->station;
	const struct wire_nic *theirs = &conn->hello.nic;
	void *pending = take_pending(peer);
	bool asked = pending; /* the peer expects this kind of link */
	struct addr from;

	peer->source = 0;
	peer->wrong_key = false;
	station->cm_sock = peer->sock;
	if (conn->inside)
		return make_link(peer, conn, LINK_HOST, NULL, NULL);
	connect_set_linked(peer->sock);
	peer->source = connect_remote(peer->sock, &from) ? source_id(&from) : 0;
	if (theirs->qpn)
		conn_prepare(peer, theirs, ours, &pending);
	if (theirs->qpn && pending) {
		int err = link_devices(peer, conn, pending);

		if (!err || asked)
			return err;
	} else {
		attempt_abandon(station, &pending);
	}
	*ours = (struct wire_nic){.qpn = 0};
	return link_sockets(peer, conn);
}
