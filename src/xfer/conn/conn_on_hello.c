/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepted connections: checks the hello and decides whether the connection counts. */
#include <rdma/fi_errno.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/forked.h"
#include "base/log.h"
#include "xfer/conn/conn_own.h"
#include "xfer/conn/connect.h"

/* Ends our own attempt, if there is one: the peer's connection wins. */
static void abandon_attempt(struct peer *peer)
{
	if (!peer_attempts(peer))
		return;
	if (peer->conn.sock >= 0)
		forked_close(peer->conn.sock);
	peer->conn.sock = peer->conn.wake = -1;
	conn_abandon(peer);
	peer->state = PEER_IDLE;
	peer->worker->handshakes--;
}

int conn_take(struct peer *peer, struct accepted *conn, const struct hello_fields *fields)
{
	struct hello_fields answer = *fields;
	int err;

	abandon_attempt(peer);
	peer->conn.sock = peer->conn.wake = conn->sock;
	peer->conn.inside = conn->inside;
	err = conn_link(peer, conn, &answer.nic);
	if (!err)
		err = hello_send(peer->worker, conn->sock, conn->inside, &answer);
	if (!err && peer->conn.sock >= 0)
		err = conn_watch(peer, EPOLLIN);
	if (!err) {
		peer->real->silent &= !peer->worker->cm;
		peer_connected(peer);
		return 0;
	}
	LOG_WARN(LOG_EP_CTRL, "cannot accept a peer: %s", fi_strerror(-err));
	if (peer->worker->cm)
		peer_failed(peer, -err);
	else
		peer_not_taken(peer, -err);
	return err;
}

/*
 * Replaces a loopback address in the hello of a peer across the network by the address that it
 * connects from.
 */
static void name_by_socket(const struct accepted *conn, struct addr *name)
{
	struct addr from;
	uint16_t port = name->port;

	if (conn->inside || !addr_is_loopback(name) || !connect_remote(conn->sock, &from) ||
	    addr_is_local(&from))
		return;
	*name = from;
	name->port = port;
}

/* Is this a network address that has tried too many keys lately? */
static bool comes_from_refused(const struct worker *worker, const struct accepted *conn)
{
	struct addr from;

	return !conn->inside && connect_remote(conn->sock, &from) &&
	       source_refused(&worker->sources, source_id(&from), clock_coarse_ms());
}

/* Returns the peer that the hello names; NULL: the hello is refused, or there is no memory. */
static struct peer *identify(struct worker *worker, const struct accepted *conn)
{
	struct addr name;
	struct peer *peer;

	if (comes_from_refused(worker, conn) || conn->hello.kind != HELLO_CONNECT || worker->cm ||
	    hello_name(&conn->hello, &name))
		return NULL;
	if (!conn->inside && name.kind == ADDR_STR) {
		addr_free(&name);
		return NULL;
	}
	name_by_socket(conn, &name);
	/* Our own hello has come back across the network: a separate peer of the same name. */
	peer = conn->hello.incarnation == worker->incarnation ? peer_new(worker, &name)
							      : peer_by_name(worker, &name);
	addr_free(&name);
	return peer;
}

/* Accepts the connection, or refuses it. Owns `conn`. */
void conn_on_hello(struct worker *worker, struct accepted *conn)
{
	struct peer *peer = identify(worker, conn);

	if (!peer) {
		hello_send(NULL, conn->sock, conn->inside,
			   &(struct hello_fields){.kind = HELLO_REJECT, .error = FI_ECONNREFUSED});
		acceptor_dismiss(conn);
		return;
	}
	if (peer->state == PEER_CONNECTED && peer->conn.incarnation == conn->hello.incarnation &&
	    conn->hello.serial < peer->conn.serial) {
		acceptor_dismiss(conn); /* the peer's attempt crossed ours and lost */
		return;
	}
	if (peer->state == PEER_CONNECTED)
		peer_failed(peer, FI_ECONNRESET); /* the peer restarted before we noticed */
	if (peer->state == PEER_HANDSHAKE && worker->incarnation < conn->hello.incarnation) {
		hello_send(worker, conn->sock, conn->inside,
			   &(struct hello_fields){.kind = HELLO_CROSSED});
		acceptor_dismiss(conn);
		return;
	}
	if (conn_take(peer, conn,
		      &(struct hello_fields){.kind = HELLO_ACCEPT, .id = pool_id(peer)}) &&
	    peer->state == PEER_IDLE)
		conn_forget(peer);
}
