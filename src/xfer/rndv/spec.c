/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/rndv/spec.h"

#include "base/clock.h"
#include "xfer/worker.h"

/*
 * If no fragment arrives for this long (us), assume that the sender was descheduled and read the
 * rest ourselves.
 */
#define QUIET_US 10
/*
 * A receiver whose progress calls are further apart than this (us) gains nothing from speculative
 * fragments.
 */
#define RARE_US 100
/* Messages that one progress call checks, oldest first. */
#define POLLS 64
/*
 * Messages that one progress call reads by CMA at most if calls are rare: as many as it reads RTS.
 */
#define FINISHED_PER_CALL 64

bool spec_begin(struct rx *rx, struct recv *r, const struct message *m, const struct wire_rts *rts,
		size_t capacity, void *base)
{
	struct rxreq *a = rxreq_begin(rx, r, m, capacity, base);
	struct worker *worker = m->peer->worker;

	if (!a)
		return false;
	a->ack_pending = a->spec = true;
	a->rts = *rts;
	/* Calls before this one did not look at the clock: they say nothing about how rare calls are. */
	if (list_empty(&worker->spec))
		worker->spec_us = clock_us();
	list_push(&worker->spec, &a->in_spec);
	idle_end(&worker->driven.idle);
	m->peer->rx.fragment_us = 0;
	return true;
}

static struct rxreq *find(const struct list *list, const struct peer *peer, uint32_t id)
{
	LIST_EACH (node, list) {
		struct rxreq *a = LIST_ENTRY(node, struct rxreq, in_spec);

		if (a->peer == peer && wire_id(a->head) == id)
			return a;
	}
	return NULL;
}

struct rxreq *spec_find(struct worker *worker, const struct peer *peer, uint32_t id)
{
	struct rxreq *a = find(&worker->spec, peer, id);

	return a ? a : find(&worker->spec_only, peer, id);
}

void spec_advance(struct rxreq *a)
{
	a->peer->rx.fragment_us = 0;
	if (a->len > WIRE_SPEC_MAX && a->received >= WIRE_SPEC_MAX / 2 && !a->asked)
		rxreq_ask(a);
}

/*
 * Reads the bytes that no fragment has delivered by CMA. Without CMA, asks the sender to stream
 * them (CTS).
 */
static void finish(struct rxreq *a)
{
	list_remove(&a->in_spec);
	if (rxreq_read(a, &a->rts))
		return;
	list_push(&a->peer->worker->spec_only, &a->in_spec);
	if (!a->asked)
		rxreq_ask(a);
}

/* The oldest message, or NULL. */
static struct rxreq *oldest(const struct worker *worker)
{
	return list_empty(&worker->spec) ? NULL
					 : LIST_ENTRY(worker->spec.next, struct rxreq, in_spec);
}

/* The oldest message whose sender has been quiet for QUIET_US, or NULL. */
static struct rxreq *overdue(const struct worker *worker)
{
	int looks = 0;

	LIST_EACH (node, &worker->spec) {
		struct rxreq *a = LIST_ENTRY(node, struct rxreq, in_spec);
		struct peer *peer = a->peer;

		if (!peer->rx.fragment_us)
			peer->rx.fragment_us = worker->spec_us;
		if (worker->spec_us - peer->rx.fragment_us > QUIET_US)
			return a;
		if (++looks == POLLS)
			break;
	}
	return NULL;
}

/*
 * Ends one message by `finish`; its sender has QUIET_US again for its next message. False: `a` is
 * NULL.
 */
static bool finish_one(struct rxreq *a)
{
	if (!a)
		return false;
	a->peer->rx.fragment_us = 0;
	finish(a);
	return true;
}

bool spec_poll(struct worker *worker)
{
	bool rare = clock_us() - worker->spec_us > RARE_US;

	if (rare)
		finish_one(oldest(worker));
	return rare;
}

static bool finish_some(struct worker *worker, size_t most)
{
	size_t count = 0;

	while (count < most && finish_one(oldest(worker)))
		count++;
	return count != 0;
}

bool spec_progress(struct worker *worker, bool rare)
{
	worker->spec_us = clock_us();
	return rare ? finish_some(worker, FINISHED_PER_CALL) : finish_one(overdue(worker));
}

static struct rxreq *earlier(const struct peer *peer, const struct rxreq *than)
{
	LIST_EACH (node, &peer->worker->spec) {
		struct rxreq *a = LIST_ENTRY(node, struct rxreq, in_spec);

		if (a == than)
			return NULL;
		if (a->peer == peer)
			return a;
	}
	return NULL;
}

void spec_overtaken(struct peer *peer, const struct rxreq *by)
{
	struct rxreq *a;

	while ((a = earlier(peer, by)))
		finish(a);
}

bool spec_release_idle(struct worker *worker)
{
	return finish_some(worker, SIZE_MAX);
}
