/* SPDX-License-Identifier: BSD-2-Clause */
/* Ordered subsets of an address vector: the members of a collective group. fi_av_set(3). */
#ifndef WEFT_CORE_AV_SET_H
#define WEFT_CORE_AV_SET_H

#include <rdma/fi_collective.h>

#include "core/av.h"

/* FI_*_SET flags: the collectives. */
#define AV_SET_COLLECTIVES                                                                         \
	(FI_BARRIER_SET | FI_BROADCAST_SET | FI_ALLTOALL_SET | FI_ALLREDUCE_SET |                  \
	 FI_ALLGATHER_SET | FI_REDUCE_SCATTER_SET | FI_REDUCE_SET | FI_SCATTER_SET |               \
	 FI_GATHER_SET)

/* The members of a set in their order, shared with the groups that were formed of it. */
struct av_members {
	int ref;
	size_t count;
	size_t capacity;
	fi_addr_t addr[]; /* entries of the vector, each once */
};

/* Under the domain's lock. */
struct av_set {
	struct fid_av_set fid;
	struct av *av;
	struct av_members *members; /* copied before it changes if a group has it, too; or NULL */
	uint64_t *in;               /* a bit for each entry of the vector: is it a member? */
	size_t in_words;            /* entries beyond are no members */
	uint64_t flags;             /* of fi_av_set */
	void *comm_key;             /* ours, or NULL */
	size_t comm_key_size;
	uint64_t number;       /* says which set a collective address means */
	struct list in_domain; /* dom->sets */
};

static inline struct av_set *av_set_of(struct fid_av_set *fid)
{
	return (struct av_set *)fid;
}

/* The set of the domain that fi_av_set_addr gave this address for, or NULL. Domain locked. */
struct av_set *av_set_find(struct domain *dom, fi_addr_t coll_addr);
/* As the set has it now; NULL: no member. Given back with the other. Domain locked. */
struct av_members *av_set_members(struct av_set *set);
void av_members_put(struct av_members *members);

int av_set_open(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set,
		void *context);

#endif
