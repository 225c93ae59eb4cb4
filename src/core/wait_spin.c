/* SPDX-License-Identifier: BSD-2-Clause */
/* How long to poll before a sleep, and when polling threads yield the core. */
#include <sched.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/lock.h"
#include "core/wait.h"

#define ALONE_POLLS          16   /* polls before a yield when alone: a microsecond or two */
#define OVERSUBSCRIBED_US    2    /* a yield that takes longer let another thread run */
#define OVERSUBSCRIBED_STAYS 64   /* yields without another thread until the core counts as ours */
#define OVERSUBSCRIBED_MOST  20   /* limit of polling on a shared core, in multiples of spin_us */
#define HOG_US               1000 /* a longer yield went to a thread that does not wait */
#define OVERSUBSCRIBED_POLLS 64   /* polls that take about as long as a yield */
#define DOUBT_MOST           8    /* failed phases less successful ones, until most are skipped */
#define DOUBT_WAITS          64   /* then only one wait in so many polls */
#define POLL_US              8    /* longer (us) than a read that finds nothing takes */

/* Yields the core. Returns how long (us) other threads had it; *now: the time after. */
static uint64_t give_way(uint64_t *now)
{
	uint64_t before = clock_us();

	sched_yield();
	*now = clock_us();
	return *now - before;
}

/*
 * Returns how many polls to make before a yield. A thread that just regained a shared core is often the last of several
 * that wait: the missing message then comes from another core, and a yield to threads that wait for the same would only
 * delay it. Whether polling pays then is learned by trying.
 */
static unsigned int polls_of(struct wait_predictor *h)
{
	if (!h->oversubscribed)
		return ALONE_POLLS;
	if (!h->fresh || (h->doubt == DOUBT_MOST && ++h->passed % DOUBT_WAITS))
		return 1;
	return OVERSUBSCRIBED_POLLS;
}

/* Learns whether polling more than once on a regained core paid. */
static void wait_spin_learn(struct wait_predictor *h, bool came)
{
	if (came)
		h->doubt -= h->doubt > 0;
	else
		h->doubt += h->doubt < DOUBT_MOST;
}

/* Ends of polling: alone, and at most while other threads use the core. */
struct deadline {
	uint64_t alone, shared;
};

static struct deadline deadline_from(uint64_t now)
{
	uint64_t spin_us = env_get()->spin_us > 0 ? (uint64_t)env_get()->spin_us : 0;

	return (struct deadline){now + spin_us, now + spin_us + OVERSUBSCRIBED_MOST * spin_us};
}

/*
 * Polls until ready (true), or for spin_us, again after each part of a longer operation. Yields
 * after a few polls, since the thread that is to send to us may need this very core. If other
 * threads use the core, yields after each poll and polls longer, as most of the time is theirs; but
 * no longer if one of them does not wait itself (HOG_US): a sleeper regains the core sooner.
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
			now = clock_us(); /* the poll may have taken long */
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
		wait_spin_learn(h, ready && looks < alone);
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
