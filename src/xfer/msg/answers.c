/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/msg/answers.h"

#include <rdma/fi_ext_weft.h>

#include "base/log.h"
#include "xfer/msg/tx.h"
#include "xfer/worker.h"

/* A peer that sends requests and reads no answers has at most as many requests under way as its pool has numbers. */
_Static_assert(((sizeof(struct control) + WIRE_RESULT_INLINE) << POOL_INDEX_BITS) +
			       3 * WIRE_RESULTS_MAX <=
		       WIRE_ANSWERS_MAX,
	       "no peer of ours makes us keep too many answers");

static void set_known(struct peer *peer, bool known)
{
	struct answers *a = &peer_worker(peer)->answers;

	if (peer->tx.reply_known == known)
		return;
	peer->tx.reply_known = known;
	if (known)
		a->unknown -= peer->tx.reply_bytes;
	else
		a->unknown += peer->tx.reply_bytes;
}

/* Finds out whether the address vector holds the peer by now. One that is being disconnected does not count. */
static void answers_look_up(struct peer *peer)
{
	set_known(peer, contact_expelled(&peer->conn) || peer->conn.station->cm ||
				contact_addr(&peer->conn) != FI_ADDR_NOTAVAIL);
}

/* The peer exceeds `limit` of the setting or constant `name`. */
static void answers_disconnect(struct peer *peer, const char *name, size_t limit)
{
	struct answers *a = &peer_worker(peer)->answers;

	LOG_PEER(
		LOG_EP_DATA,
		"%s: %zu bytes of answers that it does not read, of %zu for all peers and %zu for "
		"those that the address vector does not hold, exceed %s=%zu: disconnecting the peer",
		contact_text(&peer->conn), peer->tx.reply_bytes, a->bytes, a->unknown, name, limit);
	a->disconnected++;
	contact_expel(&peer->conn, END_BUDGET);
	answers_look_up(peer);
}

/* Returns the one of the peers not in the address vector that has most; `peer` if none has more. */
static struct peer *answers_worst(struct peer *peer)
{
	struct peer *most = peer;

	LIST_EACH_OF (struct peer, other, &peer->conn.station->peers_list, conn.in_station) {
		if (!other->tx.reply_known && other->tx.reply_bytes > most->tx.reply_bytes)
			most = other;
	}
	return most;
}

static bool answers_exceeds(const struct answers *a, size_t bytes, size_t limit)
{
	return bytes > limit || a->unknown > limit - bytes;
}

/* Makes room for `bytes` of a peer that the address vector does not hold. False: it has most itself. */
static bool make_room(struct peer *peer, size_t bytes)
{
	struct answers *a = &peer_worker(peer)->answers;
	const size_t limit = budget_half();

	if (!answers_exceeds(a, bytes, limit))
		return true;
	LIST_EACH (node, &peer->conn.station->peers_list)
		answers_look_up(LIST_ENTRY(node, struct peer, conn.in_station));
	while (answers_exceeds(a, bytes, limit) && !contact_expelled(&peer->conn))
		answers_disconnect(answers_worst(peer), "half of FI_WEFT_UNEXPECTED_LIMIT", limit);
	return !contact_expelled(&peer->conn);
}

bool answers_add(struct peer *peer, size_t bytes)
{
	if (contact_expelled(&peer->conn))
		return false;
	answers_look_up(peer);
	if (bytes > WIRE_ANSWERS_MAX - peer->tx.reply_bytes) {
		answers_disconnect(peer, "WIRE_ANSWERS_MAX", WIRE_ANSWERS_MAX);
		return false;
	}
	if (!peer->tx.reply_known && !make_room(peer, bytes))
		return false;
	peer->tx.reply_bytes += bytes;
	peer_worker(peer)->answers.bytes += bytes;
	if (!peer->tx.reply_known)
		peer_worker(peer)->answers.unknown += bytes;
	return true;
}

void answers_remove(struct peer *peer, size_t bytes)
{
	peer->tx.reply_bytes -= bytes;
	peer_worker(peer)->answers.bytes -= bytes;
	if (!peer->tx.reply_known)
		peer_worker(peer)->answers.unknown -= bytes;
}

void answers_forget_addr(struct peer *peer)
{
	if (!contact_expelled(&peer->conn))
		set_known(peer, false);
}

void answers_stats(const struct answers *a, struct fi_weft_stats *stats)
{
	stats->answers_bytes = a->bytes;
	stats->answers_disconnected = a->disconnected;
}
