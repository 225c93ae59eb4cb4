/* SPDX-License-Identifier: BSD-2-Clause */
/* Accessors for transports: the worker that opened them. */
#include "link/upcall.h"

#include "link/offload.h"
#include "xfer/conn/conn.h"

struct domain *worker_domain(const struct worker *worker)
{
	return worker->dom;
}

struct addr *worker_address(struct worker *worker)
{
	return &worker->name;
}

bool worker_all_addresses(const struct worker *worker)
{
	return worker->all;
}

struct idle *worker_idle(struct worker *worker)
{
	return &worker->driven.idle;
}

bool worker_counts(const struct worker *worker)
{
	return worker->counts;
}

bool worker_armed(const struct worker *worker)
{
	return worker->armed;
}

bool worker_sleepers(const struct worker *worker)
{
	return worker->sleepers;
}

bool worker_alone(const struct worker *worker, const void *state)
{
	const struct list *workers = &worker->dom->workers;

	for (unsigned int i = 0; i < LINK_KINDS; i++)
		if (worker->via[i].state && worker->via[i].state != state)
			return false;
	return workers->next == workers->prev;
}

void *worker_successor(const struct worker *worker, const void *state)
{
	unsigned int kind = 0;

	while (kind < LINK_KINDS && worker->via[kind].state != state)
		kind++;
	if (kind == LINK_KINDS)
		return NULL;
	LIST_EACH (node, &worker->dom->workers) {
		struct worker *other = LIST_ENTRY(node, struct worker, driven.in_domain);

		if (other->via[kind].state && other != worker && !other->closing &&
		    other->via[kind].transport == worker->via[kind].transport)
			return other->via[kind].state;
	}
	return NULL;
}

void offload_set(struct worker *worker, struct offload *n)
{
	worker->offload = n;
}

void offload_connected(struct offload *n, const void *data, size_t len)
{
	n->worker->cm->connected(n->worker, data, len);
}

void offload_ended(struct offload *n, int err, const void *data, size_t len)
{
	n->worker->cm->ended(n->worker, err, data, len);
}
