/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/conn/attempt.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "xfer/conn/auth.h"
#include "xfer/worker.h"

int attempt_begin(struct peer *peer)
{
	char text[ADDR_STR_MAX + 32];

	peer->conn.attempt = calloc(1, sizeof(*peer->conn.attempt));
	if (!peer->conn.attempt) {
		addr_print(&peer->conn.name, text, sizeof(text));
		LOG_PEER(LOG_EP_CTRL, "%s: out of memory for an attempt to connect", text);
		return -FI_ENOMEM;
	}
	peer->conn.worker->conn.handshakes++;
	return 0;
}

void attempt_abandon(struct worker *worker, void **pending)
{
	if (*pending)
		worker->conn.via[LINK_DEVICE].transport->abandon(
			worker->conn.via[LINK_DEVICE].state, *pending);
	*pending = NULL;
}

void attempt_reset(struct peer *peer)
{
	struct attempt *a = peer->conn.attempt;

	attempt_abandon(peer->conn.worker, &a->pending);
	auth_end(&a->auth);
}

void attempt_end(struct peer *peer)
{
	if (!peer->conn.attempt)
		return;
	attempt_reset(peer);
	free(peer->conn.attempt);
	peer->conn.attempt = NULL;
	peer->conn.worker->conn.handshakes--;
}

bool attempt_introduced(const struct peer *peer)
{
	const struct attempt *a = peer->conn.attempt;

	return a && a->until && peer->conn.addr == FI_ADDR_NOTAVAIL;
}

bool attempt_forsaken(const struct peer *peer, uint64_t now)
{
	return attempt_introduced(peer) && now >= peer->conn.attempt->until;
}
