/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that accesses our memory holds an access guard, a word that it writes itself: it may never
 * give it back, and may hold one without an access. So the wait ends in one of four ways:
 *   the guard is given back, or the peer has died;
 *   no connected peer has the holder's number: the guard is of nobody, and is taken away;
 *   each thread of the holder was seen elsewhere while the guard stood: the guard is taken away, and
 *   the peer is disconnected;
 *   neither is known until FI_WEFT_ACCESS_TIMEOUT: the memory may still be written to, so the close
 *   fails with -FI_EBUSY.
 */
#include <rdma/fi_errno.h>
#include <sched.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/threads.h"
#include "xfer/engine.h"
#include "conn/conn.h"
#include "conn/connect.h"
#include "xfer/worker.h"

#define SAY_MS   1000 /* between two log lines */
#define DOUBT_MS 1000 /* then the threads of a peer that holds a guard are looked at */
#define LOOK_MS  20   /* between two looks at them */

/* A wait for the direct accesses that one transport has noted. */
struct wait {
	struct worker *worker;
	const struct transport *t;
	void *state;
	uint64_t now, end, say; /* ms: time, end of the wait, next log line */
	uint32_t id;            /* of the holder that is waited for */
	uint64_t since, look;   /* ms: begin of the wait for it, next look at its threads */
	struct threads *threads;
};

static void quiesce_note(struct worker *worker, bool last)
{
	for (unsigned int i = 0; i < LINK_KINDS; i++)
		if (worker->conn.via[i].state && worker->conn.via[i].transport->quiesce)
			worker->conn.via[i].transport->quiesce(worker->conn.via[i].state, last);
}

static void quiesce_warn(const struct peer *peer, const char *what)
{
	LOG_WARN(LOG_MR, "close: %s (process %d) %s", contact_text(&peer->conn),
		 (int)connect_pid(peer->conn.sock), what);
}

static void quiesce_begin_peer(struct wait *w, uint32_t id)
{
	threads_end(w->threads);
	w->threads = NULL;
	w->id = id;
	w->since = w->now;
	w->look = w->now + DOUBT_MS;
}

/* Is each thread of the peer known not to be in the access that we have waited for? */
static bool quiesce_is_elsewhere(struct wait *w, const struct peer *peer)
{
	if (w->now < w->look)
		return false;
	w->look = w->now + LOOK_MS;
	if (!w->threads)
		w->threads = threads_begin(connect_pid(peer->conn.sock));
	return w->threads && threads_elsewhere(w->threads);
}

/* Handles the holder `id` of a guard that still stands. 0, or -FI_EBUSY: the wait is over. */
static int quiesce_judge(struct wait *w, uint32_t id)
{
	struct peer *peer = pool_find(&w->worker->conn.peer_pool, id);

	if (!peer || peer->conn.sock < 0) {
		LOG_PEER(LOG_MR,
			 "close: an access guard of peer %#x, which is not connected: taken away",
			 id);
		w->t->disown(w->state, id);
		return 0;
	}
	if (id != w->id)
		quiesce_begin_peer(w, id);
	if (w->now >= w->say) { /* it may be stopped in the middle of a copy */
		w->say = w->now + SAY_MS;
		quiesce_warn(peer, "accesses our memory directly: waiting for it");
	}
	if (quiesce_is_elsewhere(w, peer)) {
		quiesce_warn(
			peer,
			"holds an access guard, but no thread of it accesses our memory: disconnected");
		w->t->disown(w->state, id);
		conn_expel(&peer->conn);
	} else if (w->now >= w->end) {
		quiesce_warn(
			peer,
			"may still access our memory after FI_WEFT_ACCESS_TIMEOUT: not closed");
		return -FI_EBUSY;
	}
	return 0;
}

/*
 * Waits until the noted direct accesses have ended. Keeps the domain's lock: a peer's copy needs
 * nothing of us. 0 or -FI_EBUSY.
 */
static int wait_for_peers(struct worker *worker, enum link_kind kind)
{
	uint64_t start = clock_coarse_ms();
	struct wait w = {.worker = worker,
			 .t = worker->conn.via[kind].transport,
			 .state = worker->conn.via[kind].state,
			 .end = start + (uint64_t)env_get()->access_timeout,
			 .say = start + SAY_MS};
	uint32_t id;
	int err = 0;

	if (!w.state || !w.t->quiesce)
		return 0;
	while (!err && !w.t->quiesced(w.state, &id)) {
		w.now = clock_coarse_ms();
		err = quiesce_judge(&w, id);
		/* conn_poll notices the death of a peer and releases its access guards. */
		conn_poll(&worker->conn);
		sched_yield();
	}
	threads_end(w.threads);
	return err;
}

static int wait_for_all(struct worker *worker)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < LINK_KINDS; i++)
		err = wait_for_peers(worker, i);
	return err;
}

int worker_quiesce(struct worker *worker)
{
	quiesce_note(worker, true);
	return wait_for_all(worker);
}

void quiesce_begin(struct driven *d)
{
	quiesce_note(worker_of(d), false);
}

int quiesce_end(struct driven *d)
{
	return wait_for_all(worker_of(d));
}
