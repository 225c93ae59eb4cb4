/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries of an address vector. A store without a name has one vector and its own table. One
 * with a name is an opening of a table that processes share: the vectors that write to it on one
 * domain have one together, every vector opened with FI_READ on a domain without has its own.
 * Under the domain's lock, save for joining and leaving.
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
	struct list in_names;         /* while written to; the names' lock */
	struct list members;          /* struct av.in_store; both locks */
	struct av_shared shared;      /* where the entries are, with a name */
	struct av_shared_entry found; /* av_store_at: a copy of one of them */
	struct av_rows rows;          /* kind ADDR_NONE: a hole. uses: further insertions */
	size_t count;    /* entries handed out so far, holes included; see av_store_count */
	size_t capacity; /* of the table */
	size_t holes;
	size_t first_hole; /* no hole is below this */
	fi_addr_t *ids;    /* by index; beyond id_count the id is the index */
	size_t id_count;
	struct av_hash hash;
	size_t hashed;     /* shared entries the hash was told of */
	uint64_t removals; /* and removals */
};

/*
 * Gives a new vector (dom, format, type and in_store set up) its store: that of `name`, made when it
 * is not there and the vector is not opened with FI_READ. Type FI_AV_UNSPEC becomes the one it is.
 * Takes the domain's lock. 0, -FI_ENOMEM, or as av_shared_open.
 */
int av_store_join(struct av *av, const char *name, size_t count);

/* The vector leaves, the last one ends the store. -FI_EBUSY while it is used. Takes the lock. */
int av_store_leave(struct av *av);

/* Other processes add nothing from here to the end. 0 or a negative error. */
int av_store_begin(struct av_store *s);
void av_store_end(struct av_store *s);

/* Room for `more` entries. 0 or -FI_ENOMEM. */
int av_store_reserve(struct av_store *s, size_t more);

/*
 * A new entry at the lowest free index (shared: at the next one); takes a's string. Between begin
 * and end. 0 or -FI_ENOMEM.
 */
int av_store_add(struct av_store *s, struct addr *a, uint32_t *index);
/* The entry is one; between begin and end. */
void av_store_remove(struct av_store *s, uint32_t index);
/* AV_HASH_NONE: it is not there. */
uint32_t av_store_find(struct av_store *s, const struct addr *a);

size_t av_store_count(const struct av_store *s);
/* The entry, or NULL where none is. Good until asked for another one. */
const struct addr *av_store_at(struct av_store *s, fi_addr_t index);

static inline bool av_store_has(struct av_store *s, fi_addr_t index)
{
	return av_store_at(s, index);
}

/* 0 or -FI_ENOMEM. */
int av_store_set_id(struct av_store *s, uint32_t index, fi_addr_t id);

/* An address that is there was inserted once more. Between begin and end. */
void av_store_hold(struct av_store *s, uint32_t index);
/* Undoes one insertion of several. false: it was the only one, the entry is to be removed. */
bool av_store_release(struct av_store *s, uint32_t index);

#endif
