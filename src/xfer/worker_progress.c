/* SPDX-License-Identifier: BSD-2-Clause */
/* Progress of a worker: what is done at every call, rarely, or not at all while nothing can have come. */
#include "base/clock.h"
#include "conn/conn.h"
#include "conn/conn_options.h"
#include "xfer/group.h"
#include "xfer/msg/tx.h"
#include "xfer/rma/rma.h"
#include "xfer/stats.h"
#include "xfer/worker.h"

/*
 * Progress calls between polls of the sockets, 2^n - 1: while operations wait for a connection, whose peer may have sent
 * already; while others connect to us; and otherwise, then not before POLL_MS.
 */
#define POLL_CALLS_WAITED 0u
#define POLL_CALLS_BUSY   7u
#define POLL_CALLS_IDLE   IDLE_CALLS_MAX
#define POLL_MS           1
/* Progress calls between two calls of rma_help, 2^n - 1. */
#define HELP_CALLS 63u
/* Progress calls before connections are closed: a peer may send without pause. */
#define LAST_CALLS 4096

static __attribute__((noinline, cold)) bool flush_busy(struct worker *worker)
{
	bool progressed = false;

	LIST_EACH_SAFE_OF (struct peer, peer, &worker->busy, tx.in_busy) {
		if (contact_expelled(&peer->conn))
			conn_expel(&peer->conn);
		else
			progressed |= tx_flush(peer);
	}
	return progressed;
}

static __attribute__((noinline, cold)) bool poll_sockets(struct worker *worker)
{
	uint64_t now = clock_coarse_ms();
	bool heard, expecting = worker->conn.handshakes || worker->conn.acceptor.count;

	if (!worker->conn.opener.armed && !expecting && now < worker->next_poll)
		return false;
	worker->next_poll = now + POLL_MS;
	worker->conn.opener.armed = worker->awaited = false;
	worker_stuck_check(worker, now);
	stats_poll(worker);
	heard = conn_poll(&worker->conn);
	conn_options_tick(&worker->conn, now); /* the poll may have heard of its end */
	return heard;
}

/* Progress calls between polls of the sockets. */
static inline unsigned int poll_calls(const struct worker *worker)
{
	if (worker->conn.handshakes)
		return POLL_CALLS_WAITED;
	return worker->conn.acceptor.count ? POLL_CALLS_BUSY : POLL_CALLS_IDLE;
}

/*
 * Are the sockets to be polled? Not by the call in which something came that may have woken a sleeper, unless it wants
 * what they have: it returns sooner, and the next call polls them.
 */
static inline bool sockets_due(const struct worker *worker, bool progressed)
{
	return !(worker->conn.driven.idle.progress_calls & poll_calls(worker)) ||
	       (worker->conn.opener.armed &&
		(worker->awaited || !(worker->conn.opener.sleepers && progressed)));
}

/* Has the next progress call nothing to do but to poll the sockets, if that is due? */
static bool worker_progress_is_idle(const struct worker *worker)
{
	if (worker->conn.opener.armed || worker->conn.opener.sleepers ||
	    domain_defers(worker->conn.driven.dom) || worker->coll || !list_empty(&worker->busy) ||
	    !list_empty(&worker->awaiting) || !list_empty(&worker->acks_pending))
		return false;
	for (unsigned int i = 0; i < worker->conn.opener.opened; i++)
		if (!worker->open[i].idle || !worker->open[i].idle(worker->open[i].state))
			return false;
	return true;
}

bool worker_progress(struct worker *worker)
{
	bool progressed = false, heard = false;

	if (__builtin_expect(worker->conn.in_progress, 0))
		return false;
	worker->conn.in_progress = true;
	idle_end(&worker->conn.driven.idle);
	for (unsigned int i = 0; i < worker->conn.opener.opened; i++)
		progressed |= worker->open[i].progress(worker->open[i].state);
	if (__builtin_expect(!list_empty(&worker->acks_pending), 0))
		rma_acknowledge(worker);
	if (__builtin_expect(!list_empty(&worker->busy), 0))
		progressed |= flush_busy(worker);
	if (__builtin_expect(!list_empty(&worker->awaiting), 0) && !(++worker->waits & HELP_CALLS))
		progressed |= rma_help(worker, false);
	worker->conn.driven.idle.progress_calls++;
	if (__builtin_expect(sockets_due(worker, progressed), 0))
		heard = poll_sockets(worker);
	/* The calls above may have read the byte that was to wake a sleeper. */
	if (__builtin_expect(worker->conn.opener.sleepers && (progressed || heard), 0))
		station_wake(&worker->conn);
	worker->conn.in_progress = false;
	if (__builtin_expect(worker->coll != NULL, 0))
		progressed |= worker->groups->progress(worker->coll);
	if (__builtin_expect(domain_due(worker->conn.driven.dom), 0))
		defer_run(worker->conn.driven.dom);
	/*
	 * Grants the calls before the next poll of the sockets. What makes the worker busy until then ends the grant,
	 * except for one-sided operations: rma_help is called rarely in any case.
	 */
	if (worker_progress_is_idle(worker))
		idle_begin(&worker->conn.driven.idle,
			   ~worker->conn.driven.idle.progress_calls & poll_calls(worker));
	return progressed;
}

void worker_near(struct driven *d)
{
	struct worker *worker = worker_of(d);

	if (worker->conn.in_progress)
		return;
	worker->conn.in_progress = true;
	worker->near.progress(worker->near.state);
	if (__builtin_expect(!list_empty(&worker->acks_pending), 0))
		rma_acknowledge(worker);
	worker->conn.in_progress = false;
}

/* Does an answer to the peer wait for space? */
static bool worker_progress_owes(const struct peer *peer)
{
	return peer->conn.state == PEER_CONNECTED && !contact_expelled(&peer->conn) &&
	       (!list_empty(&peer->tx.controls) || !list_empty(&peer->txreqs[TXREQ_REPLY]));
}

/* What peers' requests ask for has been done and answered, if the request had come: nobody hears of the end instead. */
bool worker_serve_last(struct worker *worker)
{
	for (unsigned int i = 0; i < LAST_CALLS; i++)
		if (!worker_progress(worker) && worker_arm(worker))
			break;
	LIST_EACH (node, &worker->busy)
		if (worker_progress_owes(LIST_ENTRY(node, struct peer, tx.in_busy)))
			return false;
	return true;
}
