/* SPDX-License-Identifier: BSD-2-Clause */
/* Polling, before a sleep and by the application: for how long, and who has the core meanwhile. */
#include <sched.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/lock.h"
#include "core/wait.h"

#define ALONE_POLLS          16   /* a microsecond or two */
#define OVERSUBSCRIBED_US    2    /* longer than it takes to let the core go when nobody wants it */
#define OVERSUBSCRIBED_STAYS 64   /* times that nobody wants it, until nobody is thought to */
#define OVERSUBSCRIBED_MOST  20   /* times as long as alone it polls at most */
#define HOG_US               1000 /* longer than those take it who wait, too */
#define OVERSUBSCRIBED_POLLS 64   /* about as long as it takes to let the core go and get it back */
#define DOUBT_MOST           8    /* looks in vain, more than others, until hardly any are taken, */
#define DOUBT_WAITS          64   /* only those of one wait in so many */
#define POLLS_ALONE          256 /* reads in vain: some tens of microseconds, before others get the core */
#define POLLS_OVERSUBSCRIBED 16 /* where they wanted it */
#define POLL_US              8  /* longer than a read in vain takes by itself */

/* Lets others have the core; us that they had it. *now: when we have it again. */
static uint64_t give_way(uint64_t *now)
{
	uint64_t before = clock_us();

	sched_yield();
	*now = clock_us();
	return *now - before;
}

/*
 * Polls to make before the core is let go. A thread that shares it with some who wait like us, and was just given it,
 * is often the last of them: what is missing is then on its way from other cores, and to let those run who wait
 * for the same would take longer. That is found out by trying.
 */
static unsigned int polls_of(struct wait_predictor *h)
{
	if (!h->oversubscribed)
		return ALONE_POLLS;
	if (!h->fresh || (h->doubt == DOUBT_MOST && ++h->passed % DOUBT_WAITS))
		return 1;
	return OVERSUBSCRIBED_POLLS;
}

/* How polls_of did, where it took more than one. */
static void learn(struct wait_predictor *h, bool came)
{
	if (came)
		h->doubt -= h->doubt > 0;
	else
		h->doubt += h->doubt < DOUBT_MOST;
}

/* Until when to poll, and until when at most, where others use the core meanwhile. */
struct deadline {
	uint64_t alone, shared;
};

static struct deadline deadline_from(uint64_t now)
{
	uint64_t spin_us = env_get()->spin_us > 0 ? (uint64_t)env_get()->spin_us : 0;

	return (struct deadline){now + spin_us, now + spin_us + OVERSUBSCRIBED_MOST * spin_us};
}

/*
 * Polls until ready (true), or for as long as it is worth it: a while, and again from each part of something longer
 * that comes. After a few looks it lets others run in between: what we wait for may be theirs to send, from this
 * very core. Where they want it, after one, and then it polls longer, as most of the time is theirs; but who
 * sleeps is woken sooner than others end who do not wait.
 */
static bool spin_as(struct wait_predictor *h, struct waiter *w, struct wait_for *what, uint64_t end)
{
	bool yields = wait_only_polls(w);
	unsigned int alone = yields ? 1 : polls_of(h), looks = 0, parts = what->parts;
	uint64_t now = clock_us();
	struct deadline to = deadline_from(now);
	bool ready;

	h->fresh = false;
	while (!(ready = what->ready(what, false))) {
		uint64_t theirs = 0;

		if (what->parts != parts) {
			parts = what->parts;
			now = clock_us(); /* that look may have taken long */
			to = deadline_from(now);
		}
		if (++looks < alone) {
			cpu_relax();
			now = clock_us();
		} else {
			theirs = give_way(&now);
			h->fresh = theirs >= OVERSUBSCRIBED_US;
			h->oversubscribed = h->fresh ? OVERSUBSCRIBED_STAYS
						     : h->oversubscribed - !!h->oversubscribed;
		}
		if (h->oversubscribed)
			to.alone = to.alone + theirs < to.shared ? to.alone + theirs : to.shared;
		if (!yields && (theirs >= HOG_US || now >= to.alone))
			break;
		if (now >= end)
			break;
	}
	if (alone == OVERSUBSCRIBED_POLLS && looks)
		learn(h, ready && looks < alone);
	return ready;
}

bool wait_spin(struct waiter *w, struct wait_for *what, uint64_t end)
{
	struct wait_predictor predictor;
	bool ready;

	__atomic_load(&w->predictor, &predictor, __ATOMIC_RELAXED);
	ready = spin_as(&predictor, w, what, end);
	__atomic_store(&w->predictor, &predictor, __ATOMIC_RELAXED);
	return ready;
}

void wait_give_way(struct waiter *w, unsigned int progress_calls, uint64_t seen)
{
	struct wait_polls *p = &w->polls;
	unsigned int count = progress_calls - __atomic_load_n(&p->from, __ATOMIC_RELAXED);
	uint64_t now = clock_us();

	if (__atomic_load_n(&p->seen, __ATOMIC_RELAXED) == seen &&
	    now - __atomic_load_n(&p->from_us, __ATOMIC_RELAXED) < (uint64_t)POLL_US * count)
		__atomic_store_n(&p->most,
				 give_way(&now) < OVERSUBSCRIBED_US ? WAIT_POLLS_ALONE
								    : WAIT_POLLS_OVERSUBSCRIBED,
				 __ATOMIC_RELAXED);
	__atomic_store_n(&p->seen, seen, __ATOMIC_RELAXED);
	__atomic_store_n(&p->from, progress_calls, __ATOMIC_RELAXED);
	__atomic_store_n(&p->from_us, now, __ATOMIC_RELAXED);
}
