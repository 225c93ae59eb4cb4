/* SPDX-License-Identifier: BSD-2-Clause */
/* Which peer is in which entry of the address vector. */
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "conn/conn.h"
#include "conn/station.h"
#include "core/av_keys.h"

int contact_reserve(struct station *station, fi_addr_t addr)
{
	size_t count = station->peer_count ? station->peer_count : 16;
	struct contact **peers;

	if (addr < station->peer_count)
		return 0;
	while (count <= addr)
		count *= 2;
	peers = realloc(station->peers, count * sizeof(*peers));
	if (!peers)
		return -FI_ENOMEM;
	for (size_t i = station->peer_count; i < count; i++)
		peers[i] = station->nobody;
	station->peers = peers;
	station->peer_count = count;
	return 0;
}

/* Returns the peer of this name and key, else one in no entry that has told this address of it, or NULL. */
static struct contact *peer_entry_find_peer(struct station *station, const struct addr *name,
					    unsigned int key_slot)
{
	struct addr key = addr_unmapped(name);
	struct contact *other = NULL;

	LIST_EACH_OF (struct contact, peer, &station->peers_list, in_station) {
		if (peer->key_slot != key_slot)
			continue;
		if (addr_equal(&peer->key, &key))
			return peer;
		if (peer->addr == FI_ADDR_NOTAVAIL && contact_also_has(peer->also, &key))
			other = peer;
	}
	return other;
}

struct contact *contact_find(struct station *station, const struct addr *key, unsigned int key_slot)
{
	LIST_EACH_OF (struct contact, peer, &station->peers_list, in_station) {
		if (addr_equal(&peer->key, key) && peer->key_slot == key_slot)
			return peer;
	}
	return NULL;
}

struct contact *contact_by_name(struct station *station, const struct addr *name,
				unsigned int key_slot)
{
	struct addr key = addr_unmapped(name);
	struct contact *peer = contact_find(station, &key, key_slot);

	if (peer)
		return peer;
	peer = contact_new(station, name);
	if (peer)
		peer->key_slot = key_slot;
	return peer;
}

int contact_rename(struct contact *peer, const struct addr *name)
{
	struct addr copy;

	if (addr_dup(&copy, name))
		return -FI_ENOMEM;
	addr_free(&peer->name);
	peer->name = copy;
	peer->key = addr_unmapped(&copy);
	return 0;
}

/* The peer is in this entry now, whose address is the one to connect to, unless another process has removed it from a shared vector. */
static void peer_entry_take_name(struct contact *peer, fi_addr_t entry)
{
	const struct addr *name = av_addr(peer->station->av, entry);
	struct addr key = name ? addr_unmapped(name) : peer->key;

	if (!addr_equal(&key, &peer->key))
		contact_rename(peer, name);
}

/* Enters the peer in station->peers, unless another peer has the entry. */
static void peer_entry_enter(struct contact *peer, fi_addr_t addr)
{
	if (peer->station->peers[addr] != peer->station->nobody)
		return;
	peer->station->peers[addr] = peer;
	peer->named++;
}

void contact_hand_over(struct contact *peer, struct contact *other)
{
	struct station *station = peer->station;

	for (size_t i = 0; i < station->peer_count; i++) {
		if (station->peers[i] != peer)
			continue;
		station->peers[i] = station->nobody;
		peer->named--;
		peer_entry_enter(other, i);
	}
	peer->addr = peer->reported = FI_ADDR_NOTAVAIL;
}

struct contact *contact_get(struct station *station, fi_addr_t addr)
{
	const struct addr *name;
	unsigned int key_slot;
	struct contact *peer;

	if (addr < station->peer_count && station->peers[addr] != station->nobody)
		return station->peers[addr];
	name = station->av ? av_addr(station->av, addr) : NULL;
	if (!name || contact_reserve(station, addr))
		return NULL;
	key_slot = av_keys_of(station->av, addr);
	peer = peer_entry_find_peer(station, name, key_slot);
	if (!peer)
		peer = contact_by_name(station, name, key_slot);
	if (!peer)
		return NULL;
	if (peer->addr == FI_ADDR_NOTAVAIL) {
		peer->addr = addr;
		peer_entry_take_name(peer, addr);
	}
	peer_entry_enter(peer, addr);
	/* The connection may be to an earlier peer of this address, whose disconnect message we have not read. */
	if (peer->state == PEER_CONNECTED && !station->in_progress && conn_poll(station) &&
	    station->opener.sleepers)
		station_wake(station);
	return peer;
}

