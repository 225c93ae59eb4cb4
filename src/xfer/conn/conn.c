/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handshake, by the peer's state (xfer/peer.h):
 *   IDLE        conn_start on this host: connect, send HELLO_CONNECT     -> HANDSHAKE
 *               conn_start across the network: begin connect()           -> CONNECTING
 *               the same, if only the peer can connect: conn_reach_await -> AWAITED
 *               conn_start, but the backlog is full or no file is free   -> RETRYING
 *   RETRYING    the pause is over: as conn_start
 *   CONNECTING  connect() succeeded: send HELLO_CONNECT                  -> HANDSHAKE
 *   HANDSHAKE   HELLO_ACCEPT received: make the link                     -> CONNECTED
 *               HELLO_CROSSED received: the peer's attempt wins          -> CROSSED
 *               HELLO_CONNECT received, our incarnation is lesser: answer HELLO_CROSSED
 *               HELLO_CONNECT received, ours is greater: hold it     -> HANDSHAKE
 *               the same by the process that we are connecting to: drop our attempt, accept
 *                                                                        -> CONNECTED
 *   IDLE, RETRYING, AWAITED  HELLO_CONNECT received: accept              -> CONNECTED
 *   CONNECTING  the same, once connect() has got no answer for long, or with a proof
 *   CROSSED     HELLO_CONNECT received or held, of the incarnation that won: accept
 *                                                                        -> CONNECTED
 *               none comes in CROSSED_MS, as its process has ended: retry -> RETRYING
 *   CONNECTED   a HELLO_CONNECT received: hold it until the link ends, or refuse it
 *   CONNECTED   both ends agree to close the idle connection -> RETIRING -> IDLE: conn_retire.c
 *   CONNECTING, HANDSHAKE  socket ended before or after a late hello, or HELLO_REJECT of
 *               FI_EAGAIN: retry                                         -> RETRYING
 *   any         socket ended                                             -> IDLE, by peer_failed
 * The worker of a connected endpoint (FI_EP_MSG) sends HELLO_REQUEST instead, driven by
 * conn_single.c; no peer connects to it.
 */
#include "xfer/events.h"
#include "xfer/conn/conn.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/reason.h"
#include "xfer/conn/conn_own.h"
#include "xfer/conn/connect.h"
#include "xfer/msg/tx.h"
#include "xfer/stall.h"

#define EVENTS_PER_POLL 32
#define POLLS_PER_CALL  8  /* at most; then other workers are polled */
#define BYTES_PER_EVENT 64 /* bytes read at most; within a host each is one packet */
#define CROSSED_MS                                                                                 \
	1000 /* in which the attempt that won is here: its hello was out before the answer */
#define LAST_CALLS 4096 /* at most, to deliver what a peer sent before its end */
/*
 * ms from connect() to our hello. After a later hello the acceptor may have closed the silent
 * connection; coarse clocks lag some ms.
 */
#define LATE_MS (ACCEPTOR_FULL_MS - 50)
#define RETRIES 8 /* of one attempt, after late hellos and crossings */

void conn_forget(struct peer *peer)
{
	if (!peer->conn.unread_ms && !peer->named)
		peer_free(peer);
}

void conn_fail(struct peer *peer, int err, const struct wire_hello *hello)
{
	struct worker *worker = peer->worker;
	bool again;

	err = conn_end_decide(peer, err);
	again = worker->reaches_out && conn_reach_renews(peer, err);
	if (peer_attempts(peer))
		conn_reach_explain(peer, err);
	peer_failed(peer, err);
	if (worker->cm)
		worker->cm->ended(worker, err, hello ? hello->data : NULL,
				  hello ? hello->data_len : 0);
	else if (again)
		conn_reach_out(worker, peer->addr);
	else
		conn_forget(peer);
}

/* True: retried, and the attempt goes on or has failed. */
static bool retry(struct peer *peer, const char *why)
{
	if (peer->conn.attempt->retries++ >= RETRIES)
		return false;
	LOG_INFO(LOG_EP_CTRL, "%s %s: connecting again", peer_text(peer), why);
	conn_restart(peer);
	return true;
}

