/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bootstrap socket of a connection, whose end is that of the peer. Links may go on without it if they find out by
 * themselves whether the peer is there: the peer's disconnect message is the end then.
 */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "conn/conn_own.h"
#include "conn/connect.h"

#define BYTES_PER_EVENT 64   /* bytes read at most; within a host each is one packet */
#define LAST_CALLS      4096 /* at most, to deliver what a peer sent before its end */

bool conn_probe(struct contact *peer)
{
	const struct transport *t = peer->station->via[peer->kind].transport;

	return t->probe && t->probe(peer->real);
}

static bool socket_outlives(struct contact *peer)
{
	if (peer->end == END_CLOSED || !conn_probe(peer))
		return false;
	LOG_INFO(LOG_EP_CTRL, "the link to %s has lost its socket", contact_text(peer));
	epoll_ctl(peer->station->driven.fd, EPOLL_CTL_DEL, peer->sock, NULL);
	peer->socket_lost = true;
	return true;
}

/*
 * Delivers what the peer sent before it closed its socket in good order. Returns the peer, or NULL
 * if it ended meanwhile.
 */
static struct contact *hear_out(struct contact *peer)
{
	struct station *station = peer->station;
	const struct transport *t = station->via[peer->kind].transport;
	void *state = station->via[peer->kind].state;
	uint32_t id = pool_id(peer);

	for (unsigned int i = 0; i < LAST_CALLS && t->progress(state); i++)
		;
	peer = pool_find(&station->peer_pool, id);
	return peer && contact_linked(peer) ? peer : NULL;
}

/*
 * Reads wake-ups and disconnect messages; returns the result of the last recv(). If a peer closes its socket with
 * unread bytes of ours, the kernel reports that error first; the peer's bytes follow.
 */
static ssize_t hear_boot(struct contact *peer)
{
	bool reset = false;
	char byte;
	ssize_t len = 1;

	for (int i = 0; i < BYTES_PER_EVENT && len > 0; i++) {
		len = connect_hear(peer->sock, &byte);
		if (len < 0 && errno == ECONNRESET && !reset) {
			reset = true;
			len = connect_hear(peer->sock, &byte);
		}
		if (len > 0)
			peer->real->silent = false;
		if (len > 0 && byte == BOOT_DISCONNECT)
			conn_end_closed(peer);
	}
	return reset && !len ? -1 : len; /* errno is that of the reset */
}

void conn_socket_hear(struct contact *peer)
{
	ssize_t len = hear_boot(peer);
	int err = len < 0 && errno == ETIMEDOUT ? FI_ETIMEDOUT : FI_ECONNRESET;

	if (len > 0 || (len < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	if (len < 0 && socket_outlives(peer))
		return;
	if (!contact_inside(peer))
		peer = hear_out(peer);
	if (peer)
		conn_ended(peer, err);
}

void conn_hear_disconnect(struct contact *peer)
{
	conn_end_closed(peer);
	if (peer->socket_lost)
		conn_ended(peer, FI_ESHUTDOWN);
}
