/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters that any worker of their domain may change. */
#include "cntr/cntr.h"
#include "core/driven.h"

int cntr_join(struct cntr *c)
{
	if (!list_empty(&c->in_joined))
		return 0;
	LIST_EACH (node, &c->dom->workers) {
		int err = cntr_add_worker(c, LIST_ENTRY(node, struct driven, in_domain));

		if (!err)
			continue;
		while ((node = node->prev) != &c->dom->workers)
			cntr_del_worker(c, LIST_ENTRY(node, struct driven, in_domain));
		return err;
	}
	shard_unite(c->dom);
	list_push(&c->dom->joined, &c->in_joined);
	return 0;
}

int cntr_join_opened(struct driven *worker)
{
	LIST_EACH (node, &worker->dom->joined) {
		int err = cntr_add_worker(LIST_ENTRY(node, struct cntr, in_joined), worker);

		if (err) {
			cntr_join_closing(worker);
			return err;
		}
	}
	return 0;
}

void cntr_join_closing(struct driven *worker)
{
	LIST_EACH (node, &worker->dom->joined)
		cntr_del_worker(LIST_ENTRY(node, struct cntr, in_joined), worker);
}
