/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepted connections: checks the hello and decides whether the connection counts. */
#include <rdma/fi_errno.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/log.h"
#include "xfer/conn/conn_options.h"
#include "xfer/conn/conn_own.h"
#include "xfer/conn/connect.h"

void conn_on_hello_abandon(struct peer *peer)
{
	if (peer->conn.sock >= 0)
		connect_close(peer->conn.sock);
	peer->conn.sock = peer->conn.wake = -1;
	attempt_end(peer);
}

int conn_take(struct peer *peer, struct accepted *conn, const struct hello_fields *fields)
{
	struct hello_fields answer = *fields;
	struct wire_rails rails;
	int err;

	conn_event(peer, CONN_TAKES, NULL);
	answer.auth = &conn->auth;
	peer->conn.sock = peer->conn.wake = conn->sock;
	peer->conn.kind = conn->inside ? LINK_HOST : LINK_SOCKET;
	err = conn_link(peer, conn, &answer.nic);
	conn_options_say(peer, &answer, &rails);
	if (!err)
		err = hello_send(peer->conn.worker, conn->sock, conn->inside, &answer);
	if (!err && peer->conn.sock >= 0)
		err = conn_watch(peer, EPOLLIN);
	if (!err) {
		peer->conn.real->silent &= !peer->conn.worker->conn.cm;
		peer_connected(peer);
		return 0;
	}
	LOG_PEER(LOG_EP_CTRL, "cannot accept %s: %s", peer_text(peer), fi_strerror(-err));
	if (peer->conn.worker->conn.cm)
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
	       source_refused(&worker->conn.sources, source_id(&from), clock_coarse_ms());
}

/* Is this our own hello, which has come back across the loopback? */
static bool is_ourselves(const struct worker *worker, const struct accepted *conn,
			 const struct addr *name)
{
	struct addr key = addr_unmapped(name), from;

	return worker_goes_by(worker, &key) && !conn_names_afar(conn, &from);
}

static struct peer *conn_on_hello_find_peer(struct worker *worker, const struct accepted *conn,
					    const struct addr *name)
{
	struct peer *peer;

	if (conn->hello.incarnation != worker->conn.incarnation)
		return peer_by_name(worker, name, conn->auth.slot);
	peer = is_ourselves(worker, conn, name) ? peer_new(worker, name) : NULL;
	if (peer)
		peer->conn.key_slot = conn->auth.slot;
	return peer;
}

/*
 * Returns the peer that the hello means. NULL: the hello is refused, or there is no memory; *error is the positive error
 * to answer. *also: its further addresses.
 */
static struct peer *conn_on_hello_identify(struct worker *worker, const struct accepted *conn,
					   struct peer_also *also, int *error)
{
	struct addr name;
	struct peer *peer;

	*error = FI_ECONNREFUSED;
	if (comes_from_refused(worker, conn) || conn->hello.kind != HELLO_CONNECT ||
	    worker->conn.cm || conn_names_sender(worker, conn, &name, also))
		return NULL;
	if (!conn->inside && name.kind == ADDR_STR) {
		addr_free(&name);
		return NULL;
	}
	if (!auth_admits(&worker->conn.auth, conn, &name)) {
		addr_free(&name);
		*error = FI_EACCES;
		return NULL;
	}
	peer = conn_on_hello_find_peer(worker, conn, &name);
	addr_free(&name);
	return peer;
}

/* Is the newcomer the process that we are connecting to? */
static bool same_process(const struct peer *peer, const struct accepted *conn)
{
	return peer_inside(peer) && conn->inside && conn->pid > 0 && peer->conn.sock >= 0 &&
	       connect_pid(peer->conn.sock) == conn->pid;
}

/* Which event is the newcomer? */
static enum conn_event conn_on_hello_relation(const struct peer *peer, const struct accepted *conn)
{
	uint64_t theirs = conn->hello.incarnation;

	if (peer->conn.state >= PEER_CROSSED && peer->conn.incarnation == theirs)
		return conn->hello.serial < peer->conn.serial ? CONN_OLD : CONN_SAME_RUN;
	if (peer->conn.state == PEER_CONNECTING &&
	    (conn_reach_unanswered(peer) || auth_comes_from(conn, &peer->conn.key)))
		return CONN_BELIEVED;
	if (peer->conn.worker->conn.incarnation < theirs)
		return CONN_GREATER;
	return same_process(peer, conn) ? CONN_SAME_PROCESS : CONN_LESSER;
}

/* The newcomer comes again, if there is no descriptor for it now. */
void conn_on_hello_take(struct peer *peer, const struct conn_with *with)
{
	const struct hello_fields answer = {.kind = HELLO_ACCEPT, .id = pool_id(peer)};
	struct accepted *conn = with->conn;

	if (!conn_has_place(peer))
		conn_refuse(NULL, conn, FI_EBUSY);
	else if (connect_is_spare(conn->sock) || accepted_lacks_fds(conn))
		conn_refuse(NULL, conn, FI_EAGAIN);
	else if (!conn_take(peer, conn, &answer))
		conn_names_keep(peer, with->also);
	if (peer->conn.state == PEER_IDLE)
		conn_forget(peer);
}

void conn_on_hello_cross(struct peer *peer, struct accepted *conn)
{
	hello_send(peer->conn.worker, conn->sock, conn->inside,
		   &(struct hello_fields){.kind = HELLO_CROSSED, .auth = &conn->auth});
	acceptor_dismiss(conn);
}

void conn_on_hello(struct worker *worker, struct accepted *conn)
{
	struct peer_also also;
	struct peer *peer;
	int error;

	if (conn->hello.kind == HELLO_JOIN || conn->joins) {
		conn_options_join(worker, conn);
		return;
	}
	peer = conn_on_hello_identify(worker, conn, &also, &error);
	if (peer)
		conn_event(peer, conn_on_hello_relation(peer, conn),
			   &(struct conn_with){.conn = conn, .also = &also});
	else
		conn_refuse(NULL, conn, error);
}
