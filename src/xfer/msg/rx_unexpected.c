/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unexpected messages: kept up to a mark of the receive context and of the worker, beyond which their senders get XOFF
 * (not those of collective groups), and up to the limits of the worker's budget.
 */
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "base/log.h"
#include "cntr/cntr.h"
#include "core/av.h"
#include "core/cq.h"
#include "xfer/events.h"
#include "link/wire.h"
#include "xfer/worker.h"
#include "xfer/msg/budget.h"
#include "xfer/msg/rx.h"
#include "xfer/msg/tx.h"

/*
 * Do senders have to pause? Those who have less than their share go on, lest one sender holds all others up; a shared
 * context does not know shares.
 */
static bool rx_unexpected_pauses(const struct rx *rx, const struct peer *peer)
{
	const struct rx *q = rx->q;
	bool full = q->unexpected_bytes > q->unexpected_max;

	if (!q->budget)
		return full;
	return (full || budget_full(q->budget, q->unexpected_max)) &&
	       budget_pauses(peer, q->unexpected_max);
}

static void send_xoff(struct rx *q, struct peer *peer)
{
	/* A disconnected peer sends nothing more. */
	if (peer->rx.xoff_sent || peer->conn.state == PEER_IDLE)
		return;
	LOG_INFO(
		LOG_EP_DATA,
		"%zu bytes of unexpected messages exceed FI_WEFT_UNEXPECTED_MAX=%zu: sending XOFF to the peer",
		q->unexpected_bytes, q->unexpected_max);
	peer->rx.xoff_sent = true;
	peer->counts.xoff_sent++;
	list_push(&q->paused, &peer->rx.in_xoff);
	if (q->budget && q->unexpected_bytes <= q->unexpected_max)
		q->budget->pausing = true;
	tx_control(peer, WIRE_HEAD(WIRE_XOFF, 0, 0, 0), 0);
}

static void send_xon(struct peer *peer)
{
	list_remove(&peer->rx.in_xoff);
	peer->rx.xoff_sent = false;
	peer->rx.unheard = 0;
	tx_control(peer, WIRE_HEAD(WIRE_XON, 0, 0, 0), 0);
}

void rx_send_xon(struct rx *rx)
{
	while (!list_empty(&rx->paused))
		send_xon(LIST_ENTRY(rx->paused.next, struct peer, rx.in_xoff));
}

/* A message has been taken out of context `q`. `peer`: its sender, or NULL. */
static void rx_unexpected_resume(struct rx *q, struct peer *peer)
{
	struct budget *b = q->budget;

	if (!list_empty(&q->paused) && q->unexpected_bytes <= q->unexpected_max / 2)
		rx_send_xon(q);
	else if (peer && peer->rx.xoff_sent && budget_resumes(peer, q->unexpected_max))
		send_xon(peer);
	if (!b || !b->pausing || budget_full(b, q->unexpected_max / 2))
		return;
	b->pausing = false;
	for (unsigned int i = 0; i < WORKER_RX_MAX; i++)
		if (b->worker->rx[i])
			rx_send_xon(b->worker->rx[i]->q);
}

/* May a message of the peer be kept? False: too many bytes since XOFF, of messages that do not heed it. */
static bool rx_unexpected_bearable(struct peer *peer, uint64_t head, size_t bytes)
{
	if (!peer->rx.xoff_sent || rx_wants_ack(head))
		return true;
	peer->rx.unheard += bytes;
	if (peer->rx.unheard > WIRE_KEPT_MAX)
		contact_over_budget(&peer->conn, "of messages since it was asked to pause",
				    WIRE_KEPT_MAX);
	return !contact_expelled(&peer->conn);
}

/* The same for messages of collective groups, which ignore XOFF and have a budget of their own. */
static bool bearable_of_group(struct peer *peer, size_t bytes)
{
	if (peer->rx.kept + bytes > WIRE_KEPT_MAX)
		contact_over_budget(&peer->conn, "of early messages to collective groups",
				    WIRE_KEPT_MAX);
	return !contact_expelled(&peer->conn);
}

