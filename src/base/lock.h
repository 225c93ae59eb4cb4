/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small lock for short critical sections: one locked instruction to take it when free, a load and
 * a store to give it back. A waiter spins briefly, then sleeps until a holder wakes it, so that on a
 * oversubscribed machine the holder gets the processor. A waiter that was woken in vain is handed the lock: threads
 * that take it again and again, as those that poll do, starve nobody.
 */
#ifndef WEFT_BASE_LOCK_H
#define WEFT_BASE_LOCK_H

#include <stdbool.h>

struct lock {
	int sleeps; /* atomic: how often somebody slept. First: the calls that find it free are shorter so */
	int held;     /* atomic: 0 or 1 */
	int sleepers; /* atomic: somebody may be asleep in lock_wait */
	int starving; /* atomic: one that slept has found it taken by another again */
	int handed;   /* atomic: given back with `held` left set, to one that has slept */
};

/* One step of a polite busy loop. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* The slow halves of lock_take and lock_give. */
void lock_wait(struct lock *l);
void lock_give_to_waiters(struct lock *l);

static inline void lock_init(struct lock *l)
{
	*l = (struct lock){.held = 0};
}

/* Pairs with the release in lock_give. */
static inline bool lock_try(struct lock *l)
{
	return !(__atomic_fetch_or(&l->held, 1, __ATOMIC_ACQUIRE) & 1);
}

static inline void lock_take(struct lock *l)
{
	if (__builtin_expect(!lock_try(l), 0))
		lock_wait(l);
}

/*
 * One that goes to sleep between the load and the store is not woken: the kernel puts nobody to sleep once the store
 * is seen, and lock_wait sleeps for a limited time.
 */
static inline void lock_give(struct lock *l)
{
	if (__builtin_expect(__atomic_load_n(&l->sleepers, __ATOMIC_RELAXED), 0))
		lock_give_to_waiters(l);
	else
		__atomic_store_n(&l->held, 0, __ATOMIC_RELEASE);
}

#endif
