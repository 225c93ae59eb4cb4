/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message that is announced and not sent holds the receive that it matched. Inside a host a peer may be stopped for
 * as long as it likes, and ends with its process. Across the network its kernel answers for it, so that nothing but
 * the absence of the message tells a peer that will never send it from one that computes: see FI_WEFT_SENDER_TIMEOUT.
 */
#include "base/env.h"
#include "xfer/rndv/rxreq.h"
#include "xfer/worker.h"

#define CHECKS 8 /* in the time a sender has */

/* Does the peer owe us a part of a message? A device fetches by itself. */
static bool rxreq_check_owes(const struct peer *peer)
{
	LIST_EACH (node, &peer->rx.rxreqs)
		if (LIST_ENTRY(node, struct rxreq, link)->state == RXREQ_COMES)
			return true;
	return false;
}

static bool is_exempt(struct peer *peer)
{
	return !contact_linked(&peer->conn) || contact_inside(&peer->conn) ||
	       contact_expelled(&peer->conn) ||
	       (env_get()->sender_timeout < 0 &&
		(peer->conn.station->cm || contact_addr(&peer->conn) != FI_ADDR_NOTAVAIL));
}

static void rxreq_check_peer(struct peer *peer, int ms)
{
	if (!rxreq_check_owes(peer) || peer->rx.came != peer->rx.seen || is_exempt(peer)) {
		peer->rx.seen = peer->rx.came;
		peer->rx.stalls = 0;
	} else if (++peer->rx.stalls > CHECKS) {
		contact_overdue(&peer->conn, ms);
	}
}

void rxreq_check(struct worker *worker, uint64_t now)
{
	const struct env_settings *env = env_get();
	int ms = env->sender_timeout < 0 ? env->peer_timeout : env->sender_timeout;

	if (now < worker->next_check)
		return;
	if (ms <= 0) {
		worker->next_check = UINT64_MAX;
		return;
	}
	worker->next_check = now + (uint64_t)ms / CHECKS + 1;
	LIST_EACH (node, &worker->conn.peers_list)
		rxreq_check_peer(LIST_ENTRY(node, struct peer, conn.in_station), ms);
}
