/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small lock for short critical sections: one locked instruction takes a free lock, a load and a
 * store release it. Each change of threads moves what the lock guards to another core, so a waiter
 * first lets the holder take the lock again for a while. Then it asks for the lock, and is handed it
 * by the next release. If that does not come, it sleeps, so that the holder gets the processor on an
 * oversubscribed machine, and goes on asking: threads that poll under the lock starve no other.
 */
#ifndef WEFT_BASE_LOCK_H
#define WEFT_BASE_LOCK_H

#include <stdbool.h>

/* Bits of struct lock.state. */
#define LOCK_HELD     1u
#define LOCK_SLEEPERS 2u /* a thread may be asleep in lock_wait */
/* A waiter asks for the lock: one that spins, and one that has slept. */
#define LOCK_WANTED   4u
#define LOCK_STARVING 8u
/* Released with LOCK_HELD still set, for a waiter that has set LOCK_WANTED, or LOCK_STARVING. */
#define LOCK_HANDED(want) ((want) << 2)

struct lock {
	int sleeps;         /* atomic: number of sleeps. First member: shortens the fast path */
	unsigned int state; /* atomic: LOCK_ bits */
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
	*l = (struct lock){.state = 0};
}

/* Pairs with the release in lock_give. */
static inline bool lock_try(struct lock *l)
{
	return !(__atomic_fetch_or(&l->state, LOCK_HELD, __ATOMIC_ACQUIRE) & LOCK_HELD);
}

static inline void lock_take(struct lock *l)
{
	if (__builtin_expect(!lock_try(l), 0))
		lock_wait(l);
}

/*
 * A bit that a waiter sets between the load and the store is lost. The waiter sets it again when it looks next; the kernel
 * lets none sleep once the state has changed. A waiter that slept before the store was seen is not woken: its sleep has a
 * limit.
 */
static inline void lock_give(struct lock *l)
{
	if (__builtin_expect(__atomic_load_n(&l->state, __ATOMIC_RELAXED) != LOCK_HELD, 0))
		lock_give_to_waiters(l);
	else
		__atomic_store_n(&l->state, 0, __ATOMIC_RELEASE);
}

#endif
