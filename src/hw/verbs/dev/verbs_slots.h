/* SPDX-License-Identifier: BSD-2-Clause */
/* Registered slots of equal size for packets, in chunks that are added on demand. */
#ifndef WEFT_HW_VERBS_SLOTS_H
#define WEFT_HW_VERBS_SLOTS_H

#include <stddef.h>
#include <stdint.h>

#include "hw/verbs/dev/verbs_dev.h"

#define VERBS_CHUNK   64 /* slots per chunk */
#define VERBS_CHUNKS  64 /* most chunks */
#define VERBS_NO_SLOT UINT16_MAX

struct verbs_slots {
	struct verbs_dev *dev;
	size_t size; /* bytes of a slot */
	unsigned int count;
	uint16_t free_count;
	uint16_t *free; /* stack of free slots */
	struct {
		unsigned char *mem;
		struct ibv_mr *mr;
	} chunk[VERBS_CHUNKS];
};

void verbs_slots_init(struct verbs_slots *s, struct verbs_dev *dev, size_t size);
/* Frees all slots, none of which is in use. `forked`: the registrations are the parent's. */
void verbs_slots_fini(struct verbs_slots *s, bool forked);
/* Adds a chunk. 0 or a negative error. */
int verbs_slots_grow(struct verbs_slots *s);

/* Returns a free slot, or VERBS_NO_SLOT. */
static inline uint16_t verbs_slots_get(struct verbs_slots *s)
{
	return s->free_count ? s->free[--s->free_count] : VERBS_NO_SLOT;
}

static inline void verbs_slots_put(struct verbs_slots *s, uint16_t slot)
{
	s->free[s->free_count++] = slot;
}

static inline unsigned char *verbs_slots_at(const struct verbs_slots *s, uint16_t slot)
{
	return s->chunk[slot / VERBS_CHUNK].mem + slot % VERBS_CHUNK * s->size;
}

static inline struct ibv_sge verbs_slots_sge(const struct verbs_slots *s, uint16_t slot,
					     uint32_t len)
{
	return (struct ibv_sge){.addr = (uintptr_t)verbs_slots_at(s, slot),
				.length = len,
				.lkey = s->chunk[slot / VERBS_CHUNK].mr->lkey};
}

#endif
