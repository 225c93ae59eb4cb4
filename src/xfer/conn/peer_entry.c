/* SPDX-License-Identifier: BSD-2-Clause */
/* Which peer is in which entry of the address vector. */
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "core/av_keys.h"
#include "core/ep.h"
#include "xfer/conn/conn.h"
#include "xfer/worker.h"

int peer_reserve(struct worker *worker, fi_addr_t addr)
{
	size_t count = worker->conn.peer_count ? worker->conn.peer_count : 16;
	struct peer **peers;

	if (addr < worker->conn.peer_count)
		return 0;
	while (count <= addr)
		count *= 2;
	peers = realloc(worker->conn.peers, count * sizeof(*peers));
	if (!peers)
		return -FI_ENOMEM;
	for (size_t i = worker->conn.peer_count; i < count; i++)
		peers[i] = &peer_nobody;
	worker->conn.peers = peers;
	worker->conn.peer_count = count;
	return 0;
}

/* Returns the peer of this name and key, else one in no entry that has told this address of it, or NULL. */
static struct peer *peer_entry_find_peer(struct worker *worker, const struct addr *name,
					 unsigned int key_slot)
{
	struct addr key = addr_unmapped(name);
	struct peer *other = NULL;

	LIST_EACH_OF (struct peer, peer, &worker->conn.peers_list, conn.in_worker) {
		if (peer->conn.key_slot != key_slot)
			continue;
		if (addr_equal(&peer->conn.key, &key))
			return peer;
		if (peer->conn.addr == FI_ADDR_NOTAVAIL && peer_also_has(peer->conn.also, &key))
			other = peer;
	}
	return other;
}

struct peer *peer_find(struct worker *worker, const struct addr *key, unsigned int key_slot)
{
	LIST_EACH_OF (struct peer, peer, &worker->conn.peers_list, conn.in_worker) {
		if (addr_equal(&peer->conn.key, key) && peer->conn.key_slot == key_slot)
			return peer;
	}
	return NULL;
}

struct peer *peer_by_name(struct worker *worker, const struct addr *name, unsigned int key_slot)
{
	struct addr key = addr_unmapped(name);
	struct peer *peer = peer_find(worker, &key, key_slot);

	if (peer)
		return peer;
	peer = peer_new(worker, name);
	if (peer)
		peer->conn.key_slot = key_slot;
	return peer;
}

int peer_rename(struct peer *peer, const struct addr *name)
{
	struct addr copy;

	if (addr_dup(&copy, name))
		return -FI_ENOMEM;
	addr_free(&peer->conn.name);
	peer->conn.name = copy;
	peer->conn.key = addr_unmapped(&copy);
	return 0;
}

/* The peer is in this entry now, whose address is the one to connect to, unless another process has removed it from a shared vector. */
static void peer_entry_take_name(struct peer *peer, fi_addr_t entry)
{
	const struct addr *name = av_addr(peer->conn.worker->conn.av, entry);
	struct addr key = name ? addr_unmapped(name) : peer->conn.key;

	if (!addr_equal(&key, &peer->conn.key))
		peer_rename(peer, name);
}

/* Enters the peer in worker->conn.peers, unless another peer has the entry. */
static void peer_entry_enter(struct peer *peer, fi_addr_t addr)
{
	if (peer->conn.worker->conn.peers[addr] != &peer_nobody)
		return;
	peer->conn.worker->conn.peers[addr] = peer;
	peer->conn.named++;
}

void peer_hand_over(struct peer *peer, struct peer *other)
{
	struct worker *worker = peer->conn.worker;

	for (size_t i = 0; i < worker->conn.peer_count; i++) {
		if (worker->conn.peers[i] != peer)
			continue;
		worker->conn.peers[i] = &peer_nobody;
		peer->conn.named--;
		peer_entry_enter(other, i);
	}
	peer->conn.addr = peer->conn.reported = FI_ADDR_NOTAVAIL;
}

struct peer *peer_get(struct worker *worker, fi_addr_t addr)
{
	const struct addr *name;
	unsigned int key_slot;
	struct peer *peer;

	if (addr < worker->conn.peer_count && worker->conn.peers[addr] != &peer_nobody)
		return worker->conn.peers[addr];
	name = worker->conn.av ? av_addr(worker->conn.av, addr) : NULL;
	if (!name || peer_reserve(worker, addr))
		return NULL;
	key_slot = av_keys_of(worker->conn.av, addr);
	peer = peer_entry_find_peer(worker, name, key_slot);
	if (!peer)
		peer = peer_by_name(worker, name, key_slot);
	if (!peer)
		return NULL;
	if (peer->conn.addr == FI_ADDR_NOTAVAIL) {
		peer->conn.addr = addr;
		peer_entry_take_name(peer, addr);
	}
	peer_entry_enter(peer, addr);
	/*
	 * The connection may be to an earlier peer of this address, whose disconnect message we
	 * have not read.
	 */
	if (peer->conn.state == PEER_CONNECTED && !worker->conn.in_progress && conn_poll(worker) &&
	    worker->conn.opener.sleepers)
		worker_wake(worker);
	return peer;
}

int peer_missing(const struct ep *ep, fi_addr_t addr, const char *call)
{
	struct av *av = ep->worker->conn.av;

	if (av && av_addr(av, addr & ep->addr_mask)) {
		LOG_WARN(LOG_EP_DATA, "%s: out of memory for the peer of fi_addr %#llx", call,
			 (unsigned long long)addr);
		return -FI_ENOMEM;
	}
	LOG_WARN(
		LOG_EP_DATA,
		"%s: fi_addr %#llx is not in the address vector: fi_av_insert returns those that are",
		call, (unsigned long long)addr);
	return -FI_EINVAL;
}

fi_addr_t peer_addr_lookup(struct peer *peer)
{
	struct av *av = peer->conn.worker->conn.av;
	/* Before the search: another process may insert meanwhile. */
	uint64_t version = av ? av_version(av) + 1 : 0;
	fi_addr_t addr;

	if (!av || peer->conn.unknown_at == version)
		return FI_ADDR_NOTAVAIL;
	addr = peer_entry(peer->conn.worker, &peer->conn.name, peer->conn.also,
			  peer->conn.key_slot);
	if (addr == FI_ADDR_NOTAVAIL)
		peer->conn.unknown_at = version;
	if (addr == FI_ADDR_NOTAVAIL || peer_reserve(peer->conn.worker, addr))
		return addr;
	peer_entry_enter(peer, addr);
	/*
	 * Only the peer in worker->conn.peers notes its entry, so that removing the entry finds the
	 * peer. With a link to ourselves there are two peers of one name.
	 */
	if (peer->conn.worker->conn.peers[addr] != peer)
		return addr;
	peer->conn.addr = addr;
	peer_entry_take_name(peer, addr);
	return addr;
}

fi_addr_t peer_reported_lookup(struct peer *peer)
{
	fi_addr_t addr = peer_addr(peer), id;

	if (addr == FI_ADDR_NOTAVAIL)
		return addr;
	id = av_user_id(peer->conn.worker->conn.av, addr);
	if (peer->conn.addr == addr && !peer_expelled(peer))
		peer->conn.reported = id;
	return id;
}

fi_addr_t peer_reported_key(const struct peer *peer)
{
	struct av *av = peer->conn.worker->conn.av;

	return av ? av_keys_reported(av, peer->conn.key_slot) : FI_ADDR_NOTAVAIL;
}
