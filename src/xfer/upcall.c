/* SPDX-License-Identifier: BSD-2-Clause */
/* What a transport sees of the worker that opened it. */
#include "link/upcall.h"

#include "xfer/worker.h"

struct domain *worker_domain(const struct worker *worker)
{
	return worker->dom;
}

struct addr *worker_address(struct worker *worker)
{
	return &worker->name;
}

bool worker_counts(const struct worker *worker)
{
	return worker->counts;
}

bool worker_armed(const struct worker *worker)
{
	return worker->armed;
}

bool worker_alone(const struct worker *worker, const void *state)
{
	const struct list *workers = &worker->dom->workers;

	for (unsigned int i = 0; i < TRANSPORT_COUNT; i++)
		if (worker->hw[i] && worker->hw[i] != state)
			return false;
	return workers->next == workers->prev;
}

void *worker_successor(const struct worker *worker, const void *state)
{
	unsigned int hw = 0;

	while (hw < TRANSPORT_COUNT && worker->hw[hw] != state)
		hw++;
	LIST_EACH (node, &worker->dom->workers) {
		struct worker *other = LIST_ENTRY(node, struct worker, in_domain);

		if (hw < TRANSPORT_COUNT && other->hw[hw] && other != worker && !other->closing)
			return other->hw[hw];
	}
	return NULL;
}

void offload_set(struct worker *worker, struct offload *n)
{
	worker->offload = n;
}
