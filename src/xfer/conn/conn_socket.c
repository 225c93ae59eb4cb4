/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links that go on without their bootstrap socket, because they find out by themselves whether the peer is there.
 * The peer's disconnect message is the end then, which otherwise that of the socket is.
 */
#include <rdma/fi_errno.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "xfer/conn/conn_own.h"

bool conn_probe(struct peer *peer)
{
	const struct transport *t = peer->worker->via[peer->conn.kind].transport;

	return t->probe && t->probe(peer->real);
}

bool conn_outlives(struct peer *peer)
{
	if (peer->conn.end == END_CLOSED || !conn_probe(peer))
		return false;
	LOG_INFO(LOG_EP_CTRL, "the link to %s has lost its socket", peer_text(peer));
	epoll_ctl(peer->worker->driven.fd, EPOLL_CTL_DEL, peer->conn.sock, NULL);
	peer->conn.socket_lost = true;
	return true;
}

void conn_hear_disconnect(struct peer *peer)
{
	conn_end_closed(peer);
	if (peer->conn.socket_lost)
		conn_ended(peer, FI_ESHUTDOWN);
}
