/* SPDX-License-Identifier: BSD-2-Clause */
/* What a station does about network addresses whose peers try keys. */
#include "base/clock.h"
#include "base/log.h"
#include "conn/conn.h"

void conn_wrong_key(struct contact *peer, uint64_t key)
{
	struct station *station = peer->station;
	uint64_t now = clock_coarse_ms(), source = peer->source;
	char text[ADDR_STR_MAX + 32];

	peer->wrong_key = true;
	if (!source_wrong_key(&station->sources, source, key, now)) {
		if (source_refused(&station->sources, source, now))
			contact_expel(peer, END_KEYS);
		return;
	}
	addr_print(&peer->name, text, sizeof(text));
	LOG_PEER(LOG_EP_DATA,
		 "%u wrong keys within %u ms from the address of %s: the connections that used "
		 "some end, new ones are refused for %u ms",
		 SOURCE_WRONG_MAX, SOURCE_WINDOW_MS, text, SOURCE_REFUSED_MS);
	LIST_EACH_OF (struct contact, other, &station->peers_list, in_station) {
		if (other->source == source && other->wrong_key && contact_linked(other))
			contact_expel(other, END_KEYS);
	}
}
