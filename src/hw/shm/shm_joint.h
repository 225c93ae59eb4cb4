/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joint copies: both processes copy one long range by CMA, a core each. The owner of the copy offers
 * it to the peer, and begins at the front; a peer that makes a progress call meanwhile begins at the
 * end. Both take one chunk after the other, by a word in the page of the owner's ring. A peer that
 * does not come costs the owner nothing but the offer.
 */
#ifndef WEFT_HW_SHM_JOINT_H
#define WEFT_HW_SHM_JOINT_H

#include "hw/shm/shm_guard.h"
#include "link/link.h"

#define SHM_JOINT_MIN 65536u              /* bytes: a shorter copy takes one of them as long */
#define SHM_JOINT_MAX (UINT64_C(1) << 33) /* bytes: the words count chunks in 16 bits */

struct shm_link;

/* Of a worker: the copy that it owns, one at a time. */
struct shm_joint {
	struct shm_link *link; /* to the peer; NULL: no copy is under way */
	struct link_joint copy;
	uint64_t address; /* of the peer's memory, as in fi_rma_iov */
	uint32_t seq;     /* number of the copy */
	uint32_t chunk;   /* bytes, but for the last one */
	uint32_t chunks;  /* their number */
	uint32_t end;     /* chunks from here on are the peer's */
	int err;          /* of our part */
	bool counted;     /* the peer counts such accesses */
};

int shm_joint_begin(struct link *link, const struct link_joint *copy);
int shm_joint_ended(struct link *link);
void shm_joint_abandon(struct link *link);
void shm_joint_help(struct link *link, const struct link_help *help);

#endif
