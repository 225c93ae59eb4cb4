/* SPDX-License-Identifier: BSD-2-Clause */
/* The making of links, once the hellos are exchanged, by the best way that both sides have. */
#include <rdma/fi_errno.h>
#include <string.h>

#include "xfer/conn/conn_own.h"
#include "xfer/conn/connect.h"

static int make_link(struct peer *peer, struct accepted *conn, enum transport_index hw)
{
	struct worker *worker = peer->worker;
	struct link_peer lp = {.hello = &conn->hello,
			       .id = conn->inside ? conn->hello.your_id : pool_id(peer),
			       .sock = peer->wake,
			       .pid = conn->pid,
			       .pending = peer->pending};
	int err;

	memcpy(lp.fds, conn->fds, sizeof(lp.fds));
	err = transports[hw]->connect(worker->hw[hw], &lp, &peer->real);
	if (err)
		return err;
	peer->hw = hw;
	peer->incarnation = conn->hello.incarnation;
	peer->serial = conn->hello.serial;
	if (transports[hw]->takes_socks)
		peer->sock = peer->wake = -1;
	return 0;
}

void conn_abandon(struct peer *peer)
{
	if (peer->pending)
		transports[TRANSPORT_VERBS]->abandon(peer->worker->hw[TRANSPORT_VERBS],
						     peer->pending);
	peer->pending = NULL;
}

void conn_prepare(struct peer *peer, const struct wire_nic *theirs, struct wire_nic *ours)
{
	void *hw = peer->worker->hw[TRANSPORT_VERBS];

	if (peer->inside || !hw || peer->plain || peer->pending)
		return;
	if (transports[TRANSPORT_VERBS]->prepare(hw, theirs, ours, &peer->pending))
		*ours = (struct wire_nic){.qpn = 0};
}

/* Between RDMA devices, as both sides want it. */
static int link_devices(struct peer *peer, struct accepted *conn)
{
	int err = make_link(peer, conn, TRANSPORT_VERBS);

	if (!err) {
		peer->pending = NULL;
		return 0;
	}
	peer->plain = peer->worker->hw[TRANSPORT_TCP];
	conn_abandon(peer);
	return err;
}

int conn_link(struct peer *peer, struct accepted *conn, struct wire_nic *ours)
{
	struct worker *worker = peer->worker;
	const struct wire_nic *theirs = &conn->hello.nic;
	bool asked = peer->pending; /* we did, and what they say is settled */

	worker->cm_sock = peer->sock;
	if (conn->inside)
		return make_link(peer, conn, TRANSPORT_SHM);
	connect_set_linked(peer->sock);
	if (theirs->qpn)
		conn_prepare(peer, theirs, ours);
	if (theirs->qpn && peer->pending) {
		int err = link_devices(peer, conn);

		if (!err || asked)
			return err;
	}
	*ours = (struct wire_nic){.qpn = 0};
	conn_abandon(peer);
	return worker->hw[TRANSPORT_TCP] ? make_link(peer, conn, TRANSPORT_TCP) : -FI_EHOSTUNREACH;
}
