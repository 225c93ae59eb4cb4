/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared-memory transport: one receive ring per worker, one link per peer. */
#ifndef WEFT_HW_SHM_H
#define WEFT_HW_SHM_H

#include "base/trial.h"
#include "core/mr_view.h"
#include "link/cursor.h"
#include "link/link.h"
#include "link/opener.h"
#include "hw/shm/shm_copy.h"
#include "hw/shm/shm_gather.h"
#include "hw/shm/shm_joint.h"
#include "hw/shm/shm_ring.h"
#include "link/wire.h"

struct shm {
	struct opener *opener;
	struct ring ring;
	/* At the head, the next slot to read; from `stop` on the head is published. Runs into the second mapping of the slots. */
	struct link_cursor cursor;
	uint32_t progress_calls; /* calls of shm_progress */
	uint32_t reaped;         /* claims of dead peers that are not skipped yet */
	bool attends;            /* something is looked for that no token tells: shm_attend */
	uint64_t published;      /* the head that is stored in the ring's page */
	struct shm_gather gather;
	int fd; /* memfd of the ring; hellos carry it */
	struct shm_joint joint;
	bool populated;              /* shm_ring_populate was called */
	uint32_t looks;              /* of shm_blocked at an idle ring */
	uint64_t noted[RING_GUARDS]; /* guard words that shm_quiesced waits for */
};

_Static_assert(offsetof(struct shm, published) <= 128,
	       "a progress call looks at the first two cache lines");

struct shm_link {
	struct link link;
	struct ring ring;    /* the peer's receive ring */
	uint64_t next;       /* position after our last claim */
	uint64_t stop;       /* the fast path claims below it: `limit`, or where the lap ends */
	uint64_t lap;        /* of `next`, shifted as in a claim word */
	uint64_t claim;      /* claim word in that lap, without the number of slots */
	uint64_t limit;      /* end of the free slots, by the last head read */
	uint32_t src;        /* our id at the peer */
	uint32_t calls_seen; /* own->progress_calls when our last lap of the peer's ring began */
	struct shm *own;     /* state of the sending worker */
	uint32_t slow;       /* counts claims on the slow path */
	int sock;            /* bootstrap socket, the engine's: one byte wakes the peer */
	pid_t pid;           /* the peer's process, for CMA; 0: CMA is not possible */
	/* For copies into the peer's ring; [1]: of more than SHM_COPY_SINGLE bytes. */
	struct shm_copier copier[2];
	uint64_t looked; /* when the peer was last known to be alive (clock_coarse_ms) */
	struct mr_view regions;
	size_t joint_min;         /* shortest joint copy, in bytes */
	struct trial joint_trial; /* of joint copies: of use if the peer takes a part */
	void *recalled;           /* payload of a cancelled packet: SHM_PACKET_MAX bytes, or NULL */
	int cma_error;            /* positive: why `pid` is 0; 0: no process is known */
};

/* Senders learn of free slots after so many of them: an eighth of the ring. */
static inline uint32_t shm_publish_step(const struct shm *shm)
{
	return (shm->ring.mask + 1) / 8;
}

/* `reaped` or `joint` has changed. */
static inline void shm_attend(struct shm *shm)
{
	shm->attends = shm->reaped || shm->joint.under_way;
}

/* Returns the position of the next slot to read. */
static inline uint64_t shm_head(const struct shm *shm)
{
	return shm->cursor.next - shm->ring.secret;
}

/* Goes on reading at `pos`. */
static inline void shm_set_head(struct shm *shm, uint64_t pos)
{
	shm->cursor.at = ring_slot_at(&shm->ring, pos);
	shm->cursor.next = shm->ring.secret + pos;
	shm->cursor.stop = shm->cursor.at + shm_publish_step(shm);
}

/* Returns the offset of the payload in a packet with this head. */
static inline size_t shm_header_len(uint64_t head)
{
	return offsetof(struct link_slot, rest) + (wire_flags(head) & WIRE_DATA ? 8 : 0);
}

/* A CMA copy between our memory and the peer's, until the shorter side is full. */
struct shm_cma {
	const struct iovec *local, *remote; /* at most WIRE_IOV_MAX each */
	size_t local_count, remote_count;
	bool write;   /* from local to remote */
	size_t moved; /* bytes copied, also after an error */
};

/* Returns 0 or a negative error; -FI_ENOSYS and -FI_EPERM: the kernel never permits CMA. */
int shm_cma_copy(struct shm_link *s, struct shm_cma *c);

/* Prepares the fast path for a claim at `pos`, if the limit is not reached there. */
void shm_expect(struct shm_link *s, uint64_t pos);
int shm_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
	     uint64_t tag);
int shm_sendv(struct link *link, const struct packet *p, const struct iovec *iov, size_t count);

/* Alone, in the peer's regions. As link_memory_ops.copy, which ends within the call. */
int shm_put(struct link *link, const struct iovec *local, size_t local_count,
	    const struct fi_rma_iov *remote, size_t remote_count);
int shm_get(struct link *link, const struct iovec *local, size_t local_count,
	    const struct fi_rma_iov *remote, size_t remote_count);
/* Could all these ranges be accessed right now? */
bool shm_reach(struct link *link, const struct fi_rma_iov *remote, size_t remote_count, bool write);
/*
 * Takes back a WIRE_PUT packet that the peer has not begun to process. `place` is link->last from just after the packet was
 * sent. Until shm_release, which must follow soon, the peer processes neither the packet nor anything behind it. Returns
 * the packet's payload, readable until the next call on the link, and its length in *len; NULL if the peer already has the
 * packet. shm_release with `done`: the request is done and the peer skips the packet; else the peer processes the packet.
 */
const void *shm_cancel_posted(struct link *link, uint64_t place, size_t *len);
void shm_release(struct link *link, uint64_t place, bool done);
/*
 * Takes back a WIRE_GET packet for good: the peer skips it. True: the peer had not begun with the packet, so what we read
 * before this call was read before later packets took effect.
 */
bool shm_recall_posted(struct link *link, uint64_t place);
extern const struct link_memory_ops shm_memory_ops;

bool shm_progress(void *state);
bool shm_idle(const void *state);
struct link_cursor *shm_cursor(void *state);
bool shm_arm(void *state);
void shm_publish_head(struct shm *shm);
bool shm_reap(void *state, uint32_t id);
bool shm_blocked(void *state, uint64_t *mark, uint32_t *owner);
void shm_skip(void *state);
/*
 * The head goes to the end of the last packet's claim: the packet's length may have said another place, before
 * the slots that others have claimed or among these.
 */
void shm_resync(struct shm *shm);

#endif
