/* SPDX-License-Identifier: BSD-2-Clause */
/* One insertion call: checked, then address by address, then reported as the vector asks for. */
#ifndef WEFT_CORE_AV_INSERT_H
#define WEFT_CORE_AV_INSERT_H

#include "core/av.h"

struct av_insertion {
	struct av *av;
	size_t count;       /* addresses of the call */
	fi_addr_t *fi_addr; /* the caller's, or NULL; user ids until they are overwritten */
	uint64_t flags;
	void *context; /* for events; with FI_SYNC_ERR an int for each address */
	size_t next;   /* addresses dealt with */
	size_t inserted;
	int err; /* an event could not be posted */
};

/* Checks everything but the addresses; on return 0 the domain is locked, else a negative error. */
int av_insert_begin(struct av_insertion *in);
/* The next address, whose string it takes over, or `err` (negative) in its place. */
void av_insert_next(struct av_insertion *in, struct addr *a, int err);
/* Unlocks. What the insertion call returns. */
int av_insert_end(struct av_insertion *in);

/* fi_av_insert. */
int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr,
	      uint64_t flags, void *context);

#endif
