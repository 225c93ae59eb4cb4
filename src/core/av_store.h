/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries of address vectors. A store without a name has one vector and a table of its own. A
 * store with a name opens a table that processes share: all vectors of a domain that write to the
 * table share one store; a vector opened with FI_READ uses that store, or one of its own if the
 * domain has none. Domain locked, except in av_store_join and av_store_leave.
 */
#ifndef WEFT_CORE_AV_STORE_H
#define WEFT_CORE_AV_STORE_H

#include "core/av.h"
#include "core/av_shared.h"

/*
 * ---- Hash: av_hash.c ----
 *
 * Hash table from addresses to indexes of a vector. Open addressing, 5 to 6 bytes per entry; the
 * first lookup builds the table. The caller holds the vector's lock.
 */
#define AV_HASH_NONE UINT32_MAX

/* The addresses that a hash indexes. */
struct av_rows {
	struct addr *table;
	struct av_shared *shared; /* used instead of `table` unless NULL */
};

/* Returns the address at `index`; kind ADDR_NONE: a hole. The result may point into `entry`. */
static inline const struct addr *av_hash_row(const struct av_rows *rows, size_t index,
					     struct av_shared_entry *entry)
{
	if (!rows->shared)
		return &rows->table[index];
	av_shared_get(rows->shared, index, entry);
	return &entry->addr;
}

struct av_hash {
	uint32_t *slots; /* index + 1, 0: empty slot; NULL: not built yet, or out of memory */
	size_t size;
	size_t used;
};

/* Returns the index of `addr` in the first `count` rows, or AV_HASH_NONE. */
uint32_t av_hash_find(struct av_hash *h, const struct av_rows *rows, size_t count,
		      const struct addr *addr);

/* Adds the row at `index`, which was just filled. */
void av_hash_add(struct av_hash *h, const struct av_rows *rows, size_t count, uint32_t index);

/* Removes the row at `index`, which is about to be emptied. */
void av_hash_del(struct av_hash *h, const struct av_rows *rows, uint32_t index);

void av_hash_free(struct av_hash *h);

/* ---- Store ---- */

/* Limit of entries, set by the 32 bits of a hash slot. */
#define AV_STORE_MAX (UINT32_MAX - 1)
/*
 * struct addr.uses of an entry: repeated insertions in the lower bits; the top bit is set if nobody can connect to the
 * address (FI_FIREWALL_ADDR). An entry inserted AV_STORE_USES_MAX times is no longer counted and stays until the store
 * ends.
 */
#define AV_STORE_USES_MAX 0x7fu
#define AV_STORE_FIREWALL 0x80u

struct av_store {
	struct domain *dom;
	char *name; /* or NULL */
	enum fi_av_type type;
	struct list in_names;         /* in `names` of av_store.c while open for writing */
	struct list members;          /* struct av.in_store; guarded by both locks */
	struct av_shared shared;      /* the entries of a store with a name */
	struct av_shared_entry found; /* the copy that av_store_at returned last */
	struct av_rows rows;          /* kind ADDR_NONE: a hole; uses: AV_STORE_ bits */
	size_t count;    /* indexes handed out so far, holes included; unused with a name */
	size_t capacity; /* entries that rows.table has space for */
	size_t holes;
	uint64_t additions; /* entries added so far; unused with a name */
	size_t first_hole;  /* no hole has a lower index */
	fi_addr_t *ids;     /* user ids by index; from id_count on, the id is the index */
	size_t id_count;
	struct av_hash hash;
	size_t hashed;     /* shared entries that were added to the hash */
	uint64_t removals; /* shared removals that the hash reflects */
};

/*
 * Finds or creates the store of a new vector, whose dom, format, type and in_store are set. A
 * vector opened with FI_READ does not create the shared table of `name`. Replaces type FI_AV_UNSPEC
 * by the store's. Takes the domain's lock. 0, -FI_ENOMEM, or an error of av_shared_open.
 */
int av_store_join(struct av *av, const char *name, size_t count);

/*
 * Removes the vector from its store; the last vector frees the store. -FI_EBUSY while workers or
 * sets use the vector. Takes the domain's lock.
 */
int av_store_leave(struct av *av);

/* Excludes changes by other processes between begin and end. 0 or a negative error. */
int av_store_begin(struct av_store *s);
void av_store_end(struct av_store *s);

/* Reserves space for `more` entries. 0 or -FI_ENOMEM. */
int av_store_reserve(struct av_store *s, size_t more);

/*
 * Adds an entry at the lowest free index; a shared table: at the next index. Takes over the string
 * of `a`. Between begin and end. 0 or -FI_ENOMEM.
 */
int av_store_add(struct av_store *s, struct addr *a, uint32_t *index);
/* Removes an existing entry. Between begin and end. */
void av_store_remove(struct av_store *s, uint32_t index);
/* Returns the index of the entry with this address, or AV_HASH_NONE. */
uint32_t av_store_find(struct av_store *s, const struct addr *a);

size_t av_store_count(const struct av_store *s);
/* Returns the address of the entry, or NULL if there is none. Valid until the next call. */
const struct addr *av_store_at(struct av_store *s, fi_addr_t index);

static inline bool av_store_has(struct av_store *s, fi_addr_t index)
{
	return av_store_at(s, index);
}

/* Sets the user id of an entry. 0 or -FI_ENOMEM. */
int av_store_set_id(struct av_store *s, uint32_t index, fi_addr_t id);

/* Counts a further insertion of an existing entry. Between begin and end. */
void av_store_hold(struct av_store *s, uint32_t index);
/* Notes FI_FIREWALL_ADDR of an existing entry, until its removal; av_store_firewalled tells. */
void av_store_set_firewall(struct av_store *s, uint32_t index);
bool av_store_firewalled(struct av_store *s, uint32_t index);
/* Undoes one insertion. false: it was the only one, and the caller removes the entry. */
bool av_store_release(struct av_store *s, uint32_t index);

#endif
