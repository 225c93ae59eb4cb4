/* SPDX-License-Identifier: BSD-2-Clause */
/* What a worker does about network addresses whose peers try keys. */
#include "base/clock.h"
#include "base/log.h"
#include "xfer/conn/conn.h"

void conn_wrong_key(struct peer *peer, uint64_t key)
{
	struct worker *worker = peer->conn.worker;
	uint64_t now = clock_coarse_ms(), source = peer->conn.source;
	char text[ADDR_STR_MAX + 32];

	peer->conn.wrong_key = true;
	if (!source_wrong_key(&worker->conn.sources, source, key, now)) {
		if (source_refused(&worker->conn.sources, source, now))
			peer_expel(peer, END_KEYS);
		return;
	}
	addr_print(&peer->conn.name, text, sizeof(text));
	LOG_PEER(LOG_EP_DATA,
		 "%u wrong keys within %u ms from the address of %s: the connections that used "
		 "some end, new ones are refused for %u ms",
		 SOURCE_WRONG_MAX, SOURCE_WINDOW_MS, text, SOURCE_REFUSED_MS);
	LIST_EACH_OF (struct peer, other, &worker->conn.peers_list, conn.in_worker) {
		if (other->conn.source == source && other->conn.wrong_key && peer_linked(other))
			peer_expel(other, END_KEYS);
	}
}
