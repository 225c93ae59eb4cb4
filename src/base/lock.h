/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small lock for short critical sections: one locked instruction to take it when free, a plain
 * store to give it back. A waiter spins briefly, then yields the processor, so a holder that was
 * preempted on a crowded machine gets to run.
 */
#ifndef WEFT_BASE_LOCK_H
#define WEFT_BASE_LOCK_H

#include <stdbool.h>

struct lock {
	int held;
};

/* One step of a polite busy loop. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

void lock_wait(struct lock *l);

static inline void lock_init(struct lock *l)
{
	l->held = 0;
}

/* Pairs with the release in lock_give. */
static inline bool lock_try(struct lock *l)
{
	return __atomic_exchange_n(&l->held, 1, __ATOMIC_ACQUIRE) == 0;
}

static inline void lock_take(struct lock *l)
{
	if (__builtin_expect(!lock_try(l), 0))
		lock_wait(l);
}

static inline void lock_give(struct lock *l)
{
	__atomic_store_n(&l->held, 0, __ATOMIC_RELEASE);
}

#endif
