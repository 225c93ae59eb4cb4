/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "hw/verbs/dev/verbs_dev.h"

void verbs_slots_init(struct verbs_slots *s, struct verbs_dev *dev, size_t size)
{
	*s = (struct verbs_slots){.dev = dev, .size = size};
}

static size_t chunk_bytes(const struct verbs_slots *s)
{
	return s->size * VERBS_CHUNK;
}

void verbs_slots_fini(struct verbs_slots *s, bool forked)
{
	for (unsigned int i = 0; i < s->count / VERBS_CHUNK; i++) {
		if (!forked)
			s->dev->lib->dereg_mr(s->chunk[i].mr);
		munmap(s->chunk[i].mem, chunk_bytes(s));
	}
	free(s->free);
	s->free = NULL;
	s->count = s->free_count = 0;
}

int verbs_slots_grow(struct verbs_slots *s)
{
	unsigned int i = s->count / VERBS_CHUNK;
	size_t bytes = chunk_bytes(s);
	struct ibv_mr *mr;
	uint16_t *more;
	void *mem;

	if (i == VERBS_CHUNKS)
		return -FI_ENOSPC;
	more = realloc(s->free, (s->count + VERBS_CHUNK) * sizeof(*more));
	if (!more)
		return -FI_ENOMEM;
	s->free = more;
	mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return -errno;
	madvise(mem, bytes, MADV_DONTFORK); /* a fork's copy-on-write could replace pages */
	mr = verbs_mem_register(s->dev, &(struct iovec){mem, bytes}, IBV_ACCESS_LOCAL_WRITE);
	if (!mr) {
		int err = errno;

		munmap(mem, bytes);
		return err ? -err : -FI_ENOMEM;
	}
	s->chunk[i].mem = mem;
	s->chunk[i].mr = mr;
	for (unsigned int n = VERBS_CHUNK; n-- > 0;)
		verbs_slots_put(s, s->count + n);
	s->count += VERBS_CHUNK;
	return 0;
}
