/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of an address vector with a name, which processes of one user share. fi_av(3).
 *
 * It lies in a memfd of fixed size, known by core/av_name.h; only what was written takes memory. The
 * name is known, and the table found by those who open it, as long as one process has it to write.
 *
 * Writers exclude each other by flock(2), which the kernel gives back for the dead. Readers take no
 * lock. Indexes are never used twice: others may still hold that of an entry removed.
 */
#ifndef WEFT_CORE_AV_SHARED_H
#define WEFT_CORE_AV_SHARED_H

#include <rdma/fi_domain.h>
#include <stdbool.h>

#include "base/addr.h"

#define AV_SHARED_KEY_MAX 320 /* bytes of the names of domain and vector, with their ends */

/* Entries a table has room for: the larger of this and the creator's attr->count. */
#define AV_SHARED_ENTRIES     (1u << 20)
#define AV_SHARED_ENTRIES_MAX (1u << 26)

struct av_shared_head;

struct av_shared_key {
	char name[AV_SHARED_KEY_MAX];
	uint32_t format;      /* of addresses */
	enum fi_av_type type; /* FI_AV_UNSPEC: as it is there; a creator says which */
};

/* An entry in shared memory, and copied out of it. IP formats have only the first member there. */
struct av_shared_entry {
	struct addr addr; /* addr.str means nothing in shared memory */
	char str[ADDR_STR_MAX];
};

/* One opening of a table. The domain's lock, save for opening and closing. */
struct av_shared {
	struct av_shared_head *head; /* the mapping */
	size_t len;                  /* its bytes */
	fi_addr_t *ids; /* by index: the index, for processes that read map_addr as a table */
	char *slots;
	size_t slot_len;
	size_t capacity; /* entries */
	int fd;          /* of a writer, else -1 */
	int place;       /* socket of a writer, else -1 */
};

/* Sets the key's name. 0, or -FI_EINVAL: too long. */
int av_shared_key(struct av_shared_key *key, const char *domain, const char *name);

/*
 * Opens the table, to write made when it is not there, with room for `count` entries. May block
 * for some milliseconds. 0; -FI_EINVAL: it is not there, or of another type or format; -FI_ENOSYS:
 * it is there, out of reach; -FI_EADDRINUSE: somebody keeps the name; or an error of the system.
 */
int av_shared_open(struct av_shared *t, const struct av_shared_key *key, size_t count, bool write);
void av_shared_close(struct av_shared *t);

enum fi_av_type av_shared_type(const struct av_shared *t);
/* Entries handed out so far, holes included. */
size_t av_shared_count(const struct av_shared *t);
/* Removals so far, by all processes. */
uint64_t av_shared_removals(const struct av_shared *t);
/* Copies the entry, whose index is below the count; kind ADDR_NONE: a hole. */
void av_shared_get(const struct av_shared *t, size_t index, struct av_shared_entry *entry);

/* A writer keeps the others out from here to the end; the next three want that. */
int av_shared_begin(struct av_shared *t);
void av_shared_end(struct av_shared *t);
/* At the next index; copied. 0 or -FI_ENOMEM: the table is full. */
int av_shared_add(struct av_shared *t, const struct addr *a, uint32_t *index);
void av_shared_remove(struct av_shared *t, size_t index);
/* struct addr.uses of the entry. */
uint8_t *av_shared_uses(struct av_shared *t, size_t index);

#endif
