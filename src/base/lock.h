/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small lock for short critical sections: one locked instruction takes a free lock, a load and a
 * store release it. A waiter spins briefly, then sleeps until a holder wakes it, so that the holder
 * gets the processor on an oversubscribed machine. A waiter that lost the lock again after waking
 * is handed it by the next holder, so threads that poll under the lock starve no other.
 */
#ifndef WEFT_BASE_LOCK_H
#define WEFT_BASE_LOCK_H

#include <stdbool.h>

struct lock {
	int sleeps;   /* atomic: number of sleeps. First member: shortens the fast path */
	int held;     /* atomic: 0 or 1 */
	int sleepers; /* atomic: a thread may be asleep in lock_wait */
	int starving; /* atomic: a thread has slept and found the lock taken again */
	int handed;   /* atomic: released with `held` still set, for a thread that has slept */
};

/* One step of a busy loop; saves power and the sibling thread's time. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb"); /* takes about as long; `yield` takes no time at all */
#endif
}

/* Slow paths of lock_take and lock_give. */
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
 * A thread that goes to sleep between the load and the store is not woken here. The kernel lets no
 * thread sleep once the store is visible, and lock_wait limits its sleep.
 */
static inline void lock_give(struct lock *l)
{
	if (__builtin_expect(__atomic_load_n(&l->sleepers, __ATOMIC_RELAXED), 0))
		lock_give_to_waiters(l);
	else
		__atomic_store_n(&l->held, 0, __ATOMIC_RELEASE);
}

#endif
