/* SPDX-License-Identifier: BSD-2-Clause */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"

/* Steps of waiting between two looks at the lock: the first time, and before the first sleep. */
#define SPIN_FIRST 4
#define SPIN_LAST  256
#define SLEEP_NS   1000000 /* limit of one sleep, in case a wake-up is missed */

/*
 * Looks at the lock ever more rarely, longer in all than most critical sections take. Each look takes the cache line from
 * the holder, which may need the lock again at once: two threads would spend most of the time on that.
 */
static bool spin(struct lock *l)
{
	for (unsigned int steps = SPIN_FIRST; steps <= SPIN_LAST; steps *= 2) {
		for (unsigned int n = 0; n < steps; n++)
			cpu_relax();
		if (!__atomic_load_n(&l->held, __ATOMIC_RELAXED) && lock_try(l))
			return true;
	}
	return false;
}

/* Pairs with the release in lock_give_to_waiters. */
static bool take_handed(struct lock *l)
{
	int one = 1;

	return __atomic_load_n(&l->handed, __ATOMIC_RELAXED) &&
	       __atomic_compare_exchange_n(&l->handed, &one, 0, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/*
 * A waiter that slept leaves `sleepers` set when it takes the lock, since others may sleep;
 * releasing it then wakes one, if any. lock_give_to_waiters clears `sleepers` first, so every
 * waiter sets it again before it tries the lock. Only a waiter that slept takes a handed lock; else
 * the last holder could.
 */
void lock_wait(struct lock *l)
{
	const struct timespec most = {.tv_nsec = SLEEP_NS};

	if (spin(l))
		return;
	for (unsigned int slept = 0;; slept++) {
		__atomic_store_n(&l->sleepers, 1, __ATOMIC_SEQ_CST);
		if (lock_try(l) || (slept && take_handed(l)))
			break;
		if (slept)
			__atomic_store_n(&l->starving, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&l->sleeps, 1, __ATOMIC_RELAXED);
		syscall(SYS_futex, &l->held, FUTEX_WAIT_PRIVATE, 1, &most, NULL, 0);
	}
	__atomic_store_n(&l->starving, 0,
			 __ATOMIC_RELAXED); /* other starving waiters set it again */
}

void lock_give_to_waiters(struct lock *l)
{
	__atomic_store_n(&l->sleepers, 0, __ATOMIC_RELAXED);
	/* The starving waiter is still in lock_wait and takes the handed lock. */
	if (__atomic_load_n(&l->starving, __ATOMIC_RELAXED))
		__atomic_store_n(&l->handed, 1, __ATOMIC_RELEASE);
	else
		__atomic_store_n(&l->held, 0, __ATOMIC_RELEASE);
	syscall(SYS_futex, &l->held, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