/* `u` is on a list of `q`. */
static void count_kept(struct rx *q, struct budget *budget, struct unexpected *u)
{
	q->unexpected_bytes += rx_cost(u);
	q->unexpected_count++;
	if (wire_of_group(u->head) && u->peer)
		u->peer->rx.kept += rx_cost(u);
	budget_charge(budget, u);
	rx_index_add(q, u);
}

static void uncount_kept(struct rx *q, struct unexpected *u)
{
	q->unexpected_bytes -= rx_cost(u);
	q->unexpected_count--;
	if (wire_of_group(u->head) && u->peer)
		u->peer->rx.kept -= rx_cost(u);
	rx_index_remove(q, u);
	budget_uncharge(u->rx->budget, u);
}

static struct unexpected *of_payload(void *payload)
{
	return LIST_ENTRY(payload, struct unexpected, payload);
}

bool rx_hold(struct opener *o, uint32_t src, size_t bytes)
{
	struct worker *worker = worker_opener(o);
	struct peer *peer = pool_find(&worker->conn.peer_pool, src);

	return peer && budget_hold(peer, bytes);
}

void rx_release(struct opener *o, uint32_t src, size_t bytes)
{
	struct worker *worker = worker_opener(o);
	struct peer *peer = pool_find(&worker->conn.peer_pool, src);

	if (peer)
		budget_release(peer, bytes);
}

/* There is no memory for a packet of the peer. */
static void rx_unexpected_lose(struct worker *worker, struct peer *peer, const struct packet *p)
{
	bool alone = wire_op(p->head) == WIRE_MSG && !wire_of_group(p->head);
	struct rx *rx = alone ? rx_context_of(worker, peer, p) : NULL;

	if (rx)
		rx_message_lost(rx, peer, p);
	if (!contact_expelled(&peer->conn))
		contact_starve(&peer->conn, "a packet");
}

void *rx_payload_new(struct opener *o, uint32_t src, const struct packet *p)
{
	struct worker *worker = worker_opener(o);
	struct peer *peer = pool_find(&worker->conn.peer_pool, src);
	struct unexpected *u;

	if (!peer || !budget_hold(peer, sizeof(*u) + p->len))
		return NULL;
	u = spare_get(&worker->spare, sizeof(*u) + p->len);
	if (!u) {
		budget_release(peer, sizeof(*u) + p->len);
		rx_unexpected_lose(worker, peer, p);
		return NULL;
	}
	u->kept = p->len;
	return u->payload;
}

void rx_payload_free(struct opener *o, uint32_t src, void *payload)
{
	struct worker *worker = worker_opener(o);
	if (!payload)
		return;
	rx_release(o, src, rx_cost(of_payload(payload)));
	spare_put(&worker->spare, of_payload(payload));
}

void rx_deliver_collected(struct opener *o, uint32_t src, const struct packet *p)
{
	struct worker *worker = worker_opener(o);
	rx_release(o, src, sizeof(struct unexpected) + p->len);
	worker->collected = of_payload((void *)(uintptr_t)p->payload);
	rx_deliver(o, src, p);
	spare_put(&worker->spare, worker->collected);
	worker->collected = NULL;
}

/* Returns the memory in which the payload lies, if it is ours, else a copy; NULL: no memory, or it was lost before. */
static struct unexpected *rx_unexpected_memory_of(const struct message *m, size_t payload_len)
{
	struct worker *worker = peer_worker(m->peer);
	struct unexpected *u = worker->collected;

	if (u && m->payload == u->payload) {
		worker->collected = NULL;
		return u;
	}
	if (payload_len && !m->payload)
		return NULL;
	u = spare_get(&worker->spare, sizeof(*u) + payload_len);
	if (u && payload_len)
		copy_bytes(u->payload, m->payload, payload_len);
	return u;
}

