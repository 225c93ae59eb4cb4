/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring whose head does not move. Peers write the words that say where packets are, and may write
 * any word at any time. What no sender can have left is undone here. The head moves by the owner's own
 * choice, never by a word that has to be read again.
 */
#include "base/log.h"
#include "base/once.h"
#include "hw/shm/shm.h"

/* Looks at an idle ring between two searches of all its claim words, 2^n - 1. */
#define SEARCH_LOOKS 255u

static uint64_t claim_of(const struct ring *r, uint64_t pos)
{
	return __atomic_load_n(ring_claim_at(r, pos), __ATOMIC_ACQUIRE);
}

/* Goes on at `pos`, where a claim begins or will. */
static void set_checked_head(struct shm *shm, uint64_t pos)
{
	shm_set_head(shm, pos);
	shm->cursor.wide_from = shm->cursor.wide_to = shm->cursor.next;
}

static void go_to(struct shm *shm, uint64_t pos)
{
	set_checked_head(shm, pos);
	shm_publish_head(shm);
}

static void shm_stall_say(const struct shm *shm, const char *what)
{
	LOG_INFO(LOG_EP_DATA, "shm: ring at slot %llu: %s; a peer has written words of others",
		 (unsigned long long)(shm_head(shm) & shm->ring.mask), what);
}

void shm_resync(struct shm *shm)
{
	const struct ring *r = &shm->ring;
	const struct link_cursor *c = &shm->cursor;
	uint64_t pos = (c->wide_to == c->next ? c->wide_from : c->next - 1) - r->secret, word;

	if (pos == shm_head(shm))
		return;
	word = claim_of(r, pos);
	if (ring_is_claim(r, pos, word))
		pos += claim_slots(word);
	else
		while (++pos < shm_head(shm) && !ring_is_claim(r, pos, claim_of(r, pos)))
			;
	if (pos != shm_head(shm))
		shm_stall_say(shm, "a packet of another length than its claim");
	set_checked_head(shm, pos);
}

/* The slot at `pos`, of which `word` is a wrong claim, is free to be claimed. */
static void shm_stall_clear(const struct ring *r, uint64_t pos, uint64_t word)
{
	__atomic_compare_exchange_n(ring_claim_at(r, pos), &word,
				    claim_word(ring_lap(r, pos) - 1, 0, 1), false, __ATOMIC_ACQ_REL,
				    __ATOMIC_RELAXED);
}

/*
 * Clears claims of later laps, which senders cannot pass. One of this lap stays, unless it is at the
 * head: its packet may have come, and others behind it.
 */
static void clear_later(struct shm *shm)
{
	const struct ring *r = &shm->ring;

	for (uint32_t i = 0; i <= r->mask; i++) {
		uint64_t pos = shm_head(shm) + i, word = claim_of(r, pos);

		if (!claim_stale(word, ring_lap_bits(r, pos)) &&
		    claim_lap(word) != ring_lap(r, pos))
			shm_stall_clear(r, pos, word);
	}
}

/* Returns the first claim behind the head; 0: there is none. */
static uint64_t next_claim(const struct ring *r, uint64_t head)
{
	for (uint32_t i = 1; i <= r->mask; i++)
		if (ring_is_claim(r, head + i, claim_of(r, head + i)))
			return head + i;
	return 0;
}

/*
 * Claims the slots from the head to `next`, like a sender, so that no sender does: it could take
 * those behind them, too. Returns where it was too late, or `next`.
 */
static uint64_t claim_gap(const struct ring *r, uint64_t head, uint64_t next)
{
	uint64_t pos = head;

	while (pos != next) {
		uint64_t word = claim_of(r, pos), left = next - pos;
		uint32_t slots = left < PACKET_SLOTS ? (uint32_t)left : (uint32_t)PACKET_SLOTS;

		if (ring_is_claim(r, pos, word) ||
		    !__atomic_compare_exchange_n(ring_claim_at(r, pos), &word,
						 claim_word(ring_lap(r, pos), RING_DEAD, slots),
						 false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			break;
		pos += slots;
	}
	return pos;
}

/*
 * `word` at the head is no claim. Senders leave no gap before a claim; a packet shorter than its claim
 * does, or a wrong hint. The hint says that somebody looks for free slots behind a gap.
 */
static void close_gap(struct shm *shm, uint64_t word)
{
	const struct ring *r = &shm->ring;
	bool wrong = !claim_stale(word, ring_lap_bits(r, shm_head(shm)));
	bool beyond = ONCE(r->page->hint) - shm_head(shm) - 1 < r->mask;
	uint64_t next;

	if (!wrong && !beyond && ++shm->looks & SEARCH_LOOKS)
		return;
	clear_later(shm);
	next = next_claim(r, shm_head(shm));
	if (wrong)
		shm_stall_say(shm, "a wrong claim");
	if (!next) {
		if (wrong)
			shm_stall_clear(r, shm_head(shm), word);
		if (beyond)
			__atomic_store_n(&r->page->hint, shm_head(shm), __ATOMIC_RELAXED);
		return;
	}
	next = claim_gap(r, shm_head(shm), next);
	if (next == shm_head(shm))
		return;
	shm_stall_say(shm, "slots without a packet");
	go_to(shm, next);
}

bool shm_blocked(void *state, uint64_t *mark, uint32_t *owner)
{
	struct shm *shm = state;
	const struct ring *r = &shm->ring;
	uint64_t at, word, token;

	if (*mark != shm_head(shm) || ring_state(r, shm_head(shm)) == RING_PUBLISHED) {
		*mark = shm_head(shm);
		return false;
	}
	/* Senders wait for the space that this word tells. */
	if (shm_head(shm) != shm->published || ONCE(r->page->head) != shm_head(shm))
		shm_publish_head(shm);
	if (*mark != shm_head(shm))
		return false;
	word = claim_of(r, shm_head(shm));
	/* Once more, after the claim: what was published under it is not lost. */
	at = ring_state(r, shm_head(shm));
	if (at == RING_PUBLISHED)
		return false;
	*owner = claim_owner(word);
	if (ring_is_claim(r, shm_head(shm), word))
		return at != RING_CANCELLED;
	/* A packet that is recalled without a claim: the next sender's would seem to be recalled, too. */
	token = r->secret + shm_head(shm) + RING_CANCELLED;
	if (at == RING_CANCELLED)
		__atomic_compare_exchange_n(&ring_slot_at(r, shm_head(shm))->token, &token, 0,
					    false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	close_gap(shm, word);
	return false;
}

/* Takes the place of the sender, so that no other sender can claim the slots. */
void shm_skip(void *state)
{
	struct shm *shm = state;
	const struct ring *r = &shm->ring;
	uint64_t word = claim_of(r, shm_head(shm));

	if (!ring_is_claim(r, shm_head(shm), word))
		return;
	__atomic_store_n(ring_claim_at(r, shm_head(shm)),
			 claim_word(ring_lap(r, shm_head(shm)), RING_DEAD, claim_slots(word)),
			 __ATOMIC_RELEASE);
	go_to(shm, shm_head(shm) + claim_slots(word));
}
