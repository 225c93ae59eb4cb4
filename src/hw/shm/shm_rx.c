/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"
#include "base/once.h"
#include "hw/shm/shm.h"
#include "link/wire.h"

#define PACKETS_PER_CALL 64

/* Frees the slots before the head. Pairs with the acquires in shm_ring_claim and claim_slow. */
void shm_publish_head(struct shm *shm)
{
	shm_resync(shm); /* else senders would claim slots across those of others */
	shm->published = shm_head(shm);
	shm_set_head(shm, shm->published);
	__atomic_store_n(&shm->ring.page->head, shm->published, __ATOMIC_RELEASE);
	/* An eighth of the first lap is over. */
	if (!shm->populated && shm->published > shm->ring.mask + shm_publish_step(shm)) {
		shm_ring_populate(&shm->ring);
		shm->populated = true;
	}
}

/* The length in the header is invalid; the claim word still says how many slots to skip. */
static __attribute__((noinline, cold)) uint32_t skip_spoilt(struct shm *shm,
							    const struct link_slot *slot)
{
	uint64_t word = ONCE(*ring_claim_at(&shm->ring, shm_head(shm)));

	LOG_PEER(LOG_EP_DATA, "shm: dropped a packet of %u bytes from peer %#x: the limit is %u",
		 ONCE(slot->len), ONCE(slot->src), SHM_PACKET_MAX);
	return ring_is_claim(&shm->ring, shm_head(shm), word) ? claim_slots(word) : 1;
}

/*
 * Delivers the packet in `slot`. Reads each field of the header once, before checking it: a peer
 * could still write to it; `head` has been read. Returns the slots that the packet takes.
 */
static uint32_t shm_rx_deliver(struct shm *shm, const struct link_slot *slot, uint64_t head,
			       bool joint)
{
	struct packet p = {.head = head, .len = link_place_len(slot)};
	uint32_t src = link_place_src(slot);

	p.tag = link_place_tag(slot);
	link_place_payload(slot, &p);
	if (__builtin_expect(p.len > SHM_PACKET_MAX, 0))
		return skip_spoilt(shm, slot);
	if (joint)
		shm_joint_hear(shm->opener, src, &p);
	else
		shm->opener->events->deliver(shm->opener, src, &p);
	return link_slots(slot, p.payload, p.len);
}

static inline bool is_request(uint64_t head)
{
	return wire_op(head) >= WIRE_PUT && wire_op(head) <= WIRE_AMO;
}

/*
 * Takes the one-sided request at the head, so that its sender can no longer recall it, and delivers it. 0:
 * the sender is recalling it, or has recalled it; the packets behind it wait. Partners: shm_cancel_posted and
 * shm_recall_posted in shm_rma.c.
 */
static __attribute__((noinline)) uint32_t shm_rx_take(struct shm *shm, struct link_slot *slot,
						      uint64_t head)
{
	uint64_t token = shm->cursor.next;

	return __atomic_compare_exchange_n(&slot->token, &token, token + RING_TAKEN, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)
		       ? shm_rx_deliver(shm, slot, head, false)
		       : 0;
}

/* The same if the request need not wait for others. */
static __attribute__((noinline)) uint32_t take_later(struct shm *shm, struct link_slot *slot,
						     uint64_t head)
{
	return shm_gather_waits(shm) ? 0 : shm_rx_take(shm, slot, head);
}

/* An offer of a joint copy is no matter of the engine's. */
static __attribute__((noinline)) uint32_t hear_joint(struct shm *shm, const struct link_slot *slot,
						     uint64_t head)
{
	return shm_rx_deliver(shm, slot, head, true);
}

/* Returns the slots at the head that a dead peer claimed and never published; 0: none. */
static __attribute__((noinline, cold)) uint32_t skip_dead(struct shm *shm)
{
	uint32_t slots = shm_ring_skip_dead(&shm->ring, shm_head(shm));

	if (!slots)
		return 0;
	LOG_INFO(LOG_EP_DATA, "shm: skipped %u ring slots claimed by a peer that died", slots);
	shm->reaped--;
	shm_attend(shm);
	return slots;
}

/*
 * Returns the slots of a recalled or dead packet at the head; 0: it is still being written. Looks for the end of a joint
 * copy, too, which no packet tells.
 */
static __attribute__((noinline, cold)) uint32_t shm_rx_skip(struct shm *shm)
{
	uint32_t slots;

	if (shm->joint.under_way)
		shm_joint_progress(shm);
	slots = shm_ring_skip_cancelled(&shm->ring, shm_head(shm));
	return slots || !shm->reaped ? slots : skip_dead(shm);
}

