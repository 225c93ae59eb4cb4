/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared-memory transport: one receive ring a worker, one link a peer. */
#ifndef WEFT_HW_SHM_H
#define WEFT_HW_SHM_H

#include "core/mr_view.h"
#include "link/link.h"
#include "hw/shm/shm_copy.h"
#include "hw/shm/shm_pipe.h"
#include "hw/shm/shm_ring.h"
#include "link/wire.h"

/* Longest payload of one packet: the claim word counts slots in 12 bits, and a packet must leave
 * most of the smallest ring to others. */
#define SHM_PACKET_MAX 16384u

struct shm {
	struct worker *worker;
	struct ring ring;
	uint64_t head;      /* next slot to read */
	uint64_t published; /* the head that senders have seen */
	uint32_t publish_step;
	uint32_t progress_calls;   /* counts shm_progress */
	uint32_t reaped;           /* claims of dead peers still to be skipped */
	int fd;                    /* memfd of the ring, for hellos */
	struct shm_bounce *bounce; /* NULL until it is used */
	struct shm_pipes pipes;
	bool populated;              /* the ring's memory is in place */
	uint64_t noted[RING_GUARDS]; /* guards that shm_quiesced waits for */
};

struct shm_link {
	struct link link;
	struct ring ring;         /* the peer's */
	uint64_t next;            /* position after our last claim */
	uint64_t limit;           /* end of the free slots, as last seen */
	uint64_t owner;           /* our id, placed as in a claim word */
	uint32_t src;             /* our id at the peer */
	uint32_t calls_seen;      /* own->progress_calls when a lap of the peer's ring last began */
	struct shm *own;          /* of the worker that sends */
	uint32_t slow;            /* counts claims on the slow path */
	int sock;                 /* one byte on it wakes the peer; the engine's */
	pid_t pid;                /* for process_vm_readv; 0: no direct access */
	struct shm_copier copier; /* into the peer's ring, */
	struct shm_copier bounce_copier; /* and into our bounce buffer for the peer */
	uint32_t bounce_at; /* unit of the last message put there for the peer: used again if it is free */
	uint64_t looked;    /* ms: when the peer was last known to be alive */
	struct shm_pipe_user pipe;
	struct mr_view regions;
	void *recalled; /* a payload taken back: SHM_PACKET_MAX bytes, or NULL */
};

/* Bytes of the first slot that are not payload. */
static inline size_t shm_header_len(uint64_t head)
{
	return offsetof(struct ring_slot, rest) + (wire_flags(head) & WIRE_DATA ? 8 : 0);
}

/* A copy between our memory and the peer's: until the shorter side is full. */
struct shm_cma {
	const struct iovec *local, *remote; /* at most WIRE_IOV_MAX each */
	size_t local_count, remote_count;
	bool write;   /* to the peer */
	size_t moved; /* bytes, in any case */
};

/* 0 or a negative error; -FI_ENOSYS and -FI_EPERM are final: the kernel does not permit copies. */
int shm_cma_copy(struct shm_link *s, struct shm_cma *c);

int shm_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
	     uint64_t tag);
int shm_sendv(struct link *link, const struct packet *p, const struct iovec *iov, size_t count);

ssize_t shm_fetch(struct link *link, const struct iovec *local, size_t local_count,
		  const struct iovec *remote, size_t remote_count, uint64_t key);
int shm_rndv_register(struct link *link, enum proto proto, const struct iovec *iov, size_t count,
		      const void *batch, struct fi_rma_iov *at, void **registered);
void shm_rndv_deregister(struct link *link, void *registered);
int shm_put(struct link *link, const struct iovec *local, size_t local_count,
	    const struct fi_rma_iov *remote, size_t remote_count);
int shm_get(struct link *link, const struct iovec *local, size_t local_count,
	    const struct fi_rma_iov *remote, size_t remote_count);
bool shm_reach(struct link *link, const struct fi_rma_iov *remote, size_t remote_count, bool write);
const void *shm_cancel_posted(struct link *link, uint64_t place, size_t *len);
void shm_release(struct link *link, uint64_t place, bool done);
bool shm_recall_posted(struct link *link, uint64_t place);

bool shm_progress(void *state);
bool shm_arm(void *state);
bool shm_reap(void *state, uint32_t id);

#endif
