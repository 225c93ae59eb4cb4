/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/msg/budget.h"

#include <rdma/fi_ext_weft.h>

#include "base/env.h"
#include "base/log.h"
#include "core/av.h"
#include "xfer/msg/rx_index.h"
#include "xfer/worker.h"

/* Room that dropping makes at once, so that it is not made for each message anew: a part of the limit. */
#define SLACK 8

static struct peer *budget_peer(struct list *in_budget)
{
	return LIST_ENTRY(in_budget, struct peer, rx.account.in_budget);
}

static struct budget *budget_of(const struct peer *peer)
{
	return &peer_worker(peer)->budget;
}

size_t budget_half(void)
{
	size_t limit = env_get()->unexpected_limit, mark = env_get()->unexpected_max;

	if (!limit)
		return mark > SIZE_MAX - WIRE_KEPT_MAX ? SIZE_MAX : mark + WIRE_KEPT_MAX;
	return limit == SIZE_MAX ? limit : limit / 2;
}

static void budget_add(struct budget_sum *sum, size_t bytes, size_t count)
{
	sum->bytes += bytes;
	sum->count += count;
}

static void budget_subtract(struct budget_sum *sum, size_t bytes, size_t count)
{
	sum->bytes -= bytes;
	sum->count -= count;
}

static bool budget_exceeds(size_t kept, size_t bytes, size_t limit)
{
	return bytes > limit || kept > limit - bytes;
}

void budget_account_init(struct account *a)
{
	*a = (struct account){.src = FI_ADDR_NOTAVAIL};
	list_init(&a->kept);
	list_init(&a->left);
	list_init(&a->in_budget);
}

void budget_init(struct budget *b, struct worker *worker)
{
	*b = (struct budget){.worker = worker, .allowed = budget_half()};
	list_init(&b->holders[0]);
	list_init(&b->holders[1]);
	budget_account_init(&b->gone);
}

void budget_fini(struct budget *b)
{
	struct list *node;

	while ((node = list_pop(&b->gone.left)))
		LIST_ENTRY(node, struct unexpected, in_account)->account = NULL;
}

/* ---- Accounts -------------------------------------------------------------------------------- */

/* Does anything of it count? A link's bytes do not with a peer of the address vector, which is allowed them. */
static bool budget_counts(const struct account *a)
{
	return a->sum.count || (a->begun && !a->known);
}

static void join_holders(struct budget *b, struct account *a)
{
	if (!list_empty(&a->in_budget) || !budget_counts(a) || a == &b->gone)
		return;
	list_push(&b->holders[a->known], &a->in_budget);
	b->holder_count[a->known]++;
}

static void leave_holders(struct budget *b, struct account *a)
{
	if (list_empty(&a->in_budget))
		return;
	list_remove(&a->in_budget);
	b->holder_count[a->known]--;
}

static void set_sources(struct list *messages, fi_addr_t src)
{
	LIST_EACH_OF (struct unexpected, u, messages, in_account) {
		rx_index_source(u->rx->q, u, u->peer ? src : u->src);
	}
}

/* The address vector holds the peer by now, by this address, or does not hold it any more (FI_ADDR_NOTAVAIL). */
static void budget_reclassify(struct budget *b, struct account *a, fi_addr_t src)
{
	bool known = src != FI_ADDR_NOTAVAIL || b->worker->conn.cm;

	if (a->src == src && a->known == known)
		return;
	leave_holders(b, a);
	if (a->known)
		budget_subtract(&b->known, a->sum.bytes, a->sum.count);
	else
		b->begun -= a->begun;
	a->src = src;
	a->known = known;
	if (a->known)
		budget_add(&b->known, a->sum.bytes, a->sum.count);
	else
		b->begun += a->begun;
	join_holders(b, a);
	set_sources(&a->kept, src);
	set_sources(&a->left, src);
}

static void budget_charge_to(struct budget *b, struct account *a, struct unexpected *u)
{
	u->account = a;
	list_push(u->peer ? &a->kept : &a->left, &u->in_account);
	budget_add(&a->sum, rx_cost(u), 1);
	budget_add(&b->all, rx_cost(u), 1);
	if (a->known)
		budget_add(&b->known, rx_cost(u), 1);
	join_holders(b, a);
}

void budget_charge(struct budget *b, struct unexpected *u)
{
	if (u->peer)
		budget_reclassify(b, &u->peer->rx.account, rx_source(u));
	budget_charge_to(b, u->peer ? &u->peer->rx.account : &b->gone, u);
}