/* Handles what is at the head. Returns the slots that it takes; 0: nothing yet. */
static inline uint32_t shm_rx_step(struct shm *shm)
{
	struct link_slot *slot = shm->cursor.at;
	/* Pairs with the release in shm_tx.c publish. */
	uint64_t state = link_cursor_state(&shm->cursor), head;

	if (state != RING_PUBLISHED)
		return __builtin_expect(state << CURSOR_STATE_BITS == 0 || shm->attends, 0)
			       ? shm_rx_skip(shm)
			       : 0;
	head = ONCE(slot->head);
	if (!is_request(head))
		return __builtin_expect(wire_op(head) == WIRE_JOINT, 0)
			       ? hear_joint(shm, slot, head)
			       : shm_rx_deliver(shm, slot, head, false);
	return shm_gather_is_clear(&shm->gather) ? shm_rx_take(shm, slot, head)
						 : take_later(shm, slot, head);
}

bool shm_progress(void *state)
{
	struct shm *shm = state;
	unsigned int packets;
	uint32_t slots;

	shm->progress_calls++;
	/* The engine has passed slots by itself: no more than calls are granted. */
	if (__builtin_expect(shm->cursor.at >= shm->cursor.stop, 0))
		shm_publish_head(shm);
	for (packets = 0; packets < PACKETS_PER_CALL && (slots = shm_rx_step(shm)); packets++) {
		link_cursor_pass(&shm->cursor, slots);
		if (__builtin_expect(shm->cursor.at >= shm->cursor.stop, 0))
			shm_publish_head(shm);
	}
	/* A request that waits for others has come, too. */
	return packets || link_cursor_state(&shm->cursor) == RING_PUBLISHED;
}

/* A claim of a dead peer is skipped, and the end of a joint copy found, although the word at the head never changes. */
bool shm_idle(const void *state)
{
	return !((const struct shm *)state)->attends;
}

struct link_cursor *shm_cursor(void *state)
{
	return &((struct shm *)state)->cursor;
}

bool shm_arm(void *state)
{
	struct shm *shm = state;

	if (shm_head(shm) != shm->published)
		shm_publish_head(shm);
	shm_gather_clear(&shm->gather, 1); /* nobody sleeps while a request waits */
	return shm_ring_sleep(&shm->ring, shm_head(shm));
}

/* Makes a dead peer's packet need no answer. False: it is useless without one. */
static bool shm_rx_orphan(struct link_slot *slot)
{
	const uint64_t acks = WIRE_HEAD(0, WIRE_ACK_MATCH | WIRE_ACK_DELIVER, 0, 0);
	const uint64_t orphaned = WIRE_HEAD(0, WIRE_ORPHAN, 0, 0);
	uint64_t head = ONCE(slot->head);

	switch (wire_op(head)) {
	case WIRE_MSG:
		slot->head = head & ~acks;
		return true;
	case WIRE_AMO:
		if (wire_flags(head) & WIRE_MATCH)
			return false;
		/* fall through */
	case WIRE_PUT:
		slot->head = head | orphaned;
		return true;
	default:
		return wire_op(head) == WIRE_NOTIFY;
	}
}

/*
 * A packet that a dead peer published behind another peer's unfinished packet is read later,
 * perhaps after the dead peer has restarted and connected again. Messages, writes and atomics are
 * still delivered, but nothing may be answered. Returns whether there are packets to deliver.
 */
static bool shm_rx_disarm(struct shm *shm, uint32_t id)
{
	bool unread = false;
	uint64_t pos = shm_head(shm), at = pos, word;

	while (pos - shm_head(shm) <= shm->ring.mask && (word = shm_ring_step(&shm->ring, &pos))) {
		struct link_slot *slot = ring_slot_at(&shm->ring, at);

		if (claim_owner(word) == (id & RING_DEAD) && ring_published(&shm->ring, at)) {
			if (shm_rx_orphan(slot))
				unread = true;
			else
				slot->src = 0; /* no peer has the number 0 */
		}
		at = pos;
	}
	return unread;
}

/* At most one ring full of packets: other peers may go on filling the ring. */
static void shm_rx_drain(struct shm *shm)
{
	shm_gather_clear(&shm->gather, shm->ring.mask + 1);
	for (uint32_t i = 0; i <= shm->ring.mask / PACKETS_PER_CALL && shm_progress(shm); i++)
		;
	shm_gather_clear(&shm->gather, 0);
}

/*
 * The peer's socket is closed, so all that the peer published is in memory: delivers that and skips
 * the rest. A process that ends closes its sockets after its last thread has left the kernel, so
 * its CMA copies to and from our memory have ended, too.
 */
bool shm_reap(void *state, uint32_t id)
{
	struct shm *shm = state;

	shm_rx_drain(shm);
	shm->reaped += shm_ring_reap(&shm->ring, shm_head(shm), id);
	shm_attend(shm);
	shm_rx_drain(shm);
	shm_publish_head(shm);
	shm_guard_clear(&shm->ring, id);
	return shm_rx_disarm(shm, id);
}
