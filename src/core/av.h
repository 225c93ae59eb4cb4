/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address vectors, guarded by the domain's lock. fi_av(3).
 *
 * The fi_addr_t of an entry is its index, for FI_AV_MAP as for FI_AV_TABLE. An address that is inserted several times
 * keeps one index until the application has removed it as many times.
 *
 * Vectors with a name share their entries with the vectors of that name in other processes, if the domains have the
 * same name too: an index means the same entry in all of them. FI_READ opens the entries read-only. User ids stay with
 * the process. A removal notifies the workers of this domain; other processes keep their connections to the peer.
 */
#ifndef WEFT_CORE_AV_H
#define WEFT_CORE_AV_H

#include <rdma/fi_domain.h>

#include "base/addr.h"
#include "core/domain.h"

/* Limit of fi_addr_t bits that name a receive context. An entry's index takes at most 32 bits. */
#define AV_RX_CTX_BITS_MAX 16

struct av_keys;
struct av_store;
struct eq;

struct av {
	struct fid_av fid;
	struct domain *dom;
	uint32_t format;      /* provider_format of the domain's info */
	enum fi_av_type type; /* FI_AV_MAP or FI_AV_TABLE; FI_AV_UNSPEC only before av_store_join */
	uint64_t flags;       /* fi_av_attr.flags */
	int rx_ctx_bits;
	struct list workers;    /* struct worker.in_av: bound workers, notified of removals */
	struct eq *eq;          /* bound for the events of an FI_EVENT vector, or NULL */
	int ref;                /* atomic: bound endpoints and sets */
	struct av_store *store; /* holds the entries; vectors of one name may share it */
	struct list in_store;
	struct av_keys *keys; /* NULL: the domain has no FI_AV_AUTH_KEY */
};

static inline struct av *av_of(struct fid_av *fid)
{
	return (struct av *)fid;
}

int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);

/* Returns the entry's index: `fi_addr` without its receive context. */
static inline fi_addr_t av_index(const struct av *av, fi_addr_t fi_addr)
{
	return fi_addr & ~(uint64_t)0 >> av->rx_ctx_bits;
}

/*
 * Returns the address of the entry, or NULL if there is none. The pointer is valid until the lock
 * is released or av_addr is called again.
 */
const struct addr *av_addr(const struct av *av, fi_addr_t index);

/*
 * Returns the index of the entry with this address, or FI_ADDR_NOTAVAIL. In a vector with keys it is that of the key in
 * slot `key`.
 */
fi_addr_t av_find(struct av *av, const struct addr *addr, unsigned int key);

/* Returns how many indexes were handed out so far, holes included. */
size_t av_count(const struct av *av);

/* Was the existing entry inserted with FI_FIREWALL_ADDR: can only its endpoint connect to us? */
bool av_firewalled(const struct av *av, fi_addr_t index);

/* Returns a number that differs after each insertion into the vector. */
uint64_t av_version(const struct av *av);

/* Returns the source that completions report: the entry's user id, if one is set, or `fi_addr`. */
fi_addr_t av_user_id(struct av *av, fi_addr_t fi_addr);

#endif
