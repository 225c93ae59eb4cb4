/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small lock for short critical sections: one locked instruction to take it when free, a store and
 * a load to give it back. A waiter spins briefly, then sleeps until a holder wakes it, so that on a
 * crowded machine the holder gets the processor.
 */
#ifndef WEFT_BASE_LOCK_H
#define WEFT_BASE_LOCK_H

#include <stdbool.h>

struct lock {
	int sleeps; /* atomic: how often somebody slept. First: the calls that find it free are shorter so */
	int held;     /* atomic: 0 or 1 */
	int sleepers; /* atomic: somebody may be asleep in lock_wait */
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
void lock_wake(struct lock *l);

static inline void lock_init(struct lock *l)
{
	l->sleeps = 0;
	l->held = 0;
	l->sleepers = 0;
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
 * The load may overtake the store, and then miss who is going to sleep: lock_wait sleeps for a limited time, and
 * the store is seen long before the kernel looks.
 */
static inline void lock_give(struct lock *l)
{
	__atomic_store_n(&l->held, 0, __ATOMIC_RELEASE);
	if (__builtin_expect(__atomic_load_n(&l->sleepers, __ATOMIC_RELAXED), 0))
		lock_wake(l);
}

#endif
