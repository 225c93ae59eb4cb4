/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving: the owner's side of the ring. */
#include <string.h>

#include "base/log.h"
#include "hw/shm/shm.h"
#include "hw/wire.h"
#include "xfer/rx.h"

#define PACKETS_PER_TURN 64

/* Pairs with the acquires in ring_claim and claim_slow: what lies before is free again. */
static void publish_head(struct shm *shm)
{
	shm->published = shm->head;
	__atomic_store_n(&shm->ring.page->head, shm->head, __ATOMIC_RELEASE);
}

/*
 * Delivers the packet in `slot`. The header is copied before it is checked: a peer could still
 * write to it. The slots it takes, or 0 when it makes no sense.
 */
static uint32_t deliver(struct shm *shm, const struct ring_slot *slot)
{
	uint32_t src = slot->src, len = *(const volatile uint32_t *)&slot->len;
	struct packet p = {
		.head = *(const volatile uint64_t *)&slot->head,
		.tag = slot->tag,
		.payload = slot->rest,
		.len = len,
	};
	size_t hdr = offsetof(struct ring_slot, rest);

	if (wire_flags(p.head) & WIRE_DATA) {
		memcpy(&p.data, slot->rest, sizeof(p.data));
		p.payload = slot->rest + sizeof(p.data);
		hdr += sizeof(p.data);
	}
	if (__builtin_expect(len > SHM_PACKET_MAX, 0))
		return 0;
	rx_deliver(shm->port, src, &p);
	return (uint32_t)((hdr + len + RING_SLOT - 1) / RING_SLOT);
}

/* A header out of bounds: its claim still says how far to skip. */
static __attribute__((noinline, cold)) uint32_t skip_spoilt(struct shm *shm,
							    const struct ring_slot *slot)
{
	uint32_t slots = claim_slots(*ring_claim_at(&shm->ring, shm->head));

	LOG_WARN(LOG_EP_DATA, "shm: packet of %u bytes from peer %#x exceeds %u, dropped",
		 slot->len, slot->src, SHM_PACKET_MAX);
	return slots ? slots : 1;
}

bool shm_turn(void *state)
{
	struct shm *shm = state;
	unsigned int packets;

	for (packets = 0; packets < PACKETS_PER_TURN; packets++) {
		struct ring_slot *slot = ring_slot_at(&shm->ring, shm->head);
		uint32_t slots;

		/* Pairs with the release in shm_tx.c publish. */
		if (__atomic_load_n(&slot->token, __ATOMIC_ACQUIRE) !=
		    shm->ring.secret + shm->head)
			break;
		slots = deliver(shm, slot);
		if (__builtin_expect(!slots, 0))
			slots = skip_spoilt(shm, slot);
		shm->head += slots;
		if (shm->head - shm->published >= shm->publish_step)
			publish_head(shm);
	}
	return packets != 0;
}

bool shm_arm(void *state)
{
	struct shm *shm = state;

	if (shm->head != shm->published)
		publish_head(shm);
	return ring_sleep(&shm->ring, shm->head);
}

/* Its socket is closed, so all it ever published is in memory: read that, skip what is not. */
void shm_bury(void *state, uint32_t id)
{
	struct shm *shm = state;
	uint32_t dead;

	for (;;) {
		/* Bounded by one ring full: the living may go on filling it. */
		for (uint32_t i = 0; i <= shm->ring.mask / PACKETS_PER_TURN && shm_turn(shm); i++)
			;
		dead = ring_dead_slots(&shm->ring, shm->head, id);
		if (!dead)
			break;
		LOG_INFO(LOG_EP_DATA, "shm: peer %#x died with %u slots claimed, skipped", id, dead);
		shm->head += dead;
	}
	publish_head(shm);
}
