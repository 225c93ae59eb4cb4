/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/attempt.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "conn/auth.h"
#include "conn/station.h"

int attempt_begin(struct contact *peer)
{
	peer->attempt = calloc(1, sizeof(*peer->attempt));
	if (!peer->attempt) {
		LOG_PEER(LOG_EP_CTRL, "%s: out of memory for an attempt to connect",
			 contact_text(peer));
		return -FI_ENOMEM;
	}
	peer->station->handshakes++;
	return 0;
}

void attempt_abandon(struct station *station, void **pending)
{
	if (*pending)
		station->via[LINK_DEVICE].transport->abandon(station->via[LINK_DEVICE].state,
							     *pending);
	*pending = NULL;
}

void attempt_reset(struct contact *peer)
{
	struct attempt *a = peer->attempt;

	attempt_abandon(peer->station, &a->pending);
	auth_end(&a->auth);
}

void attempt_end(struct contact *peer)
{
	if (!peer->attempt)
		return;
	attempt_reset(peer);
	free(peer->attempt);
	peer->attempt = NULL;
	peer->station->handshakes--;
}

bool attempt_introduced(const struct contact *peer)
{
	const struct attempt *a = peer->attempt;

	return a && a->until && peer->addr == FI_ADDR_NOTAVAIL;
}

bool attempt_forsaken(const struct contact *peer, uint64_t now)
{
	return attempt_introduced(peer) && now >= peer->attempt->until;
}
