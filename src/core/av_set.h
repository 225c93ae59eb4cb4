/* SPDX-License-Identifier: BSD-2-Clause */
/* Ordered subsets of an address vector: the members of a collective group. fi_av_set(3). */
#ifndef WEFT_CORE_AV_SET_H
#define WEFT_CORE_AV_SET_H

#include <rdma/fi_collective.h>

#include "core/av.h"

/* FI_*_SET flags of the collectives on offer; none is yet. */
#define AV_SET_OFFERED UINT64_C(0)

/* Under the domain's lock. */
struct av_set {
	struct fid_av_set fid;
	struct av *av;
	fi_addr_t *members; /* in order, each once */
	size_t count;
	size_t capacity;
	uint64_t *in;    /* a bit for each entry of the vector: is it a member? */
	size_t in_words; /* entries beyond are no members */
	uint64_t flags;  /* of fi_av_set */
	void *comm_key;  /* ours, or NULL */
	size_t comm_key_size;
	int ref; /* atomic: groups joined */
};

static inline struct av_set *av_set_of(struct fid_av_set *fid)
{
	return (struct av_set *)fid;
}

int av_set_open(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set,
		void *context);

#endif
