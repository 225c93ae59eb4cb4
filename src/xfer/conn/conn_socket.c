/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bootstrap socket of a connection, whose end is that of the peer. Links may go on without it if they find out by
 * themselves whether the peer is there: the peer's disconnect message is the end then.
 */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "xfer/conn/conn_own.h"
#include "xfer/conn/connect.h"

#define BYTES_PER_EVENT 64   /* bytes read at most; within a host each is one packet */
#define LAST_CALLS      4096 /* at most, to deliver what a peer sent before its end */

bool conn_probe(struct peer *peer)
{
	const struct transport *t = peer->conn.worker->conn.via[peer->conn.kind].transport;

	return t->probe && t->probe(peer->conn.real);
}

static bool socket_outlives(struct peer *peer)
{
	if (peer->conn.end == END_CLOSED || !conn_probe(peer))
		return false;
	LOG_INFO(LOG_EP_CTRL, "the link to %s has lost its socket", peer_text(peer));
	epoll_ctl(peer->conn.worker->conn.driven.fd, EPOLL_CTL_DEL, peer->conn.sock, NULL);
	peer->conn.socket_lost = true;
	return true;
}

/*
 * Delivers what the peer sent before it closed its socket in good order. Returns the peer, or NULL
 * if it ended meanwhile.
 */
static struct peer *hear_out(struct peer *peer)
{
	struct worker *worker = peer->conn.worker;
	const struct transport *t = worker->conn.via[peer->conn.kind].transport;
	void *state = worker->conn.via[peer->conn.kind].state;
	uint32_t id = pool_id(peer);

	for (unsigned int i = 0; i < LAST_CALLS && t->progress(state); i++)
		;
	peer = pool_find(&worker->conn.peer_pool, id);
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
			peer->conn.real->silent = false;
		if (len > 0 && byte == BOOT_DISCONNECT)
			conn_end_closed(peer);
	}
	return reset && !len ? -1 : len; /* errno is that of the reset */
}

void conn_socket_hear(struct peer *peer)
{
	ssize_t len = hear_boot(peer);
	int err = len < 0 && errno == ETIMEDOUT ? FI_ETIMEDOUT : FI_ECONNRESET;

	if (len > 0 || (len < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	if (len < 0 && socket_outlives(peer))
		return;
	if (!peer_inside(peer))
		peer = hear_out(peer);
	if (peer)
		conn_ended(peer, err);
}

void conn_hear_disconnect(struct peer *peer)
{
	conn_end_closed(peer);
	if (peer->conn.socket_lost)
		conn_ended(peer, FI_ESHUTDOWN);
}
