/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/shm/shm_guard.h"

#include <sched.h>

#define ROUNDS 64 /* tries of all guards before giving up: copies end soon */

/* Guard word: uses so far (32 bits), id of the holder or 0 (32 bits). */
static inline uint64_t guard_word(uint32_t uses, uint32_t id)
{
	return (uint64_t)uses << 32 | id;
}

static inline uint32_t guard_id(uint64_t word)
{
	return (uint32_t)word;
}

static inline uint32_t guard_uses(uint64_t word)
{
	return word >> 32;
}

static bool shm_guard_take(uint64_t *at, uint32_t id, struct shm_guard *guard)
{
	uint64_t word = __atomic_load_n(at, __ATOMIC_RELAXED);

	if (guard_id(word))
		return false;
	*guard = (struct shm_guard){at, guard_word(guard_uses(word) + 1, id)};
	return __atomic_compare_exchange_n(at, &word, guard->word, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

static bool shm_guard_take_any(struct ring *r, uint32_t id, struct shm_guard *guard)
{
	for (uint32_t i = 0; i < RING_GUARDS; i++)
		if (shm_guard_take(&r->page->guards[(id + i) % RING_GUARDS].word, id, guard))
			return true;
	return false;
}

bool shm_guard_enter(struct ring *r, uint32_t id, struct shm_guard *guard)
{
	for (int round = 0; !shm_guard_take_any(r, id, guard); round++) {
		if (round == ROUNDS)
			return false;
		sched_yield();
	}
	/*
	 * Pairs with the fences of mr_share_remove (mr_share.c) and shm_guard_close: either we see
	 * their stores, or they see the guard.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&r->page->closed, __ATOMIC_RELAXED))
		return true;
	shm_guard_leave(guard);
	return false;
}

/* Pairs with shm_guard_ended. Fails if the owner took us for dead and cleared the guard. */
void shm_guard_leave(const struct shm_guard *guard)
{
	uint64_t word = guard->word;

	__atomic_compare_exchange_n(guard->at, &word, guard_word(guard_uses(word), 0), false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void shm_guard_close(struct ring *r)
{
	__atomic_store_n(&r->page->closed, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with shm_guard_enter, shm_guard_closed */
}

bool shm_guard_closed(const struct ring *r)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with shm_guard_close */
	return __atomic_load_n(&r->page->closed, __ATOMIC_RELAXED);
}

/* The caller, or mr_share_remove, has issued the fence that this needs: see shm_guard_enter. */
void shm_guard_note(const struct ring *r, uint64_t noted[RING_GUARDS])
{
	for (uint32_t i = 0; i < RING_GUARDS; i++) {
		uint64_t word = __atomic_load_n(&r->page->guards[i].word, __ATOMIC_ACQUIRE);

		noted[i] = guard_id(word) ? word : 0;
	}
}

bool shm_guard_ended(const struct ring *r, uint64_t noted[RING_GUARDS], uint32_t *id)
{
	for (uint32_t i = 0; i < RING_GUARDS; i++) {
		if (!noted[i])
			continue;
		/* Pairs with the release in shm_guard_leave. */
		if (__atomic_load_n(&r->page->guards[i].word, __ATOMIC_ACQUIRE) == noted[i]) {
			*id = guard_id(noted[i]);
			return false;
		}
		noted[i] = 0;
	}
	return true;
}

void shm_guard_clear(struct ring *r, uint32_t id)
{
	for (uint32_t i = 0; i < RING_GUARDS; i++) {
		uint64_t *at = &r->page->guards[i].word;
		uint64_t word = __atomic_load_n(at, __ATOMIC_ACQUIRE);

		if (guard_id(word) == id)
			__atomic_compare_exchange_n(at, &word, guard_word(guard_uses(word), 0),
						    false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
}

void shm_guard_disown(struct ring *r, uint64_t noted[RING_GUARDS], uint32_t id)
{
	for (uint32_t i = 0; i < RING_GUARDS; i++)
		if (guard_id(noted[i]) == id)
			noted[i] = 0;
	shm_guard_clear(r, id);
}
