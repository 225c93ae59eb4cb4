/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joint copies: both processes copy one long range by CMA, a core each. The owner of the copy offers it to the peer,
 * and begins at the front; a peer that makes a progress call meanwhile begins at the end. Both take one chunk after the
 * other, by a word in the page of the owner's ring. A peer that does not come costs the owner nothing but the offer.
 */
#ifndef WEFT_HW_SHM_JOINT_H
#define WEFT_HW_SHM_JOINT_H

#include "hw/shm/shm_guard.h"
#include "link/link.h"

#define SHM_JOINT_MIN 65536u              /* bytes: a shorter copy takes one of them as long */
#define SHM_JOINT_MAX (UINT64_C(1) << 33) /* bytes: the words count chunks in 16 bits */

/* The word of the chunks that nobody has taken: number of the copy, first chunk, and the one behind the last. */
static inline uint64_t left_word(uint32_t seq, uint32_t first, uint32_t end)
{
	return (uint64_t)seq << 32 | first << 16 | end;
}

static inline uint32_t left_first(uint64_t word)
{
	return word >> 16 & 0xffff;
}

static inline uint32_t left_end(uint64_t word)
{
	return word & 0xffff;
}

/* The peer's word: number of the copy, has a chunk failed, chunks done from the last one down. */
#define HELP_FAILED 0x80000000u

static inline uint64_t help_word(uint32_t seq, uint32_t done)
{
	return (uint64_t)seq << 32 | done;
}

struct shm;
struct shm_link;
struct opener;
struct packet;

/* A copy between `len` bytes of our memory and of the peer's, by both processes. */
struct joint_copy {
	void *local;
	uint64_t remote, key; /* region: as in fi_rma_iov; else an address in the peer's process */
	size_t len;
	bool write, region; /* from us to the peer; in a region, else in a message to us */
};

/* The part of a joint copy's other process. */
struct joint_help {
	struct joint_copy copy; /* as we see it; `remote` is an address */
	uint32_t seq, chunk;    /* as in struct wire_joint */
};

/* Of a worker: the copy that it owns, one at a time. */
struct shm_joint {
	struct shm_link *link; /* to the peer; NULL: no copy is under way */
	uint64_t id;           /* as in link_copy */
	struct joint_copy copy;
	uint64_t address; /* of the peer's memory, as in fi_rma_iov */
	uint32_t seq;     /* number of the copy */
	uint32_t chunk;   /* bytes, but for the last one */
	uint32_t chunks;  /* their number */
	uint32_t end;     /* chunks from here on are the peer's */
	int err;          /* of our part */
	bool counted;     /* the peer counts such accesses */
	bool under_way;   /* progress calls tell the engine its end */
};

/* As link_memory_ops.copy; any error but -FI_EFAULT in a region: copy alone. */
int shm_joint_copy(struct shm_link *s, const struct link_copy *copy);
/* Looks whether the peer has done its part of the copy under way. */
void shm_joint_progress(struct shm *shm);
/* The copy under way, if it is with this peer, is forgotten: the link will be closed. */
void shm_joint_abandon(struct link *link);
/* Hears WIRE_JOINT: takes part in a copy that the peer has offered. */
void shm_joint_hear(struct opener *o, uint32_t src, const struct packet *p);

/*
 * The steps of these. shm_joint_begin and shm_joint_ended return 0, 1 (done; the peer counts such accesses), an error,
 * or -FI_EINPROGRESS: the peer still copies a part.
 */
int shm_joint_begin(struct link *link, const struct joint_copy *copy);
int shm_joint_ended(struct link *link);
void shm_joint_help(struct link *link, const struct joint_help *help);

#endif