static struct unexpected *rx_unexpected_keep(struct rx *rx, const struct message *m,
					     size_t payload_len)
{
	struct unexpected *u = rx_unexpected_memory_of(m, payload_len);

	if (!u)
		return NULL;
	memset(u, 0, offsetof(struct unexpected, payload));
	u->rx = rx;
	u->peer = m->peer;
	u->src = m->src;
	u->head = m->head;
	u->tag = m->tag;
	u->data = m->data;
	u->len = m->len;
	u->kept = payload_len;
	for (int by = 0; by < RX_KEYS; by++)
		list_init(&u->equal[by].all);
	return u;
}

/* A message is lost, and there is no memory to say which. */
static void tell_loss(struct rx *rx)
{
	if (rx->cq)
		cq_overrun(rx->cq);
	else if (rx->cntr)
		cntr_fail(rx->cntr);
}

/*
 * There is no memory for a message: keeps its place in the queue. Who waits for anything else than a plain message learns of it
 * by the end of the connection.
 */
static struct unexpected *keep_lost(struct rx *rx, const struct message *m)
{
	struct unexpected *u;

	if (wire_op(m->head) != WIRE_MSG || wire_of_group(m->head))
		return NULL;
	u = rx_unexpected_keep(rx, m, 0);
	if (u)
		u->lost = true;
	else
		tell_loss(rx);
	return u;
}

void rx_lost(struct peer *peer)
{
	for (unsigned int i = 0; i < WORKER_RX_MAX; i++)
		if (peer_worker(peer)->rx[i])
			tell_loss(peer_worker(peer)->rx[i]);
	contact_starve(&peer->conn, "what it has sent");
}

void rx_store(struct rx *rx, const struct message *m, size_t payload_len)
{
	struct rx *q = rx->q;
	bool tagged = wire_flags(m->head) & WIRE_TAGGED || wire_op(m->head) == WIRE_AMO;
	bool grouped = wire_of_group(m->head);
	struct unexpected *u;
	size_t bytes = sizeof(*u) + payload_len;

	if (grouped ? !bearable_of_group(m->peer, bytes)
		    : !rx_unexpected_bearable(m->peer, m->head, bytes))
		return;
	if (!budget_admit(m->peer, m->src, bytes))
		return;
	u = rx_unexpected_keep(rx, m, payload_len);
	if (!u)
		u = keep_lost(rx, m);
	if (u) {
		list_push(&q->unexpected[tagged], &u->link);
		count_kept(q, &peer_worker(m->peer)->budget, u);
	}
	if (!u || u->lost)
		contact_starve(&m->peer->conn, "a message that no receive waits for");
	else if (!grouped && rx_unexpected_pauses(rx, m->peer))
		send_xoff(q, m->peer);
}

fi_addr_t rx_reported(const struct rx *rx, struct peer *peer, fi_addr_t src)
{
	struct av *av = rx->budget ? rx->budget->worker->conn.av : NULL;

	if (peer)
		return contact_reported(&peer->conn);
	return src == FI_ADDR_NOTAVAIL || !av ? src : av_user_id(av, src);
}

fi_addr_t rx_source(const struct unexpected *u)
{
	return u->peer ? contact_addr(&u->peer->conn) : u->src;
}

void rx_take(struct rx *rx, struct unexpected *u)
{
	list_remove(&u->link);
	uncount_kept(rx, u);
	rx_unexpected_resume(rx, u->peer);
}

/* Out of reach for others, and the application's from now on: the context still counts it, the budget does not. */
void rx_claim(struct rx *rx, struct unexpected *u)
{
	rx_index_remove(rx, u);
	budget_uncharge(u->rx->budget, u);
	list_remove(&u->link);
	list_push(&rx->claimed, &u->link);
}

void rx_drop(struct unexpected *u)
{
	if (u->sender)
		addr_free(&u->sender->name);
	free(u->sender);
	if (u->peer)
		spare_put(&peer_worker(u->peer)->spare, u);
	else
		free(u);
}

