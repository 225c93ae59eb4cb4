/* SPDX-License-Identifier: BSD-2-Clause */
/* An insertion call: begin checks and locks, next inserts one address, end unlocks and reports. */
#ifndef WEFT_CORE_AV_INSERT_H
#define WEFT_CORE_AV_INSERT_H

#include "core/av.h"

struct av_insertion {
	struct av *av;
	size_t count; /* addresses of the call */
	/*
	 * Results, or NULL. With FI_AV_USER_ID it holds the user ids until they are overwritten, with
	 * FI_AUTH_KEY the keys.
	 */
	fi_addr_t *fi_addr;
	uint64_t flags;
	void *context; /* context of events; with FI_SYNC_ERR an array of one int per address */
	size_t next;   /* addresses processed so far */
	size_t inserted;
	int err; /* negative if an error event could not be posted, else 0 */
};

/* Checks everything but the addresses. 0: domain locked; a negative error: not locked. */
int av_insert_begin(struct av_insertion *in);
/* Inserts the next address and takes over its string. `err` (negative): the address could not be read. */
void av_insert_next(struct av_insertion *in, struct addr *a, int err);
/* Posts the completion event and unlocks the domain. Returns what the fi_av call returns. */
int av_insert_end(struct av_insertion *in);

/* fi_av_insert. */
int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr,
	      uint64_t flags, void *context);

/* fi_av_insertsvc: by host and service. May block to resolve names; no lock is held then. */
int av_svc_insert(struct fid_av *fid, const char *node, const char *service, fi_addr_t *fi_addr,
		  uint64_t flags, void *context);

/* fi_av_insertsym: a range of them. May block as av_svc_insert. */
int av_svc_insert_range(struct fid_av *fid, const char *node, size_t nodecnt, const char *service,
			size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context);

#endif
