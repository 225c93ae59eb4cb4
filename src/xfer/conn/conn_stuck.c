/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that is stopped, or never calls the library, looks alive: its kernel answers for it. So its operations have no
 * bound but the one that the user sets: FI_WEFT_OPERATION_TIMEOUT. A connected peer of this host is never given up: it
 * may still read the memory of an operation, and its end is seen at once.
 */
#include <rdma/fi_errno.h>

#include "base/env.h"
#include "base/log.h"
#include "xfer/conn/conn_own.h"
#include "xfer/msg/tx.h"

#define CHECKS 8 /* in the time that an operation has */

/* Has the request been as it is for all checks? */
static bool stands_still(struct txreq *req)
{
	size_t moved = req->sent + req->got;

	if (!req->checks || req->seen != moved)
		req->checks = 0;
	req->seen = moved;
	return ++req->checks > CHECKS;
}

/* Requests of one list make progress in order, so the first one tells. Answers are none of our operations. */
static bool is_stuck(struct peer *peer)
{
	bool stuck = false;

	for (enum txreq_state i = TXREQ_RMA; i < TXREQ_LISTS; i++) {
		struct txreq *first = i == TXREQ_REPLY ? NULL : tx_req_first(peer, i);

		stuck |= first && stands_still(first);
	}
	return stuck;
}

static void give_up(struct peer *peer, int ms)
{
	LOG_WARN(LOG_EP_DATA,
		 "%s: an operation has stood still for %d ms (FI_WEFT_OPERATION_TIMEOUT): %s",
		 peer_text(peer), ms,
		 peer_linked(peer) ? "its connection is ended" : "it has not accepted us");
	peer->conn.stuck = true;
	if (peer_linked(peer))
		peer_expel(peer);
	else
		conn_fail(peer, FI_ETIMEDOUT, NULL);
}

void conn_stuck_check(struct worker *worker, uint64_t now)
{
	int ms = env_get()->operation_timeout;

	if (now < worker->next_stuck)
		return;
	worker->next_stuck = ms > 0 ? now + (uint64_t)ms / CHECKS + 1 : UINT64_MAX;
	if (ms <= 0)
		return;
	LIST_EACH_SAFE (node, &worker->peers_list) {
		struct peer *peer = LIST_ENTRY(node, struct peer, in_worker);
		bool exempt = peer_linked(peer) && (peer->conn.inside || peer->conn.over_budget);

		if (peer->state != PEER_IDLE && !exempt && is_stuck(peer))
			give_up(peer, ms);
	}
}
