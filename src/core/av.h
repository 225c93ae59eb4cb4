/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address vectors. Under the domain's lock. fi_av(3).
 *
 * The fi_addr_t of an entry is its index whatever the type of the vector. An address has one index
 * however often it is inserted, and keeps it until it was removed as often. Vectors of one name share their entries with those of other processes on a domain of that name, so indexes
 * mean the same everywhere: writable to those who opened them so, read-only with FI_READ. User ids
 * stay with the process. A removal is told to the workers of this domain; others that talk to the
 * peer go on.
 */
#ifndef WEFT_CORE_AV_H
#define WEFT_CORE_AV_H

#include <rdma/fi_domain.h>

#include "base/addr.h"
#include "core/domain.h"

/* fi_addr_t bits that may name a receive context; the entries take 32 at most. */
#define AV_RX_CTX_BITS_MAX 16

struct av_store;
struct eq;

struct av {
	struct fid_av fid;
	struct domain *dom;
	uint32_t format;      /* provider_format of the domain's info */
	enum fi_av_type type; /* FI_AV_MAP or FI_AV_TABLE; as asked until the store is there */
	uint64_t flags;       /* of fi_av_open */
	int rx_ctx_bits;
	struct list workers;    /* struct worker.in_av: told when an entry goes away */
	struct eq *eq;          /* FI_EVENT */
	int ref;                /* atomic: endpoints bound, sets */
	struct av_store *store; /* the entries; vectors of one name share it */
	struct list in_store;
};

static inline struct av *av_of(struct fid_av *fid)
{
	return (struct av *)fid;
}

int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);

/* A fi_addr_t without its receive context. */
static inline fi_addr_t av_index(const struct av *av, fi_addr_t fi_addr)
{
	return fi_addr & ~(uint64_t)0 >> av->rx_ctx_bits;
}

/* The address of an entry (by index), or NULL when there is none. Good until the lock is
 * given, or another is asked for. */
const struct addr *av_addr(const struct av *av, fi_addr_t index);

/* The entry with this address, or FI_ADDR_NOTAVAIL. */
fi_addr_t av_find(struct av *av, const struct addr *addr);

/* What completions report for this entry: the user id where one was given, else fi_addr. */
fi_addr_t av_user_id(struct av *av, fi_addr_t fi_addr);

/* In the engine: the entry is about to go, worker_forget for each of av->workers. Domain locked. */
void worker_forget_entry(struct av *av, fi_addr_t index);

#endif