void budget_uncharge(struct budget *b, struct unexpected *u)
{
	struct account *a = u->account;

	if (!a)
		return;
	u->account = NULL;
	list_remove(&u->in_account);
	budget_subtract(&a->sum, rx_cost(u), 1);
	budget_subtract(&b->all, rx_cost(u), 1);
	if (a->known)
		budget_subtract(&b->known, rx_cost(u), 1);
	if (a->sum.count || a == &b->gone)
		return;
	budget_peer(&a->in_budget)->rx.unheard = 0;
	if (!budget_counts(a))
		leave_holders(b, a);
}

void budget_release(struct peer *peer, size_t bytes)
{
	struct budget *b = budget_of(peer);
	struct account *a = &peer->rx.account;

	if (bytes > a->begun) /* it was expelled */
		bytes = a->begun;
	a->begun -= bytes;
	if (!a->known)
		b->begun -= bytes;
	if (!budget_counts(a))
		leave_holders(b, a);
}

void budget_leave(struct budget *b, struct unexpected *u)
{
	struct account *a = u->account;

	u->peer = NULL;
	if (!a)
		return;
	if (a->known) {
		list_remove(&u->in_account);
		list_push(&a->left, &u->in_account);
		return;
	}
	budget_uncharge(b, u);
	budget_charge_to(b, &b->gone, u);
}

void budget_account_fini(struct peer *peer)
{
	struct budget *b = budget_of(peer);
	struct list *const lists[] = {&peer->rx.account.left, &peer->rx.account.kept};

	for (int i = 0; i < 2; i++)
		LIST_EACH_SAFE_OF (struct unexpected, u, lists[i], in_account) {
			u->peer = NULL;
			budget_uncharge(b, u);
			budget_charge_to(b, &b->gone, u);
		}
}

void budget_look_up(struct budget *b)
{
	struct av *av = b->worker->conn.av;
	uint64_t version;

	if (list_empty(&b->holders[0]) || !av)
		return;
	version = av_version(av);
	if (version == b->seen_av)
		return;
	b->seen_av = version;
	LIST_EACH_SAFE (node, &b->holders[0])
		budget_reclassify(b, &budget_peer(node)->rx.account,
				  contact_addr(&budget_peer(node)->conn));
}

