/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of a worker, and the ends of its connections. docs/CONNECTIONS.md tells what becomes of each event. */
#include "xfer/events.h"
#include "xfer/conn/conn.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/reason.h"
#include "xfer/conn/conn_options.h"
#include "xfer/conn/conn_own.h"
#include "xfer/conn/connect.h"
#include "xfer/conn/stall.h"

#define EVENTS_PER_POLL 32
#define POLLS_PER_CALL  8 /* at most; then other workers are polled */

void conn_forget(struct peer *peer)
{
	if (!peer->conn.unread_ms && !peer->conn.named)
		peer_free(peer);
}

void conn_fail(struct peer *peer, int err, const struct wire_hello *hello)
{
	struct worker *worker = peer->conn.worker;
	bool again;

	err = conn_end_decide(peer, err);
	again = worker->conn.reaches_out && conn_reach_renews(peer, err);
	if (peer_attempts(peer))
		conn_reach_explain(peer, err);
	peer_failed(peer, err);
	if (worker->conn.cm)
		worker->conn.cm->ended(worker, err, hello ? hello->data : NULL,
				       hello ? hello->data_len : 0);
	else if (again)
		conn_reach_out(worker, peer->conn.addr);
	else
		conn_forget(peer);
}

void conn_finish(struct peer *peer)
{
	if (!peer->conn.end)
		conn_event(peer, CONN_PACKET, NULL);
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
	struct peer *peer = pool_find(&worker->conn.peer_pool, src);

	peer->conn.real->securing = false;
	peer_connected(peer);
}

void conn_link_ended(struct opener *o, uint32_t src, int err)
{
	struct worker *worker = worker_opener(o);
	struct peer *peer = pool_find(&worker->conn.peer_pool, src);

	if (peer && err < 0)
		worker->conn.up->lost(peer);
	if (peer)
		conn_event(peer, CONN_LOST, &(struct conn_with){.err = err});
}

/*
 * Within a host the peer may be writing to our memory now: asks it to disconnect, and reaps it
 * afterwards.
 */
void conn_expelled(struct peer *peer)
{
	if (peer_inside(peer)) {
		shutdown(peer->conn.sock, SHUT_WR);
		peer->conn.worker->conn.up->mute(peer);
	} else {
		conn_ended(peer, FI_EPROTO);
	}
}

void conn_give_up(struct peer *peer)
{
	if (peer_linked(peer)) {
		peer_expel(peer, END_STUCK);
		return;
	}
	peer->conn.end = END_STUCK;
	conn_fail(peer, FI_ETIMEDOUT, NULL);
}

void conn_expel(struct peer *peer)
{
	conn_event(peer, CONN_EXPEL, NULL);
}

static void conn_dispatch(struct worker *worker, uint64_t data)
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
		peer = pool_find(&worker->conn.peer_pool, (uint32_t)data);
		/* A stale event: the peer's socket was closed after epoll_wait. */
		if (peer && peer->conn.sock >= 0)
			conn_event(peer, CONN_SOCKET, NULL);
		break;
	case WORKER_RAIL:
		conn_options_socket(worker, (uint32_t)data);
		break;
	default:
		if (acceptor_event(&worker->conn.acceptor, data, &conn))
			conn_on_hello(worker, &conn);
	}
}

/* The peer may be freed. */
static void peer_tick(struct peer *peer, uint64_t now)
{
	const struct attempt *a = peer->conn.attempt;

	if (attempt_forsaken(peer, now))
		conn_event(peer, CONN_FORSAKEN, NULL);
	else if (a && now >= a->deadline)
		conn_event(peer, CONN_OVERDUE, NULL);
	else if (a && now >= a->again_ms)
		conn_event(peer, CONN_DUE, NULL);
	else if (peer_reads_out(peer))
		conn_forget(peer);
}

static void conn_expire(struct worker *worker, bool heard)
{
	uint64_t now = clock_coarse_ms();

	acceptor_expire(&worker->conn.acceptor);
	/* Not with each poll: only time and the end of another connection change anything. */
	if (!heard && now == worker->conn.expired_ms)
		return;
	worker->conn.expired_ms = now;
	if (worker->conn.acceptor.held_count || worker->conn.probing)
		conn_retry_held(worker);
	LIST_EACH_SAFE (node, &worker->conn.peers_list)
		peer_tick(LIST_ENTRY(node, struct peer, conn.in_worker), now);
}

/* Connections that come are accepted again once descriptors are free. */
static void look_for_room(struct worker *worker)
{
	uint64_t now = clock_coarse_ms();

	if (now == worker->conn.looked_ms)
		return;
	worker->conn.looked_ms = now;
	worker->conn.acceptor.lacks_files = !connect_affordable();
	if (worker->conn.acceptor.lacks_files)
		conn_options_make_room(worker);
	else
		acceptor_resume(&worker->conn.acceptor);
}

bool conn_poll(struct worker *worker)
{
	struct epoll_event events[EVENTS_PER_POLL];
	bool any = false;
	int n = EVENTS_PER_POLL;

	for (int polls = 0; n == EVENTS_PER_POLL && polls < POLLS_PER_CALL; polls++) {
		n = epoll_wait(worker->conn.driven.fd, events, EVENTS_PER_POLL, 0);
		for (int i = 0; i < n; i++)
			conn_dispatch(worker, events[i].data.u64);
		any |= n > 0;
	}
	stall_watch(worker);
	worker->conn.opener.armed |= n == EVENTS_PER_POLL; /* the next progress call polls on */
	if (any)
		idle_end(&worker->conn.driven.idle);
	if (worker->conn.acceptor.lacks_files)
		look_for_room(worker);
	if (worker->conn.handshakes || worker->conn.acceptor.count || worker->conn.unread)
		conn_expire(worker, any);
	return any;
}

void conn_disconnect(struct peer *peer)
{
	if (peer_inside(peer))
		send(peer->conn.sock, &(char){BOOT_DISCONNECT}, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		peer->conn.real->ops->send(peer->conn.real, NULL, 0, 0,
					   WIRE_HEAD(WIRE_DISCONNECT, 0, 0, 0), 0);
}

void conn_drain(struct worker *worker)
{
	for (unsigned int i = 0; i < LINK_KINDS; i++)
		if (worker->conn.via[i].state && worker->conn.via[i].transport->drain)
			worker->conn.via[i].transport->drain(worker->conn.via[i].state);
}

void conn_close(struct worker *worker)
{
	LIST_EACH (at, &worker->conn.peers_list)
		conn_event(LIST_ENTRY(at, struct peer, conn.in_worker), CONN_CLOSE, NULL);
	conn_drain(worker);
	LIST_EACH_SAFE_OF (struct peer, peer, &worker->conn.peers_list, conn.in_worker) {
		peer->conn.end = END_LOCAL;
		peer_failed(peer, FI_ECANCELED);
		peer_free(peer);
	}
	acceptor_close(&worker->conn.acceptor);
	source_free(&worker->conn.sources);
	conn_timer_clear(worker);
	free(worker->conn.cm_data);
}
