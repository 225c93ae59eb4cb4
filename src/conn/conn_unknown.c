/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that the address vector does not hold. A process that reaches the port may use as many
 * names as it likes, so FI_WEFT_UNKNOWN_MAX limits them. conn_forget frees those that are
 * disconnected.
 */
#include "base/env.h"
#include "base/log.h"
#include "core/av.h"
#include "conn/conn_own.h"
#include "conn/connect.h"

/*
 * The default: at most so many, and a part of the descriptors that the process does not use for anything else, so that known
 * peers find some left.
 */
#define DEFAULT_MOST 4096u
#define PARTS        4

/* Descriptors of connections, and those that there could be. */
static size_t conn_unknown_descriptors(const struct station *station)
{
	size_t n = connect_left() + station->acceptor.count;

	LIST_EACH_OF (const struct contact, peer, &station->peers_list, in_station) {
		n += contact_linked(peer) || contact_attempts(peer);
	}
	return n;
}

static size_t conn_unknown_most(const struct station *station)
{
	size_t n = env_get()->unknown_max;

	if (n)
		return n;
	n = conn_unknown_descriptors(station);
	n -= n / PARTS;
	return n < DEFAULT_MOST ? n : DEFAULT_MOST;
}

/* The relay is kept while it is not connected, too. */
static bool is_kept_relay(const struct contact *peer)
{
	return peer == peer->station->relay.peer && peer->state == PEER_IDLE;
}

/*
 * Returns how many peers beside `newcomer` the address vector did not hold when they were looked up
 * last.
 */
static size_t conn_unknown_count(const struct contact *newcomer)
{
	size_t n = 0;

	LIST_EACH_OF (const struct contact, peer, &newcomer->station->peers_list, in_station) {
		n += peer != newcomer && peer->addr == FI_ADDR_NOTAVAIL && !is_kept_relay(peer);
	}
	return n;
}

/* Peers may have been inserted into the address vector after they connected. */
static void conn_unknown_look_up(struct station *station)
{
	uint64_t version = station->av ? av_version(station->av) : 0;

	if (version == station->unknown.seen_av)
		return;
	station->unknown.seen_av = version;
	LIST_EACH (node, &station->peers_list)
		contact_addr(LIST_ENTRY(node, struct contact, in_station));
}

bool conn_has_place(struct contact *newcomer)
{
	struct station *station = newcomer->station;
	char text[ADDR_STR_MAX + 32];

	if (contact_addr(newcomer) != FI_ADDR_NOTAVAIL ||
	    conn_unknown_count(newcomer) < conn_unknown_most(station))
		return true;
	conn_unknown_look_up(station);
	if (conn_unknown_count(newcomer) < conn_unknown_most(station))
		return true;
	station->unknown.refused++;
	addr_print(&newcomer->name, text, sizeof(text));
	LOG_PEER(LOG_EP_CTRL,
		 "%s is refused: %zu peers are connected that the address vector does not "
		 "hold (FI_WEFT_UNKNOWN_MAX=%zu); %llu were refused so far",
		 text, conn_unknown_count(newcomer), env_get()->unknown_max,
		 (unsigned long long)station->unknown.refused);
	return false;
}
