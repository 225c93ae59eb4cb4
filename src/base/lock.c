/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>

#include "base/lock.h"

#define SPINS_BEFORE_YIELD 200

void lock_wait(struct lock *l)
{
	unsigned int spins = 0;

	do {
		while (__atomic_load_n(&l->held, __ATOMIC_RELAXED)) {
			if (++spins < SPINS_BEFORE_YIELD)
				cpu_relax();
			else
				sched_yield();
		}
	} while (!lock_try(l));
}
