/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes links after the hellos, by the best transport that both sides have. */
#include <rdma/fi_errno.h>
#include <string.h>

#include "conn/conn_options.h"
#include "conn/conn_own.h"
#include "conn/connect.h"
#include "conn/stall.h"

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
	peer->probing = peer->socket_lost = false;
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
