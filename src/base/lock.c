/* SPDX-License-Identifier: BSD-2-Clause */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"

/*
 * Steps of waiting between two looks at the lock: at first, and before the waiter asks for it. All together they are 1020,
 * hundreds of critical sections: 25 to 65 us on an EPYC, less or more on other processors.
 */
#define QUIET_FIRST 4
#define QUIET_LAST  512
/* Steps between two looks of a waiter that has asked for the lock. */
#define ASKING_STEPS 8
/*
 * Looks of a waiter before it stops asking, which is the last one: at first, for longer than most critical sections take; few
 * once it has slept. Tens of waiters all wake within SLEEP_NS, and would together keep a holder that shares their core off it.
 */
#define WANTED_LOOKS   16
#define STARVING_LOOKS 1
#define SLEEP_NS       1000000 /* limit of one sleep, in case a wake-up is missed */

static void lock_relax(unsigned int steps)
{
	for (unsigned int n = 0; n < steps; n++)
		cpu_relax();
}

static unsigned int lock_look(const struct lock *l)
{
	return __atomic_load_n(&l->state, __ATOMIC_RELAXED);
}

/*
 * Looks at the lock ever more rarely, and lets the holder take it again. Each change of threads moves to another core
 * what the lock guards: two threads would spend most of the time on that.
 */
static bool wait_quietly(struct lock *l)
{
	for (unsigned int steps = QUIET_FIRST; steps <= QUIET_LAST; steps *= 2) {
		lock_relax(steps);
		if (!(lock_look(l) & LOCK_HELD) && lock_try(l))
			return true;
	}
	return false;
}

/*
 * Stops asking. Returns whether the lock was handed to us. Other waiters set their bits again when they look next. Pairs
 * with the release in lock_give_to_waiters.
 */
static bool take_handed(struct lock *l, unsigned int want)
{
	unsigned int handed = LOCK_HANDED(want);

	return __atomic_fetch_and(&l->state, ~(want | handed), __ATOMIC_ACQUIRE) & handed;
}

/* Takes the lock, or asks for it by setting `want`. Needs no order: who has the lock comes by take_handed. */
static bool lock_ask(struct lock *l, unsigned int want)
{
	unsigned int state = __atomic_fetch_or(&l->state, LOCK_HELD | want, __ATOMIC_RELAXED);

	if ((state & (LOCK_HELD | LOCK_HANDED(want))) == LOCK_HELD)
		return false;
	return take_handed(l, want) || !(state & LOCK_HELD);
}

/* Asks until we have the lock, or its holder seems to be off its core. */
static bool wait_asking(struct lock *l, unsigned int want, unsigned int looks)
{
	while (looks--) {
		unsigned int all = LOCK_HELD | want | LOCK_HANDED(want);

		if ((lock_look(l) & all) != (LOCK_HELD | want) && lock_ask(l, want))
			return true;
		lock_relax(ASKING_STEPS);
	}
	return false;
}

/* Sleeps, and asks for the lock meanwhile by `want`, unless it is free or handed to such a waiter by now. */
static void wait_asleep(struct lock *l, unsigned int want)
{
	const struct timespec most = {.tv_nsec = SLEEP_NS};
	unsigned int state = __atomic_or_fetch(&l->state, LOCK_SLEEPERS | want, __ATOMIC_RELAXED);

	if ((state & (LOCK_HELD | LOCK_HANDED(want))) != LOCK_HELD)
		return;
	__atomic_add_fetch(&l->sleeps, 1, __ATOMIC_RELAXED);
	syscall(SYS_futex, &l->state, FUTEX_WAIT_PRIVATE, state, &most, NULL, 0);
}

/*
 * A waiter that slept leaves LOCK_SLEEPERS set, since others may sleep; releasing the lock then wakes one, if any. It asks
 * by a bit of its own: who released the lock a moment ago could else take what was handed to it. Before it sleeps again it
 * takes what was handed to any waiter: one that had not slept may be gone, cancelled or by siglongjmp from a handler.
 */
void lock_wait(struct lock *l)
{
	if (wait_quietly(l) || wait_asking(l, LOCK_WANTED, WANTED_LOOKS) ||
	    take_handed(l, LOCK_WANTED))
		return;
	wait_asleep(l, 0);
	while (!wait_asking(l, LOCK_STARVING, STARVING_LOOKS) &&
	       !take_handed(l, LOCK_WANTED | LOCK_STARVING))
		wait_asleep(l, LOCK_STARVING);
	__atomic_fetch_or(&l->state, LOCK_SLEEPERS, __ATOMIC_RELAXED);
}

/* The lock can only be handed to a waiter that has not stopped asking: one that is still in lock_wait. */
void lock_give_to_waiters(struct lock *l)
{
	unsigned int state = lock_look(l), want;

	do
		want = state & LOCK_STARVING ? LOCK_STARVING : state & LOCK_WANTED;
	while (!__atomic_compare_exchange_n(&l->state, &state,
					    want ? (state & ~want) | LOCK_HANDED(want) : 0, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	if (state & LOCK_SLEEPERS && want != LOCK_WANTED)
		syscall(SYS_futex, &l->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
