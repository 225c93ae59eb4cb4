/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that the address vector does not hold. A process that reaches the port may use as many
 * names as it likes, so FI_WEFT_UNKNOWN_MAX limits them. conn_forget frees those that are
 * disconnected.
 */
#include "base/env.h"
#include "base/log.h"
#include "core/av.h"
#include "xfer/conn/conn_own.h"
#include "xfer/conn/connect.h"

/*
 * The default: at most so many, and a part of the descriptors that the process does not use for anything else, so that known
 * peers find some left.
 */
#define DEFAULT_MOST 4096u
#define PARTS        4

/* Descriptors of connections, and those that there could be. */
static size_t conn_unknown_descriptors(const struct worker *worker)
{
	size_t n = connect_left() + worker->conn.acceptor.count;

	LIST_EACH_OF (const struct peer, peer, &worker->conn.peers_list, conn.in_worker) {
		n += peer_linked(peer) || peer_attempts(peer);
	}
	return n;
}

static size_t conn_unknown_most(const struct worker *worker)
{
	size_t n = env_get()->unknown_max;

	if (n)
		return n;
	n = conn_unknown_descriptors(worker);
	n -= n / PARTS;
	return n < DEFAULT_MOST ? n : DEFAULT_MOST;
}

/* The relay is kept while it is not connected, too. */
static bool is_kept_relay(const struct peer *peer)
{
	return peer == peer->conn.worker->conn.relay.peer && peer->conn.state == PEER_IDLE;
}

/*
 * Returns how many peers beside `newcomer` the address vector did not hold when they were looked up
 * last.
 */
static size_t conn_unknown_count(const struct peer *newcomer)
{
	size_t n = 0;

	LIST_EACH_OF (const struct peer, peer, &newcomer->conn.worker->conn.peers_list,
		      conn.in_worker) {
		n += peer != newcomer && peer->conn.addr == FI_ADDR_NOTAVAIL &&
		     !is_kept_relay(peer);
	}
	return n;
}

/* Peers may have been inserted into the address vector after they connected. */
static void conn_unknown_look_up(struct worker *worker)
{
	uint64_t version = worker->conn.av ? av_version(worker->conn.av) : 0;

	if (version == worker->conn.unknown.seen_av)
		return;
	worker->conn.unknown.seen_av = version;
	LIST_EACH (node, &worker->conn.peers_list)
		peer_addr(LIST_ENTRY(node, struct peer, conn.in_worker));
}

bool conn_has_place(struct peer *newcomer)
{
	struct worker *worker = newcomer->conn.worker;
	char text[ADDR_STR_MAX + 32];

	if (peer_addr(newcomer) != FI_ADDR_NOTAVAIL ||
	    conn_unknown_count(newcomer) < conn_unknown_most(worker))
		return true;
	conn_unknown_look_up(worker);
	if (conn_unknown_count(newcomer) < conn_unknown_most(worker))
		return true;
	worker->conn.unknown.refused++;
	addr_print(&newcomer->conn.name, text, sizeof(text));
	LOG_PEER(LOG_EP_CTRL,
		 "%s is refused: %zu peers are connected that the address vector does not "
		 "hold (FI_WEFT_UNKNOWN_MAX=%zu); %llu were refused so far",
		 text, conn_unknown_count(newcomer), env_get()->unknown_max,
		 (unsigned long long)worker->conn.unknown.refused);
	return false;
}
