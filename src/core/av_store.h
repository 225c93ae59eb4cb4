/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries of an address vector. Vectors opened by the same name on one domain share one store;
 * a store without a name has one vector. Under the domain's lock, save for joining and leaving.
 */
#ifndef WEFT_CORE_AV_STORE_H
#define WEFT_CORE_AV_STORE_H

#include "core/av.h"
#include "core/av_hash.h"

/* Entries of one vector; limited by the 32 bits of the hash's slots. */
#define AV_STORE_MAX (UINT32_MAX - 1)
/* Inserted so often, an entry is not counted any more and stays until the store ends. */
#define AV_STORE_USES_MAX UINT8_MAX

struct av_store {
	struct domain *dom;
	char *name; /* or NULL */
	enum fi_av_type type;
	struct list in_names; /* the names' lock */
	struct list members;  /* struct av.in_store; both locks */
	struct addr *table;   /* by index; kind ADDR_NONE: a hole. uses: further insertions (MAP) */
	fi_addr_t *ids;       /* by index, or NULL: every id is the index; as long as the table */
	size_t count;         /* entries handed out so far, holes included */
	size_t capacity;
	size_t holes;
	size_t first_hole; /* no hole is below this */
	struct av_hash hash;
};

/*
 * Gives a new vector (dom, type and in_store set up) its store: that of `name`, made when it is
 * not there and the vector is not opened with FI_READ. Takes the domain's lock. 0, -FI_ENOMEM,
 * -FI_EINVAL (the name is there with another type), -FI_ENOSYS (it is not there).
 */
int av_store_join(struct av *av, const char *name, size_t count);

/* The vector leaves, the last one ends the store. -FI_EBUSY while it is used. Takes the lock. */
int av_store_leave(struct av *av);

/* Room for `more` entries. 0 or -FI_ENOMEM. */
int av_store_reserve(struct av_store *s, size_t more);

/* A new entry at the lowest free index; a's string is now the store's. 0 or -FI_ENOMEM. */
int av_store_add(struct av_store *s, const struct addr *a, uint32_t *index);
/* The entry is one. */
void av_store_remove(struct av_store *s, uint32_t index);
uint32_t av_store_find(struct av_store *s, const struct addr *a);

/* 0 or -FI_ENOMEM. */
int av_store_set_id(struct av_store *s, uint32_t index, fi_addr_t id);

static inline bool av_store_has(const struct av_store *s, fi_addr_t index)
{
	return index < s->count && s->table[index].kind != ADDR_NONE;
}

/* An address that is there was inserted once more. */
static inline void av_store_hold(struct av_store *s, uint32_t index)
{
	if (s->table[index].uses < AV_STORE_USES_MAX)
		s->table[index].uses++;
}

/* Undoes one insertion of several. false: it was the only one, the entry is to be removed. */
static inline bool av_store_release(struct av_store *s, uint32_t index)
{
	if (s->table[index].uses == 0)
		return false;
	if (s->table[index].uses < AV_STORE_USES_MAX)
		s->table[index].uses--;
	return true;
}

#endif