/*
 * After a late hello, or while keys are being proven: an acceptor closes connections that stay silent, so the end of the
 * socket is no refusal. Returns as retry does.
 */
static bool retry_silent(struct peer *peer)
{
	return (peer->conn.attempt->late || peer->conn.attempt->auth) &&
	       retry(peer, "closed the connection before our hello");
}

/* Our hello could not be sent, with `err`. */
static void unsent(struct peer *peer, int err)
{
	bool closed = err == -FI_ECONNRESET || err == -EPIPE;

	if (closed &&
	    (retry_silent(peer) || (peer->conn.attempt->pauses < PAUSES_MAX && conn_later(peer))))
		return;
	if (err == -FI_ECONNREFUSED && conn_reach_outward(peer))
		conn_restart(peer);
	else
		conn_fail(peer, err == -FI_ECONNRESET ? FI_ECONNREFUSED : -err, NULL);
}

/* Handles the end of connect(). */
static void connecting_event(struct peer *peer)
{
	int err = connect_result(peer->conn.sock);

	if (err == -FI_EAGAIN)
		return; /* a stale event, of the peer's former socket */
	peer->conn.attempt->late = clock_coarse_ms() - peer->conn.attempt_ms >= LATE_MS;
	/* Making a hello takes time where devices are involved. */
	if (!err && peer->conn.attempt->late && connect_closed(peer->conn.sock))
		err = -FI_ECONNRESET;
	if (!err)
		err = conn_say_hello(peer);
	if (!err)
		err = conn_control(peer->worker, EPOLL_CTL_MOD, peer, EPOLLIN);
	if (err)
		unsent(peer, err);
	else
		peer->state = PEER_HANDSHAKE;
}

/* The peer knows our key: now the hello proper. */
static void challenged(struct peer *peer)
{
	int err = conn_say_hello(peer);

	if (err)
		unsent(peer, err);
}

static void crossed(struct peer *peer, const struct wire_hello *hello)
{
	connect_close(peer->conn.sock);
	peer->conn.sock = peer->conn.wake = -1;
	peer->state = PEER_CROSSED;
	peer->conn.incarnation = hello->incarnation;
	peer->conn.attempt->deadline = clock_coarse_ms() + CROSSED_MS;
}

static void rejected(struct peer *peer, const struct wire_hello *hello)
{
	int err = hello->error && hello->error <= UINT16_MAX ? (int)hello->error : FI_ECONNREFUSED;

	if (err == FI_EAGAIN && conn_later(peer))
		return;
	if (err == FI_EADDRINUSE && hello->incarnation && conn_names_join(peer, hello))
		return;
	conn_fail(peer, err == FI_EAGAIN ? FI_ETIMEDOUT : err, hello);
}

