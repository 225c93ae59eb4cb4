/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer of fake_link.h as a sender in shared memory: writes packets into the worker's own ring. */
#ifndef RING_SAYS_H
#define RING_SAYS_H

#include "hw/shm/shm.h"
#include "fake_link.h"

static inline struct shm *ring_of(const struct worker *worker)
{
	return worker->conn.via[LINK_HOST].state;
}

static inline struct shm *ring_of_worker(void)
{
	return ring_of(fake.worker);
}

/* Reads until the worker has just been granted calls. */
static inline void become_idle(void)
{
	unsigned int calls = 0;

	do
		fake_expect_nothing();
	while (fake.worker->conn.driven.idle.calls < 2 && ++calls < 256);
	ck_assert_uint_gt(fake.worker->conn.driven.idle.calls, 1);
}

/* Writes a packet `back` slots behind the head, as the peer would. */
static inline void ring_says(unsigned int back, uint64_t head, uint64_t tag, uint64_t data,
			     const void *payload, uint32_t len)
{
	struct shm *shm = ring_of_worker();
	uint64_t pos = shm_head(shm) + back;
	struct link_slot *slot = ring_slot_at(&shm->ring, pos);
	size_t at = shm_header_len(head) - offsetof(struct link_slot, rest);

	*ring_claim_at(&shm->ring, pos) =
		claim_word(ring_lap(&shm->ring, pos), 1, link_slots(slot, slot->rest + at, len));
	slot->src = pool_id(fake.peer);
	slot->len = len;
	slot->head = head;
	slot->tag = tag;
	memcpy(slot->rest, &data, at);
	if (len)
		memcpy(slot->rest + at, payload, len);
	__atomic_store_n(&slot->token, shm->ring.secret + pos, __ATOMIC_RELEASE);
}

#endif
