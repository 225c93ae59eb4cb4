/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for a counter: fi_cntr_wait, and the parts of fi_trywait, wait sets and poll sets. */
#include "cntr/cntr.h"

#define MUST_POLL_NAP_MS 1 /* nap when the sleeper drives workers that no descriptor announces */

static struct cntr_mark mark_now(struct cntr *c)
{
	/* After wait_arm: partner cntr_done, which changes a value and then checks for sleepers. */
	return (struct cntr_mark){__atomic_load_n(&c->value, __ATOMIC_SEQ_CST),
				  __atomic_load_n(&c->error, __ATOMIC_SEQ_CST)};
}

/* Deferred work may change any counter: while there is some, all counters drive workers. */
static bool cntr_wait_driving(const struct cntr *c)
{
	return workers_any(&c->workers) || domain_defers(c->dom);
}

unsigned int cntr_progress(struct cntr *c)
{
	return cntr_wait_driving(c) ? workers_progress(c->dom, &c->workers) : 0;
}

/* Arms the workers. Returns false if one has something already. `w` as for workers_arm. */
static bool arm_workers(struct cntr *c, struct waiter *w, int *nap)
{
	*nap = 0;
	if (!cntr_wait_driving(c))
		return true;
	if (!workers_arm(c->dom, &c->workers, w, nap))
		return false;
	if (wait_must_poll(&c->wait))
		*nap = MUST_POLL_NAP_MS;
	return true;
}

struct cntr_sleep {
	struct wait_for what;
	struct cntr *cntr;
	uint64_t threshold;
	uint64_t error; /* value at the start; another one ends the wait */
	bool failed;
};

static bool cntr_wait_reached(struct cntr_sleep *sleep)
{
	struct cntr_mark now = mark_now(sleep->cntr);

	if (now.value >= sleep->threshold)
		return true;
	sleep->failed = now.error != sleep->error;
	return sleep->failed;
}

/* Like cntr_progress, during a wait. */
static unsigned int progress_waiting(struct cntr *c)
{
	unsigned int parts;

	if (!cntr_wait_driving(c) || c->dom->unlocked)
		return cntr_progress(c);
	shard_take(&c->workers.shard);
	parts = c->workers.shard.shard->parts;
	workers_progress_waiting(c->dom, &c->workers, &c->wait);
	parts = c->workers.shard.shard->parts - parts;
	shard_give(&c->workers.shard);
	return parts;
}

static bool wait_ready(struct wait_for *what, bool arm)
{
	struct cntr_sleep *sleep = (struct cntr_sleep *)what;
	struct cntr *c = sleep->cntr;

	for (unsigned int tries = 0; tries < WORKERS_ARM_TRIES; tries++) {
		what->parts += progress_waiting(c);
		if (cntr_wait_reached(sleep))
			return true;
		/* Arming makes no progress; another thread may have, before the workers were armed. */
		if (!arm || arm_workers(c, &c->wait, &what->nap))
			return arm && cntr_wait_reached(sleep);
	}
	what->nap = WORKERS_NAP_MS;
	return false;
}

int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct cntr *c = cntr_of(fid);
	struct cntr_sleep sleep = {.what.ready = wait_ready, .cntr = c, .threshold = threshold};
	uint64_t end = wait_end(timeout);
	int ret;

	/* FI_WAIT_NONE is the default, and programs wait with it: wait_until polls then. */
	/* A failure that the application has not read counts, even from before this call. */
	sleep.error = __atomic_load_n(&c->error_seen, __ATOMIC_RELAXED);
	do { /* a signal does not end the wait */
		ret = wait_until(&c->wait, &sleep.what, end);
	} while (ret == -FI_EINTR);
	workers_uncover(c->dom, &c->wait);
	if (ret || !sleep.failed)
		return ret;
	__atomic_store_n(&c->error_seen, __atomic_load_n(&c->error, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	return -FI_EAVAIL;
}

/* Returns true once per change. */
static bool cntr_wait_changed(struct cntr *c)
{
	struct cntr_mark now;
	bool differs;

	lock_take(&c->mark_lock);
	now = mark_now(c);
	differs = now.value != c->reported.value || now.error != c->reported.error;
	c->reported = now;
	lock_give(&c->mark_lock);
	return differs;
}

static bool cntr_wait_ready(struct waitable *self)
{
	struct cntr *c = (struct cntr *)self;

	cntr_progress(c);
	return cntr_wait_changed(c);
}

/* Successes that the application added or set are no news; all errors are. */
static struct wait_view cntr_wait_look(struct waitable *self)
{
	struct cntr *c = (struct cntr *)self;
	struct cntr_mark now = mark_now(c);

	return (struct wait_view){c->dom, &c->ref,
				  now.value - __atomic_load_n(&c->added, __ATOMIC_RELAXED),
				  now.error};
}

static bool cntr_wait_polled(struct waitable *self, struct wait_view *seen)
{
	struct wait_view now;
	bool differs;

	cntr_progress((struct cntr *)self);
	now = cntr_wait_look(self);
	differs = now.done != seen->done || now.failed != seen->failed;
	*seen = now;
	return differs;
}

/*
 * A thread that sleeps on a condition cannot drive the workers, and their descriptors do not wake
 * it: the progress thread must drive them.
 */
static bool cntr_wait_driven(struct cntr *c)
{
	if (!wait_must_poll(&c->wait) || !cntr_wait_driving(c))
		return true;
	return progress_start(c->dom) == 0;
}

static int cntr_wait_arm(struct waitable *self)
{
	struct cntr *c = (struct cntr *)self;
	int nap;

	if (!cntr_wait_driven(c))
		return -FI_EAGAIN;
	wait_arm(&c->wait);
	wait_drain(&c->wait);
	cntr_progress(c);
	if (!arm_workers(c, NULL, &nap) || (nap && !wait_must_poll(&c->wait)) ||
	    cntr_wait_changed(c))
		return -FI_EAGAIN;
	if (wait_must_poll(&c->wait))
		progress_take_over(c->dom);
	return 0;
}

const struct waitable_ops cntr_waitable_ops = {cntr_wait_arm, cntr_wait_ready, cntr_wait_look,
					       cntr_wait_polled};
