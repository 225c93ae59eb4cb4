/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of connections by us: their peers hear of it, and get what was sent before. */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "xfer/conn/conn_own.h"
#include "xfer/stall.h"

void conn_disconnect(struct peer *peer)
{
	if (peer->state != PEER_CONNECTED && peer->state != PEER_RETIRING)
		return;
	if (peer_inside(peer))
		send(peer->conn.sock, &(char){BOOT_DISCONNECT}, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		peer->real->ops->send(peer->real, NULL, 0, 0, WIRE_HEAD(WIRE_DISCONNECT, 0, 0, 0),
				      0);
}

void conn_drain(struct worker *worker)
{
	for (unsigned int i = 0; i < LINK_KINDS; i++)
		if (worker->via[i].state && worker->via[i].transport->drain)
			worker->via[i].transport->drain(worker->via[i].state);
}

void conn_close(struct worker *worker)
{
	LIST_EACH (at, &worker->peers_list)
		conn_disconnect(LIST_ENTRY(at, struct peer, in_worker));
	conn_drain(worker);
	LIST_EACH_SAFE (at, &worker->peers_list) {
		struct peer *peer = LIST_ENTRY(at, struct peer, in_worker);

		peer->conn.end = END_LOCAL;
		peer_failed(peer, FI_ECANCELED);
		peer_free(peer);
	}
	acceptor_close(&worker->acceptor);
	source_free(&worker->sources);
	conn_timer_clear(worker);
	stall_close(worker);
	free(worker->cm_data);
}