fi_addr_t contact_addr_lookup(struct contact *peer)
{
	struct av *av = peer->station->av;
	/* Before the search: another process may insert meanwhile. */
	uint64_t version = av ? av_version(av) + 1 : 0;
	fi_addr_t addr;

	if (!av || peer->unknown_at == version)
		return FI_ADDR_NOTAVAIL;
	addr = contact_entry(peer->station, &peer->name, peer->also, peer->key_slot);
	if (addr == FI_ADDR_NOTAVAIL)
		peer->unknown_at = version;
	if (addr == FI_ADDR_NOTAVAIL || contact_reserve(peer->station, addr))
		return addr;
	peer_entry_enter(peer, addr);
	/*
	 * Only the peer in station->peers notes its entry, so that removing the entry finds the
	 * peer. With a link to ourselves there are two peers of one name.
	 */
	if (peer->station->peers[addr] != peer)
		return addr;
	peer->addr = addr;
	peer_entry_take_name(peer, addr);
	return addr;
}

fi_addr_t contact_reported_lookup(struct contact *peer)
{
	fi_addr_t addr = contact_addr(peer), id;

	if (addr == FI_ADDR_NOTAVAIL)
		return addr;
	id = av_user_id(peer->station->av, addr);
	if (peer->addr == addr && !contact_expelled(peer))
		peer->reported = id;
	return id;
}

fi_addr_t contact_reported_key(const struct contact *peer)
{
	struct av *av = peer->station->av;

	return av ? av_keys_reported(av, peer->key_slot) : FI_ADDR_NOTAVAIL;
}

/* ---- By which names a peer goes ----
 *
 * An endpoint that is reached by all addresses of its host tells them in its hello; the vector may hold any one.
 */

const char *contact_text(const struct contact *peer)
{
	static __thread char text[ADDR_STR_MAX + 32];

	addr_print(&peer->name, text, sizeof(text));
	return text;
}

static bool stands_for(const struct addr *one, const struct addr *key)
{
	if (!addr_is_loopback(one))
		return addr_equal(one, key);
	return key->port == one->port && (key->kind == ADDR_IN || key->kind == one->kind) &&
	       addr_is_local(key);
}

bool contact_also_has(const struct peer_also *also, const struct addr *key)
{
	for (unsigned int i = 0; also && i < also->count; i++)
		if (stands_for(&also->at[i], key))
			return true;
	return false;
}

/* A vector of IPv6 addresses has IPv4 ones mapped. */
static fi_addr_t find_entry(struct station *station, const struct addr *name, unsigned int key_slot)
{
	struct addr key = addr_unmapped(name), mapped = *name;
	fi_addr_t entry;

	addr_map(&mapped, station->name.kind);
	entry = av_find(station->av, &mapped, key_slot);
	return entry != FI_ADDR_NOTAVAIL ? entry : av_find(station->av, &key, key_slot);
}

/* All addresses of this host are too many to look for each. */
static fi_addr_t find_entry_here(struct station *station, const struct peer_also *also,
				 unsigned int key_slot)
{
	for (fi_addr_t i = 0; i < av_count(station->av); i++) {
		const struct addr *name = av_addr(station->av, i);
		struct addr key = name ? addr_unmapped(name) : (struct addr){.kind = ADDR_NONE};

		if (contact_also_has(also, &key) && av_keys_of(station->av, i) == key_slot)
			return i;
	}
	return FI_ADDR_NOTAVAIL;
}

fi_addr_t contact_entry(struct station *station, const struct addr *name,
			const struct peer_also *also, unsigned int key_slot)
{
	fi_addr_t entry = station->av ? find_entry(station, name, key_slot) : FI_ADDR_NOTAVAIL;

	for (unsigned int i = 0; station->av && also && i < also->count; i++) {
		if (entry != FI_ADDR_NOTAVAIL)
			break;
		entry = addr_is_loopback(&also->at[i])
				? find_entry_here(station, also, key_slot)
				: find_entry(station, &also->at[i], key_slot);
	}
	return entry;
}
