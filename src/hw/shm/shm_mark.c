/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/shm/shm_mark.h"

#include <sched.h>

#define ROUNDS 64 /* through all marks, for one that is free: copies end soon */

/* Mark word: uses so far (32 bits), who has it, or 0. */
static inline uint64_t mark_word(uint32_t uses, uint32_t id)
{
	return (uint64_t)uses << 32 | id;
}

static inline uint32_t mark_id(uint64_t word)
{
	return (uint32_t)word;
}

static inline uint32_t mark_uses(uint64_t word)
{
	return word >> 32;
}

static bool take(uint64_t *at, uint32_t id, struct shm_mark *mark)
{
	uint64_t word = __atomic_load_n(at, __ATOMIC_RELAXED);

	if (mark_id(word))
		return false;
	*mark = (struct shm_mark){at, mark_word(mark_uses(word) + 1, id)};
	return __atomic_compare_exchange_n(at, &word, mark->word, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

static bool take_any(struct ring *r, uint32_t id, struct shm_mark *mark)
{
	for (uint32_t i = 0; i < RING_MARKS; i++)
		if (take(&r->page->marks[(id + i) % RING_MARKS].word, id, mark))
			return true;
	return false;
}

bool shm_mark_enter(struct ring *r, uint32_t id, struct shm_mark *mark)
{
	for (int round = 0; !take_any(r, id, mark); round++) {
		if (round == ROUNDS)
			return false;
		sched_yield();
	}
	/*
	 * Partners: mr_share.c mr_share_remove and shm_mark_close. Either we see what they did, or
	 * they see the mark.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&r->page->closed, __ATOMIC_RELAXED))
		return true;
	shm_mark_leave(mark);
	return false;
}

/* Partner: shm_mark_ended. Whoever cleared it took us for dead, and it is no longer ours. */
void shm_mark_leave(const struct shm_mark *mark)
{
	uint64_t word = mark->word;

	__atomic_compare_exchange_n(mark->at, &word, mark_word(mark_uses(word), 0), false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void shm_mark_close(struct ring *r)
{
	__atomic_store_n(&r->page->closed, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* partners: shm_mark_enter, shm_mark_closed */
}

bool shm_mark_closed(const struct ring *r)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* partner: shm_mark_close */
	return __atomic_load_n(&r->page->closed, __ATOMIC_RELAXED);
}

/* The fence before it is in mr_share_remove or shm_mark_close. */
void shm_mark_note(const struct ring *r, uint64_t noted[RING_MARKS])
{
	for (uint32_t i = 0; i < RING_MARKS; i++) {
		uint64_t word = __atomic_load_n(&r->page->marks[i].word, __ATOMIC_ACQUIRE);

		noted[i] = mark_id(word) ? word : 0;
	}
}

bool shm_mark_ended(const struct ring *r, uint64_t noted[RING_MARKS], uint32_t *id)
{
	for (uint32_t i = 0; i < RING_MARKS; i++) {
		if (!noted[i])
			continue;
		/* Partner: shm_mark_leave. */
		if (__atomic_load_n(&r->page->marks[i].word, __ATOMIC_ACQUIRE) == noted[i]) {
			*id = mark_id(noted[i]);
			return false;
		}
		noted[i] = 0;
	}
	return true;
}

void shm_mark_clear(struct ring *r, uint32_t id)
{
	for (uint32_t i = 0; i < RING_MARKS; i++) {
		uint64_t *at = &r->page->marks[i].word;
		uint64_t word = __atomic_load_n(at, __ATOMIC_ACQUIRE);

		if (mark_id(word) == id)
			__atomic_compare_exchange_n(at, &word, mark_word(mark_uses(word), 0), false,
						    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
}
