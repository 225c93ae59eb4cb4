/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/dgram/dgram.h"

#include <stdlib.h>

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
