/* SPDX-License-Identifier: BSD-2-Clause */
/* A datagram endpoint's begin and end, and its multicast groups. Each membership has its own fi_addr_t. fi_cm(3) */
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "xfer/dgram/dgram.h"

void dgram_init(struct dgram *d, struct opener *opener)
{
	d->events = &dgram_events;
	d->opener = opener;
	list_init(&d->groups);
	pool_init(&d->group_pool, sizeof(struct dgram_group));
}

void dgram_fini(struct dgram *d)
{
	LIST_EACH (node, &d->groups)
		d->ops->leave(d, LIST_ENTRY(node, struct dgram_group, link));
	pool_fini(&d->group_pool);
	free(d->batch);
}

struct dgram_group *dgram_group_find(struct dgram *d, fi_addr_t addr)
{
	return pool_find(&d->group_pool, (uint32_t)addr);
}

/* Returns another membership that receives from the same group, or NULL. */
static struct dgram_group *same_address(struct dgram *d, const struct dgram_group *of)
{
	LIST_EACH_OF (struct dgram_group, g, &d->groups, link) {
		if (g != of && g->receives && addr_equal(&g->addr, &of->addr))
			return g;
	}
	return NULL;
}

int dgram_join(struct worker *worker, const struct addr *group, uint64_t flags, fi_addr_t *addr)
{
	struct dgram *d = worker->dgram;
	struct dgram_group *g;
	int err = 0;

	if (!d)
		return -FI_ENOSYS;
	g = pool_get(&d->group_pool);
	if (!g)
		return -FI_ENOMEM;
	*g = (struct dgram_group){
		.addr = *group, .sends = flags & FI_SEND, .receives = flags & FI_RECV, .fd = -1};
	if (!g->addr.port)
		g->addr.port = worker->conn.name.port;
	/* A group joined twice delivers each datagram once. */
	if (!g->receives || !same_address(d, g))
		err = d->ops->join(d, g);
	if (err) {
		pool_put(&d->group_pool, g);
		return err;
	}
	list_push(&d->groups, &g->link);
	*addr = DGRAM_GROUP | pool_id(g);
	return 0;
}

void dgram_leave(struct worker *worker, fi_addr_t addr)
{
	struct dgram *d = worker->dgram;
	struct dgram_group *g = dgram_group_find(d, addr), *successor;

	if (!g)
		return;
	successor = g->fd >= 0 ? same_address(d, g) : NULL;
	if (successor) {
		successor->fd = g->fd;
		successor->watched = g->watched;
	} else {
		d->ops->leave(d, g);
	}
	list_remove(&g->link);
	pool_put(&d->group_pool, g);
}
