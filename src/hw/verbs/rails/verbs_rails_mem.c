/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a long message on links over two devices: registered with both, so that the peer can
 * read it by either rail.
 */
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>

#include "hw/verbs/rails/verbs_rails.h"

/* The segments of a message, registered with the device of each rail. */
struct rails_region {
	size_t count;
	struct {
		struct verbs *device;
		struct verbs_mem *mem;
	} part[VERBS_RAILS][WIRE_IOV_MAX];
};

void verbs_rails_deregister(struct link *link, void *registered)
{
	struct rails_region *e = registered;

	(void)link;
	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		for (size_t n = 0; n < e->count; n++) {
			if (!e->part[i][n].mem)
				continue;
			verbs_mem_put(e->part[i][n].mem);
			e->part[i][n].device->regions--;
		}
	free(e);
}

/*
 * Registers a segment with the device of a rail, if it has one. Returns the rkey; 0: none. A removed
 * device is closed once nothing is registered with it, and gets nothing new until then.
 */
static uint32_t add_part(const struct verbs_rails *r, struct rails_region *e, unsigned int rail,
			 const struct iovec *segment)
{
	struct verbs *v = r->rail[rail].device;
	struct verbs_mem *mem =
		v && v->up && verbs_usable(v)
			? verbs_mem_get(v->path.dev, segment, IBV_ACCESS_REMOTE_READ)
			: NULL;

	if (!mem)
		return 0;
	e->part[rail][e->count].device = v;
	e->part[rail][e->count].mem = mem;
	v->regions++;
	return mem->mr->rkey;
}

int verbs_rails_register(struct link *link, const struct iovec *iov, size_t count,
			 struct fi_rma_iov *at, void **registered)
{
	const struct verbs_rails *r = (const struct verbs_rails *)link;
	struct rails_region *e = calloc(1, sizeof(*e));

	if (!e)
		return -FI_ENOMEM;
	while (e->count < count) {
		const struct iovec *s = &iov[e->count];
		uint64_t key = 0;

		for (unsigned int i = 0; s->iov_len && i < VERBS_RAILS; i++)
			key |= (uint64_t)add_part(r, e, i, s) << (32 * i);
		at[e->count++] = (struct fi_rma_iov){(uintptr_t)s->iov_base, s->iov_len, key};
		if (s->iov_len && !key) {
			verbs_rails_deregister(link, e);
			return -FI_ENOMEM;
		}
	}
	*registered = e;
	return 0;
}
