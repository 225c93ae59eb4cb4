/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepted connections: checks the hello and decides whether the connection counts. */
#include <rdma/fi_errno.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/log.h"
#include "xfer/conn/conn_own.h"
#include "xfer/conn/connect.h"

/* Ends our own attempt, if there is one: the peer's connection wins. */
static void abandon_attempt(struct peer *peer)
{
	if (!peer_attempts(peer))
		return;
	if (peer->conn.sock >= 0)
		connect_close(peer->conn.sock);
	peer->conn.sock = peer->conn.wake = -1;
	attempt_end(peer);
	peer->state = PEER_IDLE;
}

int conn_take(struct peer *peer, struct accepted *conn, const struct hello_fields *fields)
{
	struct hello_fields answer = *fields;
	struct wire_rails rails;
	int err;

	abandon_attempt(peer);
	answer.auth = &conn->auth;
	peer->conn.sock = peer->conn.wake = conn->sock;
	peer->conn.kind = conn->inside ? LINK_HOST : LINK_SOCKET;
	err = conn_link(peer, conn, &answer.nic);
	answer.token = conn_rails_answer(peer, &rails);
	answer.rails = answer.token ? &rails : NULL;
	if (!err)
		err = hello_send(peer->worker, conn->sock, conn->inside, &answer);
	if (!err && peer->conn.sock >= 0)
		err = conn_watch(peer, EPOLLIN);
	if (!err) {
		peer->real->silent &= !peer->worker->cm;
		peer_connected(peer);
		return 0;
	}
	LOG_PEER(LOG_EP_CTRL, "cannot accept %s: %s", peer_text(peer), fi_strerror(-err));
	if (peer->worker->cm)
		peer_failed(peer, -err);
	else
		peer_not_taken(peer, -err);
	return err;
}

void conn_refuse(struct worker *worker, struct accepted *conn, int err)
{
	hello_send(worker, conn->sock, conn->inside,
		   &(struct hello_fields){.kind = HELLO_REJECT, .error = err, .auth = &conn->auth});
	acceptor_dismiss(conn);
}

/* Is this a network address that has tried too many keys lately? */
static bool comes_from_refused(const struct worker *worker, const struct accepted *conn)
{
	struct addr from;

	return !conn->inside && connect_remote(conn->sock, &from) &&
	       source_refused(&worker->sources, source_id(&from), clock_coarse_ms());
}

/* Is this our own hello, which has come back across the loopback? */
static bool is_ourselves(const struct worker *worker, const struct accepted *conn,
			 const struct addr *name)
{
	struct addr key = addr_unmapped(name), from;

	return worker_goes_by(worker, &key) && !conn_names_afar(conn, &from);
}

static struct peer *find_peer(struct worker *worker, const struct accepted *conn,
			      const struct addr *name)
{
	struct peer *peer;

	if (conn->hello.incarnation != worker->incarnation)
		return peer_by_name(worker, name, conn->auth.slot);
	peer = is_ourselves(worker, conn, name) ? peer_new(worker, name) : NULL;
	if (peer)
		peer->key_slot = conn->auth.slot;
	return peer;
}

/*
 * Returns the peer that the hello means. NULL: the hello is refused, or there is no memory; *error is the positive error
 * to answer. *also: its further addresses.
 */
static struct peer *identify(struct worker *worker, const struct accepted *conn,
			     struct peer_also *also, int *error)
{
	struct addr name;
	struct peer *peer;

	*error = FI_ECONNREFUSED;
	if (comes_from_refused(worker, conn) || conn->hello.kind != HELLO_CONNECT || worker->cm ||
	    conn_names_sender(worker, conn, &name, also))
		return NULL;
	if (!conn->inside && name.kind == ADDR_STR) {
		addr_free(&name);
		return NULL;
	}
	if (!auth_admits(&worker->auth, conn, &name)) {
		addr_free(&name);
		*error = FI_EACCES;
		return NULL;
	}
	peer = find_peer(worker, conn, &name);
	addr_free(&name);
	return peer;
}

/* What becomes of a good hello. */
enum verdict {
	TAKE,
	HOLD,
	LOST,    /* its attempt crossed ours, which has connected us */
	CROSSED, /* its attempt crosses ours, which wins */
};

/* Is the newcomer the process that we are connecting to? */
static bool same_process(const struct peer *peer, const struct accepted *conn)
{
	return peer_inside(peer) && conn->inside && conn->pid > 0 &&
	       connect_pid(peer->conn.sock) == conn->pid;
}

/*
 * A link that stands is not given up for a hello. Nor is an attempt of ours whose hello is with the peer: its answer
 * says if the peer's attempt won, and which one that is.
 */
static enum verdict judge(const struct worker *worker, const struct peer *peer,
			  const struct accepted *conn)
{
	uint64_t theirs = conn->hello.incarnation;

	switch (peer->state) {
	case PEER_SECURING:
	case PEER_CONNECTED:
	case PEER_RETIRING:
		return peer->conn.incarnation == theirs && conn->hello.serial < peer->conn.serial
			       ? LOST
			       : HOLD;
	case PEER_HANDSHAKE:
		if (worker->incarnation < theirs)
			return CROSSED;
		return same_process(peer, conn) ? TAKE : HOLD;
	case PEER_CONNECTING:
		return conn_reach_unanswered(peer) || auth_comes_from(conn, &peer->key) ? TAKE
											: HOLD;
	case PEER_CROSSED:
		return peer->conn.incarnation == theirs ? TAKE : HOLD;
	default:
		return TAKE;
	}
}

/* The newcomer comes again, if there is no descriptor for it now. */
static void take_new(struct peer *peer, struct accepted *conn, const struct peer_also *also)
{
	const struct hello_fields answer = {.kind = HELLO_ACCEPT, .id = pool_id(peer)};

	if (!conn_has_place(peer))
		conn_refuse(NULL, conn, FI_EBUSY);
	else if (connect_is_spare(conn->sock) || accepted_lacks_fds(conn))
		conn_refuse(NULL, conn, FI_EAGAIN);
	else if (!conn_take(peer, conn, &answer))
		conn_names_keep(peer, also);
	if (peer->state == PEER_IDLE)
		conn_forget(peer);
}

/* Accepts the connection, holds it or refuses it. Owns `conn`. */
void conn_on_hello(struct worker *worker, struct accepted *conn)
{
	int error;
	struct peer *peer;
	struct peer_also also;

	if (conn->hello.kind == HELLO_JOIN || conn->joins) {
		conn_rails_take(worker, conn);
		return;
	}
	peer = identify(worker, conn, &also, &error);
	if (!peer) {
		conn_refuse(NULL, conn, error);
		return;
	}
	switch (judge(worker, peer, conn)) {
	case TAKE:
		take_new(peer, conn, &also);
		break;
	case HOLD:
		conn_hold(peer, conn);
		break;
	case CROSSED:
		hello_send(worker, conn->sock, conn->inside,
			   &(struct hello_fields){.kind = HELLO_CROSSED, .auth = &conn->auth});
		acceptor_dismiss(conn);
		break;
	case LOST:
		acceptor_dismiss(conn);
	}
}