static void accepted(struct peer *peer, struct accepted *conn)
{
	struct worker *worker = peer->worker;
	int err;

	if (accepted_lacks_fds(conn) && conn_later(peer))
		return;
	if (!conn->inside)
		epoll_ctl(worker->driven.fd, EPOLL_CTL_DEL, peer->conn.sock, NULL);
	err = conn_link(peer, conn, &(struct wire_nic){.qpn = 0});
	if (!err && !conn->inside && peer->conn.sock >= 0)
		err = conn_watch(peer, EPOLLIN);
	if (err) {
		conn_fail(peer, -err, NULL);
		return;
	}
	attempt_end(peer);
	peer->real->silent = false;
	/*
	 * Within a host this byte tells the peer that we have its hello; across the network the first packet does.
	 */
	if (conn->inside)
		send(peer->conn.sock, &(char){BOOT_WAKE}, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	peer_connected(peer);
	if (worker->cm)
		worker->cm->connected(worker, conn->hello.data, conn->hello.data_len);
}

static void handshake_event(struct peer *peer)
{
	struct accepted conn = {.sock = peer->conn.sock, .inside = peer_inside(peer)};
	int ret = hello_recv(peer->conn.sock, peer_inside(peer), &conn.hello, conn.fds);

	if (ret == 0 || (ret == -FI_ECONNRESET && retry_silent(peer)))
		return;
	if (ret < 0) {
		conn_fail(peer, ret == -FI_ECONNRESET ? FI_ECONNREFUSED : -ret, NULL);
		return;
	}
	conn.pid = conn.inside ? connect_pid(peer->conn.sock) : 0;
	if (!auth_hear(peer, peer->conn.attempt->auth, &conn)) {
		conn_fail(peer, FI_EACCES, NULL);
		return;
	}
	switch (conn.hello.kind) {
	case HELLO_CROSSED:
		crossed(peer, &conn.hello);
		break;
	case HELLO_REJECT:
		rejected(peer, &conn.hello);
		break;
	case HELLO_ACCEPT:
		accepted(peer, &conn);
		break;
	case HELLO_CHALLENGE:
		if (peer->conn.attempt->auth) {
			challenged(peer);
			break;
		}
		/* fall through */
	default:
		hello_close_fds(conn.fds);
		conn_fail(peer, FI_EPROTO, NULL);
	}
}

void conn_finish(struct peer *peer)
{
	if (peer->state == PEER_HANDSHAKE && !peer->conn.end)
		handshake_event(peer);
}

/*
 * Delivers what the peer sent before it closed its socket in good order. Returns the peer, or NULL
 * if it ended meanwhile.
 */
static struct peer *hear_out(struct peer *peer)
{
	struct worker *worker = peer->worker;
	const struct transport *t = worker->via[peer->conn.kind].transport;
	void *state = worker->via[peer->conn.kind].state;
	uint32_t id = pool_id(peer);

	for (unsigned int i = 0; i < LAST_CALLS && t->progress(state); i++)
		;
	peer = pool_find(&worker->peer_pool, id);
	return peer && peer_linked(peer) ? peer : NULL;
}

/*
 * Reads wake-ups and disconnect messages; returns the result of the last recv(). If a peer closes its socket with
 * unread bytes of ours, the kernel reports that error first; the peer's bytes follow.
 */
static ssize_t hear_boot(struct peer *peer)
{
	bool reset = false;
	char byte;
	ssize_t len = 1;

	for (int i = 0; i < BYTES_PER_EVENT && len > 0; i++) {
		len = connect_hear(peer->conn.sock, &byte);
		if (len < 0 && errno == ECONNRESET && !reset) {
			reset = true;
			len = connect_hear(peer->conn.sock, &byte);
		}
		if (len > 0)
			peer->real->silent = false;
		if (len > 0 && byte == BOOT_DISCONNECT)
			conn_end_closed(peer);
	}
	return reset && !len ? -1 : len; /* errno is that of the reset */
}

/* Handles input on a connected peer's socket. The end of the socket is the end of the peer. */
static void connected_event(struct peer *peer)
{
	ssize_t len = hear_boot(peer);
	int err = len < 0 && errno == ETIMEDOUT ? FI_ETIMEDOUT : FI_ECONNRESET;

	if (len > 0 || (len < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	if (len < 0 && conn_outlives(peer))
		return;
	if (!peer_inside(peer))
		peer = hear_out(peer);
	if (peer)
		conn_ended(peer, err);
}

void conn_ended(struct peer *peer, int err)
{
	err = conn_end_decide(peer, err);
	LOG_INFO(LOG_EP_CTRL, "%s: %s: %s", peer_text(peer),
		 reason_text(conn_end_reason(peer, err)), fi_strerror(err));
	conn_fail(peer, err, NULL);
}

void conn_link_ready(struct opener *o, uint32_t src)
{
	struct worker *worker = worker_opener(o);
	struct peer *peer = pool_find(&worker->peer_pool, src);

	peer->real->securing = false;
	peer_connected(peer);
}

void conn_link_ended(struct opener *o, uint32_t src, int err)
{
	struct worker *worker = worker_opener(o);
	struct peer *peer = pool_find(&worker->peer_pool, src);

	if (peer && err < 0)
		rx_lost(peer);
	if (peer && peer_linked(peer))
		conn_ended(peer, err);
}

/*
 * Within a host the peer may be writing to our memory now: asks it to disconnect, and reaps it
 * afterwards.
 */
void conn_expel(struct peer *peer)
{
	if (peer->state == PEER_CONNECTED && peer_inside(peer)) {
		shutdown(peer->conn.sock, SHUT_WR);
		tx_drop_answers(peer);
		list_remove(&peer->tx.in_busy);
	} else if (peer_linked(peer)) {
		conn_ended(peer, FI_EPROTO);
	}
}

static void peer_event(struct peer *peer)
{
	/* A stale event: the peer's socket was closed after epoll_wait. */
	if (peer->conn.sock < 0)
		return;
	switch (peer->state) {
	case PEER_CONNECTING:
		connecting_event(peer);
		break;
	case PEER_HANDSHAKE:
		handshake_event(peer);
		break;
	case PEER_CONNECTED:
		connected_event(peer);
		break;
	default:
		break;
	}
}

static void dispatch(struct worker *worker, uint64_t data)
{
	struct accepted conn;
	struct peer *peer;

	switch (data >> 32) {
	case WORKER_HW: /* the transport's next progress call handles it */
		break;
	case WORKER_STALL:
		stall_tick(worker);
		break;
	case WORKER_PEER:
		peer = pool_find(&worker->peer_pool, (uint32_t)data);
		if (peer)
			peer_event(peer);
		break;
	case WORKER_RAIL:
		conn_rails_event(worker, (uint32_t)data);
		break;
	default:
		if (acceptor_event(&worker->acceptor, data, &conn))
			conn_on_hello(worker, &conn);
	}
}

static void expire(struct worker *worker, bool heard)
{
	uint64_t now = clock_coarse_ms();

	acceptor_expire(&worker->acceptor);
	/* Not with each poll: only time and the end of another connection change anything. */
	if (!heard && now == worker->expired_ms)
		return;
	worker->expired_ms = now;
	if (worker->acceptor.held_count || worker->probing)
		conn_retry_held(worker);
	LIST_EACH_SAFE (node, &worker->peers_list) {
		struct peer *peer = LIST_ENTRY(node, struct peer, in_worker);
		/* PEER_HANDSHAKE has none: our hello has arrived, so the peer is alive. */
		bool overdue = peer_attempts(peer) && peer->state != PEER_HANDSHAKE &&
			       now >= peer->conn.attempt->deadline;

		if (overdue && peer->state == PEER_CROSSED &&
		    retry(peer, "does not connect after all"))
			continue;
		if (overdue || conn_introduce_overdue(peer, now))
			conn_fail(peer, conn_overdue(peer), NULL);
		else if (peer_reads_out(peer))
			conn_forget(peer);
		else
			conn_again(peer);
	}
}

bool conn_poll(struct worker *worker)
{
	struct epoll_event events[EVENTS_PER_POLL];
	bool any = false;
	int n = EVENTS_PER_POLL;

	for (int polls = 0; n == EVENTS_PER_POLL && polls < POLLS_PER_CALL; polls++) {
		n = epoll_wait(worker->driven.fd, events, EVENTS_PER_POLL, 0);
		for (int i = 0; i < n; i++)
			dispatch(worker, events[i].data.u64);
		any |= n > 0;
	}
	stall_watch(worker);
	worker->opener.armed |= n == EVENTS_PER_POLL; /* the next progress call polls on */
	if (any)
		idle_end(&worker->driven.idle);
	if (worker->acceptor.lacks_files)
		conn_retire_for_accept(worker);
	if (worker->handshakes || worker->acceptor.count || worker->unread)
		expire(worker, any);
	return any;
}
