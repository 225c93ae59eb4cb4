/* SPDX-License-Identifier: BSD-2-Clause */
/* Ordered subsets of an address vector: the members of a collective group. fi_av_set(3). */
#ifndef WEFT_CORE_AV_SET_H
#define WEFT_CORE_AV_SET_H

#include <rdma/fi_collective.h>

#include "core/av.h"

/* FI_*_SET flags, one for each collective. */
#define AV_SET_COLLECTIVES                                                                         \
	(FI_BARRIER_SET | FI_BROADCAST_SET | FI_ALLTOALL_SET | FI_ALLREDUCE_SET |                  \
	 FI_ALLGATHER_SET | FI_REDUCE_SCATTER_SET | FI_REDUCE_SET | FI_SCATTER_SET |               \
	 FI_GATHER_SET)

/* Ordered members of a set, shared with the groups that were formed from the set. */
struct av_members {
	int ref;
	size_t count;
	size_t capacity;
	fi_addr_t addr[]; /* indexes of entries, each once */
};

/* Guarded by the domain's lock. */
struct av_set {
	struct fid_av_set fid;
	struct av *av;
	struct av_members *members; /* copied before a change if a group shares it; NULL: empty */
	uint64_t *in;               /* bitmap by index: is the entry a member? */
	size_t in_words;            /* words of `in`; entries beyond are no members */
	uint64_t flags;             /* fi_av_set_attr.flags */
	void *comm_key;             /* our copy, or NULL */
	size_t comm_key_size;
	uint64_t number;       /* unique in the domain; part of the set's collective address */
	struct list in_domain; /* dom->sets */
};

static inline struct av_set *av_set_of(struct fid_av_set *fid)
{
	return (struct av_set *)fid;
}

/* Returns the domain's set with this collective address (of fi_av_set_addr), or NULL. Domain locked. */
struct av_set *av_set_find(struct domain *dom, fi_addr_t coll_addr);
/*
 * Returns a reference to the set's present members; NULL: the set is empty. Release it by
 * av_members_put. Domain locked.
 */
struct av_members *av_set_members(struct av_set *set);
void av_members_put(struct av_members *members);

int av_set_open(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set,
		void *context);

#endif
