/* SPDX-License-Identifier: BSD-2-Clause */
/* A ring whose head waits for a packet that does not come. */
#include "hw/shm/shm.h"

/* Most slots that one packet takes. */
#define PACKET_SLOTS                                                                               \
	((offsetof(struct ring_slot, rest) + 8 + SHM_PACKET_MAX + RING_SLOT - 1) / RING_SLOT)

static uint64_t claim_of(const struct ring *r, uint64_t pos)
{
	return __atomic_load_n(ring_claim_at(r, pos), __ATOMIC_ACQUIRE);
}

/* Is this the word of a claim at `pos` that a sender can have made? */
static bool is_claim(const struct ring *r, uint64_t pos, uint64_t word)
{
	return claim_lap(word) == ring_lap(r, pos) && claim_slots(word) &&
	       claim_slots(word) <= PACKET_SLOTS;
}

/*
 * Returns the slots from the head, which nobody has claimed, to the next claim; 0: there is none, so
 * the head is the frontier. Honest senders leave no gap; a packet shorter than its claim does.
 */
static uint32_t gap(const struct ring *r, uint64_t head)
{
	for (uint32_t i = 1; i <= r->mask; i++)
		if (is_claim(r, head + i, claim_of(r, head + i)))
			return i < CLAIM_SLOTS_MAX ? i : CLAIM_SLOTS_MAX;
	return 0;
}

/* Returns the slots at the head that `word`, its claim word, keeps from others; 0: none. */
static uint32_t slots_of(const struct ring *r, uint64_t head, uint64_t word)
{
	uint32_t slots;

	if (is_claim(r, head, word))
		return claim_slots(word);
	slots = gap(r, head);
	return slots || claim_lap(word) != ring_lap(r, head) ? slots : 1;
}

bool shm_blocked(void *state, uint64_t *mark, uint32_t *owner)
{
	struct shm *shm = state;
	uint64_t word = claim_of(&shm->ring, shm->head), at = ring_state(&shm->ring, shm->head);

	if (*mark != shm->head || at == RING_PUBLISHED || at == RING_CANCELLED) {
		*mark = shm->head;
		return false;
	}
	/* A sender that has gone beyond a wrong claim waits for space that is there. */
	if (shm->head != shm->published)
		shm_publish_head(shm);
	*owner = RING_DEAD;
	if (is_claim(&shm->ring, shm->head, word))
		*owner = claim_owner(word);
	return slots_of(&shm->ring, shm->head, word) != 0;
}

/* Takes the place of the sender, so that none can claim the slots any more. */
void shm_skip(void *state)
{
	struct shm *shm = state;
	struct ring *r = &shm->ring;
	uint64_t word = claim_of(r, shm->head);
	uint32_t slots = slots_of(r, shm->head, word);

	if (slots &&
	    __atomic_compare_exchange_n(ring_claim_at(r, shm->head), &word,
					claim_word(ring_lap(r, shm->head), RING_DEAD, slots), false,
					__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		shm->reaped++;
}
