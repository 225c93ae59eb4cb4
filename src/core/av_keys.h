/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authorization keys of an address vector whose domain has FI_AV_AUTH_KEY: each entry has one of them. Domain locked,
 * but for the calls of the application. fi_av(3).
 *
 * An endpoint has the keys that are there when it is enabled, by their slots; a slot is not used for another key before
 * such endpoints are closed.
 */
#ifndef WEFT_CORE_AV_KEYS_H
#define WEFT_CORE_AV_KEYS_H

#include "core/av.h"
#include "info/job_key.h"

struct av_keys {
	struct job_key keys[JOB_KEYS_MAX]; /* by slot; len 0: free */
	struct {
		unsigned int uses;      /* insertions of the key */
		unsigned int endpoints; /* enabled with it */
		fi_addr_t id;           /* reported for it: its fi_addr_t or the application's */
	} of[JOB_KEYS_MAX];
	unsigned int max; /* keys at a time, at most JOB_KEYS_MAX */
	uint8_t *slots;   /* by entry: slot of its key */
	size_t slot_count;
};

/* Makes av->keys if the domain has FI_AV_AUTH_KEY. 0, -FI_ENOMEM; -FI_EOPNOTSUPP: a named vector. */
int av_keys_open(struct av *av, const char *name);
void av_keys_close(struct av *av);

/* fi_av_insert_auth_key, fi_av_lookup_auth_key. */
int av_keys_insert(struct fid_av *fid, const void *bytes, size_t size, fi_addr_t *fi_addr,
		   uint64_t flags);
int av_keys_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *bytes, size_t *size);
/* Removes a key. 0; -FI_EINVAL: there is none; -FI_EBUSY: an endpoint or an entry has it. */
int av_keys_remove(struct av *av, fi_addr_t fi_addr);
/* Sets the id that is reported for a key. 0 or -FI_EINVAL. */
int av_keys_set_id(struct av *av, fi_addr_t fi_addr, fi_addr_t id);

/* The slot of the key with this fi_addr_t; -FI_EINVAL: none. */
int av_keys_slot(const struct av *av, fi_addr_t fi_addr);
/* Gives an entry its key; the id of a new one is not set yet (FI_AV_USER_ID). 0 or -FI_ENOMEM. */
int av_keys_assign(struct av *av, uint32_t index, unsigned int slot);
/* The entry is removed. */
void av_keys_unassign(struct av *av, uint32_t index);
/* The slot of an entry's key; 0 in a vector without keys. */
unsigned int av_keys_of(const struct av *av, fi_addr_t index);
/* What completions report for a peer that is no entry, but has proven the key of this slot. */
fi_addr_t av_keys_reported(const struct av *av, unsigned int slot);

/* Slots that an endpoint which is enabled now has keys of, a bit each; until av_keys_disable. */
uint32_t av_keys_enable(struct av *av);
void av_keys_disable(struct av *av, uint32_t slots);

#endif
