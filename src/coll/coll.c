/* SPDX-License-Identifier: BSD-2-Clause */
/* Hooks of the engine (xfer/group.h): messages to groups, disconnected peers, progress. */
#include "coll/coll.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/once.h"
#include "coll/group/group.h"
#include "coll/op.h"
#include "conn/conn.h"
#include "xfer/msg/tx.h"
#include "xfer/worker.h"

/*
 * Progress calls per reading of the clock, which costs half as much as an idle progress call. While
 * a poll is due, sleepers make a progress call each millisecond.
 */
#define POLL_CALLS 16

struct coll *coll_of(struct worker *worker)
{
	struct coll *c = worker->coll;

	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->worker = worker;
	list_init(&c->groups);
	for (unsigned int i = 0; i < COLL_BUCKETS; i++)
		list_init(&c->bucket[i]);
	rx_init(&c->early, worker->conn.driven.dom);
	c->early.budget = &worker->budget;
	list_init(&c->joins);
	list_init(&c->kept);
	list_init(&c->leaves);
	list_init(&c->failures);
	list_init(&c->ready);
	list_init(&c->broken);
	list_init(&c->idle);
	pool_init(&c->group_pool, sizeof(struct group));
	pthread_mutex_init(&c->watching, NULL);
	pthread_mutex_init(&c->joining, NULL);
	c->driver.fd = -1;
	worker->coll = c;
	idle_end(&worker->conn.driven.idle);
	return c;
}

static void coll_close(struct coll *c)
{
	struct list *node;

	join_close(c);
	rx_fini(&c->early);
	while ((node = list_pop(&c->idle)))
		free(LIST_ENTRY(node, struct op, in_ready));
	pool_fini(&c->group_pool);
	free(c->managed);
	pthread_mutex_destroy(&c->watching);
	pthread_mutex_destroy(&c->joining);
	free(c);
}

/* ---- Connecting and sending ------------------------------------------------------------------ */

int coll_connect(struct coll *c, struct peer *peer)
{
	int err;

	if (peer->conn.state != PEER_IDLE)
		return 1;
	/* The peer's last messages may still come, for a bounded time; later polls connect. */
	if (peer->conn.unread_ms && clock_coarse_ms() - peer->conn.unread_ms < COLL_LATER_MS) {
		coll_wake_in(c, COLL_LATER_MS);
		return 0;
	}
	err = conn_start(&peer->conn);
	return err ? err : 1;
}

static struct packet coll_packet_of(const struct wire_group *msg)
{
	return (struct packet){
		.head = WIRE_HEAD(WIRE_GROUP, 0, 0, 0), .payload = msg, .len = sizeof(*msg)};
}

void coll_answer(struct peer *peer, const struct wire_group *msg)
{
	struct packet p = coll_packet_of(msg);

	tx_control_data(peer, &p);
}

int coll_say(struct coll *c, fi_addr_t addr, const struct wire_group *msg)
{
	struct peer *peer = peer_get(c->worker, addr);
	struct packet p = coll_packet_of(msg);
	int ret = 0;

	if (!peer)
		return -FI_EADDRNOTAVAIL;
	if (peer->conn.state != PEER_IDLE)
		tx_control_data(peer, &p);
	else
		ret = tx_ahead(peer, &p, NULL);
	return ret < 0 ? ret : 0;
}

/* ---- Receiving ------------------------------------------------------------------------------- */

/* NULL: the endpoint is closing, or memory is out. */
static struct coll *coll_heard(struct worker *worker)
{
	return worker->conn.closing ? NULL : coll_of(worker);
}

/* Returns the group of a message if the peer is the member that the message names. */
static struct group *group_for(struct worker *worker, struct peer *peer, const struct packet *p)
{
	struct coll *c = worker->coll;
	struct group *g = c && !worker->conn.closing ? group_find(c, p->data) : NULL;

	return g && !g->err && group_has(g, p->tag & WIRE_GROUP_RANK_MASK, peer) ? g : NULL;
}

static bool coll_take(struct worker *worker, struct peer *peer, const struct packet *p,
		      struct rx **queues)
{
	struct group *g = group_for(worker, peer, p);

	*queues = g ? &g->rx : NULL;
	return g && exchange_take(g, peer, p);
}

static struct rx *coll_context(struct worker *worker, struct peer *peer, const struct packet *p)
{
	struct group *g = group_for(worker, peer, p);

	return g ? &g->rx : NULL;
}

static struct rx *coll_elsewhere(struct worker *worker, struct peer *peer, const struct packet *p)
{
	struct coll *c = coll_heard(worker);
	struct group *g = c ? group_find(c, p->data) : NULL;

