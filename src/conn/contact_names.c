/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * By which names a peer goes. An endpoint that is reached by all addresses of its host tells them in its hello; the address
 * vector may hold any one.
 */
#include "core/av_keys.h"
#include "conn/station.h"

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
