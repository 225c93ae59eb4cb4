/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes links after the hellos, by the best transport that both sides have. */
#include <rdma/fi_errno.h>
#include <string.h>

#include "xfer/conn/conn_options.h"
#include "xfer/conn/conn_own.h"
#include "xfer/conn/connect.h"
#include "xfer/conn/stall.h"

/* `key`, `pending`: as in struct link_peer. */
static int make_link(struct peer *peer, struct accepted *conn, enum link_kind kind,
		     const uint8_t *key, void *pending)
{
	struct worker *worker = peer->conn.worker;
	struct link_peer lp = {.key = key,
			       .initiator = conn->hello.kind == HELLO_ACCEPT,
			       .hello = &conn->hello,
			       .id = conn->inside ? conn->hello.your_id : pool_id(peer),
			       .sock = peer->conn.wake,
			       .pid = conn->pid,
			       .pending = pending};
	int err = kind == LINK_SOCKET ? conn_options_link(peer, conn, &lp) : 0;

	if (err)
		return err;
	memcpy(lp.fds, conn->fds, sizeof(lp.fds));
	err = worker->conn.via[kind].transport->connect(worker->conn.via[kind].state, &lp,
							&peer->conn.real);
	if (err)
		return err;
	peer->conn.kind = kind;
	peer->conn.incarnation = conn->hello.incarnation;
	peer->conn.serial = conn->hello.serial;
	peer->conn.hello_flags = conn->hello.flags;
	peer->conn.probing = peer->conn.socket_lost = false;
	if (kind == LINK_SOCKET)
		peer->conn.sock = peer->conn.wake = -1;
	if (worker->conn.via[kind].transport->blocked)
		stall_begin(worker);
	return 0;
}

/*
 * May a device serve the connection? It has the address that is our name: whom that reaches, a connection by another
 * address does not tell, and TCP serves such a one.
 */
static bool suits_device(const struct peer *peer)
{
	const struct worker *worker = peer->conn.worker;
	struct addr own;

	if (!worker->conn.opener.all || !worker->conn.via[LINK_SOCKET].state)
		return true;
	if (!connect_local(peer->conn.sock, &own))
		return false;
	own = addr_unmapped(&own);
	own.port = worker->conn.key.port;
	return addr_equal(&own, &worker->conn.key);
}

void conn_prepare(struct peer *peer, const struct wire_nic *theirs, struct wire_nic *ours,
		  void **pending)
{
	const struct transport *device = peer->conn.worker->conn.via[LINK_DEVICE].transport;
	void *state = peer->conn.worker->conn.via[LINK_DEVICE].state;

	if (peer_inside(peer) || !state || peer->conn.device_error || *pending ||
	    !suits_device(peer))
		return;
	if (device->prepare(state, theirs, ours, pending))
		*ours = (struct wire_nic){.qpn = 0};
}

/* Makes a link between RDMA devices: both hellos describe an end. Owns `pending`. 0 or a negative error. */
static int link_devices(struct peer *peer, struct accepted *conn, void *pending)
{
	int err = make_link(peer, conn, LINK_DEVICE, NULL, pending);

	if (!err)
		return 0;
	if (peer->conn.worker->conn.via[LINK_SOCKET].state)
		peer->conn.device_error = -err;
	attempt_abandon(peer->conn.worker, &pending);
	return err;
}

/* Only what we have accepted carries its proof with it. */
static const struct auth *conn_link_proof(const struct peer *peer, const struct accepted *conn)
{
	if (conn->auth.key.len)
		return &conn->auth;
	return peer->conn.attempt ? peer->conn.attempt->auth : NULL;
}

static int link_sockets(struct peer *peer, struct accepted *conn)
{
	const struct auth *auth = conn_link_proof(peer, conn);
	uint8_t key[TLS_KEY];
	bool encrypts = auth && auth->encrypts;
	int err = peer->conn.worker->conn.via[LINK_SOCKET].state ? 0 : -FI_EHOSTUNREACH;

	if (!err && encrypts && !auth_link_key(auth, key))
		err = -FI_EIO;
	if (!err)
		err = make_link(peer, conn, LINK_SOCKET, encrypts ? key : NULL, NULL);
	explicit_bzero(key, sizeof(key));
	return err;
}

/* The pending link that our hello has described, if it has; the caller owns it. */
static void *take_pending(struct peer *peer)
{
	void *pending = peer->conn.attempt ? peer->conn.attempt->pending : NULL;

	if (pending)
		peer->conn.attempt->pending = NULL;
	return pending;
}

int conn_link(struct peer *peer, struct accepted *conn, struct wire_nic *ours)
{
	struct worker *worker = peer->conn.worker;
	const struct wire_nic *theirs = &conn->hello.nic;
	void *pending = take_pending(peer);
	bool asked = pending; /* the peer expects this kind of link */
	struct addr from;

	peer->conn.source = 0;
	peer->conn.wrong_key = false;
	worker->conn.cm_sock = peer->conn.sock;
	if (conn->inside)
		return make_link(peer, conn, LINK_HOST, NULL, NULL);
	connect_set_linked(peer->conn.sock);
	peer->conn.source = connect_remote(peer->conn.sock, &from) ? source_id(&from) : 0;
	if (theirs->qpn)
		conn_prepare(peer, theirs, ours, &pending);
	if (theirs->qpn && pending) {
		int err = link_devices(peer, conn, pending);

		if (!err || asked)
			return err;
	} else {
		attempt_abandon(worker, &pending);
	}
	*ours = (struct wire_nic){.qpn = 0};
	return link_sockets(peer, conn);
}