	if (!c)
		return NULL;
	if (!g)
		return early_context(c, peer, p);
	if (g->err && group_has(g, p->tag & WIRE_GROUP_RANK_MASK, peer))
		return group_answer(g, peer);
	member_refuse_message(c, peer, p->tag);
	return NULL;
}

static void coll_hear(struct worker *worker, struct peer *peer, const struct packet *p)
{
	struct coll *c = coll_heard(worker);
	struct wire_group msg;

	if (!c)
		return;
	if (p->len != sizeof(msg)) {
		LOG_PEER(LOG_EP_DATA,
			 "a control message about a group has %zu bytes instead of %zu: dropped",
			 p->len, sizeof(msg));
		return;
	}
	once_copy(&msg, p->payload, sizeof(msg));
	if (msg.error > UINT16_MAX)
		msg.error = FI_EOTHER;
	if (msg.kind == WIRE_GROUP_ABORT || msg.kind == WIRE_GROUP_LEAVE)
		leave_hear(c, peer, &msg);
	else if (msg.kind == WIRE_GROUP_HERE)
		leave_hear_ask(c, peer, &msg);
	else
		join_hear(c, peer, &msg);
}

/*
 * A member that disconnected in good order has sent all that others need from it; a member that
 * later needs more cannot reach it and finds out. The same holds for a member that closed the
 * group, however its connection ends. A failed connect attempt may have been to such a member.
 */
static void coll_peer_failed(struct coll *c, struct peer *peer, int err)
{
	bool orderly = err == FI_ESHUTDOWN;
	uint32_t rank;

	early_peer_failed(c, peer);
	kept_drop_of(c, peer);
	join_peer_failed(c, peer, err);
	LIST_EACH_OF (struct group, g, &c->groups, in_coll) {
		bool full = g->rx.unexpected_bytes > g->rx.unexpected_max;

		rx_forget_peer(&g->rx, peer);
		rank = g->id && !g->err ? group_rank(g, peer) : g->size;
		if (rank == g->size)
			continue;
		leave_doubt_again(g, rank);
		if (full) /* the peer could connect again and leave as many messages again */
			group_fail(g, FI_ENOBUFS);
		else if (orderly || leave_has(g, rank))
			coll_wake_in(c, COLL_LATER_MS);
		else if (!peer->conn.real)
			group_miss(g, rank, err);
		else
			group_fail(g, err);
	}
}

/* ---- Progress -------------------------------------------------------------------------------- */

void coll_wake_in(struct coll *c, unsigned int ms)
{
	uint64_t at = clock_coarse_ms() + ms;

	if (!c->wake_at || at < c->wake_at)
		c->wake_at = at;
	if (c->worker->conn.opener
		    .sleepers) /* sleepers must poll from now on, but nothing else wakes them */
		station_wake(&c->worker->conn);
}

static void coll_not_taken(struct coll *c)
{
	coll_wake_in(c, COLL_LATER_MS);
}

static bool coll_has_groups(const struct coll *c)
{
	return !list_empty(&c->groups);
}

static bool coll_waits(const struct coll *c)
{
	return c->wake_at || coll_ready(c);
}

static bool coll_look(struct coll *c)
{
	uint64_t now = clock_coarse_ms();

	join_poll(c, now);
	if (!c->wake_at || now < c->wake_at)
		return false;
	c->wake_at = 0;
	LIST_EACH (node, &c->groups)
		group_poll(LIST_ENTRY(node, struct group, in_coll));
	return true;
}

static bool coll_run_once(struct coll *c, bool looks)
{
	struct list *node;
	bool any;

	if (c->running)
		return false;
	c->running = true;
	any = looks && coll_look(c);
	for (;;) {
		if ((node = list_pop(&c->broken)))
			group_end(LIST_ENTRY(node, struct group, in_broken));
		else if ((node = list_pop(&c->ready)))
			op_step(LIST_ENTRY(node, struct op, in_ready));
		else
			break;
		any = true;
	}
	c->running = false;
	return any;
}

bool coll_run(struct coll *c)
{
	return coll_run_once(c, false);
}

static bool coll_progress(struct coll *c)
{
	bool looks =
		!list_empty(&c->joins) || (c->wake_at && ++c->progress_calls % POLL_CALLS == 0);

	if (__builtin_expect(!looks && !coll_ready(c), 1))
		return false;
	return coll_run_once(c, looks);
}

const struct group_ops coll_groups = {
	.take = coll_take,
	.context = coll_context,
	.elsewhere = coll_elsewhere,
	.hear = coll_hear,
	.peer_failed = coll_peer_failed,
	.forget_peer = kept_drop_of,
	.not_taken = coll_not_taken,
	.progress = coll_progress,
	.has_groups = coll_has_groups,
	.waits = coll_waits,
	.close = coll_close,
	.entries = &coll_entries,
};