void rx_give(struct rx *rx, struct unexpected *u)
{
	u->rx = rx;
	list_push(&rx->unexpected[1], &u->link);
	count_kept(rx, rx->budget, u);
}

void rx_refuse(const struct unexpected *u)
{
	if (u->peer && rx_wants_ack(u->head))
		tx_control(u->peer, WIRE_HEAD(WIRE_ATS, 0, 0, wire_id(u->head)), FI_ECANCELED);
}

void rx_refuse_kept(struct rx *rx)
{
	for (int tagged = 0; tagged < 2; tagged++)
		LIST_EACH_SAFE_OF (struct unexpected, u, &rx->q->unexpected[tagged], link) {
			if (u->rx != rx)
				continue;
			rx_refuse(u);
			rx_take(rx->q, u);
			rx_drop(u);
		}
}

void rx_forget_context(struct rx *rx)
{
	if (rx->q->cq == rx->cq)
		rx->q->cq = NULL;
	LIST_EACH_OF (struct unexpected, u, &rx->q->claimed, link) {
		/* The claimed message can still be received, without the closed context's queue and peers. */
		if (u->rx == rx) {
			u->rx = rx->q;
			u->src = FI_ADDR_NOTAVAIL;
			u->peer = NULL;
		}
	}
	for (int tagged = 0; tagged < 2; tagged++)
		LIST_EACH_SAFE_OF (struct unexpected, u, &rx->q->unexpected[tagged], link) {
			if (u->rx != rx)
				continue;
			rx_take(rx->q, u);
			rx_drop(u);
		}
}

/* The sender goes, the message stays. Without memory less is told of it. */
static void rx_unexpected_note(struct unexpected *u)
{
	struct contact *peer = &u->peer->conn;

	u->src = contact_addr(peer);
	/* Its entry may be removed before the message is received. */
	if (u->rx->caps & FI_SOURCE_ERR)
		u->sender = calloc(1, sizeof(*u->sender));
	if (!u->sender)
		return;
	addr_dup(&u->sender->name, &peer->name);
	u->sender->key = contact_reported_key(peer);
}

static void forget_sender(struct unexpected *u)
{
	struct peer *peer = u->peer;

	rx_unexpected_note(u);
	if (wire_of_group(u->head))
		peer->rx.kept -= rx_cost(u);
	budget_leave(&peer_worker(peer)->budget, u);
}

/*
 * A kept RTS of a disconnected peer can never be received and is dropped. Whole messages stay,
 * unless the peer exceeded its budget. A claimed RTS stays, and fails when received.
 */
void rx_forget_peer(struct rx *rx, struct peer *peer)
{
	LIST_EACH_OF (struct unexpected, u, &rx->q->claimed, link) {
		if (u->peer != peer)
			continue;
		rx_unexpected_note(u);
		u->peer = NULL;
	}
	LIST_EACH_SAFE_OF (struct unexpected, u, &peer->rx.account.kept, in_account) {
		if (u->rx->q != rx->q)
			continue;
		if (wire_op(u->head) != WIRE_MSG || conn_end_rows[peer->conn.end].forfeits) {
			rx_take(rx->q, u);
			rx_drop(u);
		} else {
			forget_sender(u);
		}
	}
}

/* Kept messages lose their source: the removed fi_addr_t may soon name another address. */
void rx_forget_addr(struct rx *rx, fi_addr_t addr)
{
	LIST_EACH_OF (struct unexpected, u, &rx->q->claimed, link) {
		if (u->src == addr)
			u->src = FI_ADDR_NOTAVAIL;
	}
	for (int tagged = 0; tagged < 2; tagged++)
		LIST_EACH_OF (struct unexpected, u, &rx->q->unexpected[tagged], link) {
			if (u->src == addr)
				u->src = FI_ADDR_NOTAVAIL;
		}
}
