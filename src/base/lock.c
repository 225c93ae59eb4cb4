/* SPDX-License-Identifier: BSD-2-Clause */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"

#define SPINS    100     /* before the first sleep: longer than most holders take */
#define SLEEP_NS 1000000 /* at most, should a wake-up be missed */

static bool spin(struct lock *l)
{
	for (unsigned int n = 0; n < SPINS; n++) {
		if (!__atomic_load_n(&l->held, __ATOMIC_RELAXED) && lock_try(l))
			return true;
		cpu_relax();
	}
	return false;
}

/*
 * Who slept leaves `sleepers` set when it takes the lock, for there may be others: giving it back then wakes the
 * next one, or nobody. lock_wake clears it first, so everybody sets it again before a look at the lock.
 */
void lock_wait(struct lock *l)
{
	const struct timespec most = {.tv_nsec = SLEEP_NS};

	if (spin(l))
		return;
	for (;;) {
		__atomic_store_n(&l->sleepers, 1, __ATOMIC_SEQ_CST);
		if (lock_try(l))
			return;
		__atomic_add_fetch(&l->sleeps, 1, __ATOMIC_RELAXED);
		syscall(SYS_futex, &l->held, FUTEX_WAIT_PRIVATE, 1, &most, NULL, 0);
	}
}

void lock_wake(struct lock *l)
{
	__atomic_store_n(&l->sleepers, 0, __ATOMIC_RELAXED);
	syscall(SYS_futex, &l->held, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