void budget_forget_addr(struct budget *b, fi_addr_t addr)
{
	if (!b->all.count)
		return;
	LIST_EACH_SAFE (node, &b->holders[1]) {
		struct account *a = &budget_peer(node)->rx.account;

		if (a->src == addr)
			budget_reclassify(b, a, FI_ADDR_NOTAVAIL);
	}
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static void budget_drop_all(struct list *messages)
{
	LIST_EACH_SAFE_OF (struct unexpected, u, messages, in_account) {
		rx_take(u->rx->q, u);
		rx_drop(u);
	}
}

/* The sender that took least notice of XOFF, or else has most; of several the one that has had it longest. */
static struct peer *worst_of(const struct list *holders)
{
	struct peer *worst = NULL;
	size_t most = 0;

	LIST_EACH (node, holders) {
		struct peer *peer = budget_peer(node);
		size_t beyond = peer->rx.unheard + peer->rx.kept + peer->rx.account.begun;

		if (!worst || beyond > most ||
		    (beyond == most && peer->rx.account.sum.bytes > worst->rx.account.sum.bytes)) {
			worst = peer;
			most = beyond;
		}
	}
	return worst;
}

static void budget_disconnect(struct budget *b, struct peer *peer)
{
	const struct budget_sum *sum = &peer->rx.account.sum;

	if (contact_expelled(&peer->conn))
		return;
	LOG_PEER(
		LOG_EP_DATA,
		"%s: %zu bytes in %zu unexpected messages and %zu of what is not complete, and all peers exceed "
		"FI_WEFT_UNEXPECTED_LIMIT=%zu: disconnecting the peer",
		contact_text(&peer->conn), sum->bytes, sum->count, peer->rx.account.begun,
		env_get()->unexpected_limit);
	b->disconnected++;
	contact_expel(&peer->conn, END_BUDGET);
}

/* Nothing of it stays: it would be dropped with the connection. */
static void budget_expel(struct budget *b, struct peer *peer)
{
	if (peer->conn.state != PEER_IDLE)
		budget_disconnect(b, peer);
	b->dropped += peer->rx.account.sum.count;
	budget_drop_all(&peer->rx.account.kept);
	budget_drop_all(&peer->rx.account.left);
	budget_release(peer, SIZE_MAX);
}

/* What peers have that the address vector does not hold. */
static size_t of_others(const struct budget *b)
{
	return b->all.bytes - b->known.bytes + b->begun;
}

/* Drops the oldest messages of senders that have gone. */
static void drop_left(struct budget *b, size_t bytes, size_t limit)
{
	LOG_PEER(LOG_EP_DATA,
		 "messages of senders that have gone, which the address vector does not "
		 "hold, are dropped: %zu bytes in %zu messages, FI_WEFT_UNEXPECTED_LIMIT=%zu",
		 b->gone.sum.bytes, b->gone.sum.count, env_get()->unexpected_limit);
	LIST_EACH_SAFE_OF (struct unexpected, u, &b->gone.left, in_account) {
		if (!budget_exceeds(of_others(b), bytes, limit - limit / SLACK))
			break;
		b->dropped++;
		rx_take(u->rx->q, u);
		rx_drop(u);
	}
}

static bool admit_unknown(struct budget *b, size_t bytes)
{
	const size_t limit = budget_half();

	while (budget_exceeds(of_others(b), bytes, limit)) {
		struct peer *worst = worst_of(&b->holders[0]);

		if (b->gone.sum.count &&
		    (!worst ||
		     b->gone.sum.bytes >= worst->rx.account.sum.bytes + worst->rx.account.begun))
			drop_left(b, bytes, limit);
		else if (worst)
			budget_expel(b, worst);
		else
			return false;
	}
	return true;
}

/* Each connected peer may have something under way. */
static void count_allowed(struct budget *b)
{
	size_t sum = budget_half();

	LIST_EACH_OF (const struct peer, peer, &b->worker->conn.peers_list, conn.in_station) {
		if (!contact_linked(&peer->conn) ||
		    (peer->conn.addr == FI_ADDR_NOTAVAIL && !peer->rx.account.known))
			continue;
		if (sum > SIZE_MAX - BUDGET_UNDER_WAY)
			break;
		sum += BUDGET_UNDER_WAY;
	}
	b->allowed = sum;
}

static bool admit_known(struct budget *b, size_t bytes)
{
	while (budget_exceeds(b->known.bytes, bytes, b->allowed)) {
		struct peer *worst = worst_of(&b->holders[1]);

		count_allowed(b);
		if (!budget_exceeds(b->known.bytes, bytes, b->allowed))
			break;
		if (!worst)
			return false;
		budget_expel(b, worst);
	}
	return true;
}

void budget_recount(struct budget *b)
{
	b->allowed = budget_half();
}

bool budget_admit(struct peer *peer, fi_addr_t src, size_t bytes)
{
	struct budget *b = budget_of(peer);
	bool known = src != FI_ADDR_NOTAVAIL || b->worker->conn.cm;

	if (!(known ? admit_known(b, bytes) : admit_unknown(b, bytes)))
		budget_disconnect(b, peer);
	if (!contact_expelled(&peer->conn))
		return true;
	b->dropped++;
	return false;
}

bool budget_hold(struct peer *peer, size_t bytes)
{
	struct budget *b = budget_of(peer);
	struct account *a = &peer->rx.account;

	if (contact_expelled(&peer->conn))
		return false;
	budget_reclassify(b, a, contact_addr(&peer->conn));
	if (bytes && !a->known && !admit_unknown(b, bytes))
		budget_disconnect(b, peer);
	if (contact_expelled(&peer->conn))
		return false;
	leave_holders(b, a);
	a->begun += bytes;
	if (!a->known)
		b->begun += bytes;
	join_holders(b, a);
	return true;
}

/* ---- Shares: beyond its own a sender has to pause ----------------------------------------------- */

/* All that the address vector does not hold have one share together. */
static size_t share_of(const struct peer *peer, size_t mark)
{
	const struct budget *b = &peer_worker(peer)->budget;
	size_t parts = b->holder_count[1] + (b->all.count != b->known.count);

	if (!peer->rx.account.known)
		parts *= b->holder_count[0];
	if (!parts)
		parts = 1;
	return mark / parts;
}

bool budget_pauses(const struct peer *peer, size_t mark)
{
	return peer->rx.account.sum.bytes > share_of(peer, mark);
}

bool budget_resumes(const struct peer *peer, size_t mark)
{
	return peer->rx.account.sum.bytes <= share_of(peer, mark) / 2;
}

void budget_stats(const struct budget *b, struct fi_weft_stats *stats)
{
	stats->unexpected_bytes = b->all.bytes;
	stats->unexpected_count = b->all.count;
	stats->unexpected_dropped = b->dropped;
	stats->unexpected_disconnected = b->disconnected;
}
