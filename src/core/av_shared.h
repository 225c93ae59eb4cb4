/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of an address vector with a name, shared by processes of one user. fi_av(3).
 *
 * The table lies in a memfd of fixed size, published by av_name_publish. Only pages that were written take memory.
 * Other processes can open the table as long as one process has it open for writing.
 *
 * Writers exclude each other by flock(2), which the kernel releases when a process dies; one that lives and keeps it
 * holds others up for a bounded time. Readers take no lock. An index is never used again, since other processes may
 * still hold that of a removed entry.
 */
#ifndef WEFT_CORE_AV_SHARED_H
#define WEFT_CORE_AV_SHARED_H

#include <rdma/fi_domain.h>
#include <stdbool.h>

#include "base/addr.h"

#define AV_SHARED_KEY_MAX 320 /* bytes: names of domain and vector with their terminators */

/* A table's capacity: the larger of AV_SHARED_ENTRIES and the creator's attr->count. */
#define AV_SHARED_ENTRIES     (1u << 20)
#define AV_SHARED_ENTRIES_MAX (1u << 26)

struct av_shared_head;

struct av_shared_key {
	char name[AV_SHARED_KEY_MAX];
	uint32_t format;      /* address format */
	enum fi_av_type type; /* FI_AV_UNSPEC: any; a creator takes FI_AV_TABLE */
};

/* An entry in shared memory, or a copy of one. With IP formats shared memory holds only `addr`. */
struct av_shared_entry {
	struct addr addr; /* addr.str is valid only in a copy */
	char str[ADDR_STR_MAX];
};

/* One opening of a table. Domain locked, except to open and close. */
struct av_shared {
	struct av_shared_head *head; /* the mapping */
	size_t len;                  /* bytes of the mapping */
	fi_addr_t *ids; /* ids[i] == i, for applications that use map_addr as a table */
	char *slots;
	size_t slot_len;
	size_t capacity; /* entries */
	int fd;          /* of a writer, else -1 */
	int place;       /* a writer's socket of av_name_publish, else -1 */
};

/* Sets the key's name. 0, or -FI_EINVAL if the names are too long. */
int av_shared_key(struct av_shared_key *key, const char *domain, const char *name);

/*
 * Opens the table. With `write`, creates it with space for `count` entries if there is none. May block for some
 * milliseconds; with `write`, for a second. 0; -FI_EINVAL: there is none, or its type or format differs; -FI_ENOSYS:
 * /proc does not lead to it; -FI_EADDRINUSE: another process holds the name; or an error of the system.
 */
int av_shared_open(struct av_shared *t, const struct av_shared_key *key, size_t count, bool write);
void av_shared_close(struct av_shared *t);

enum fi_av_type av_shared_type(const struct av_shared *t);
/* Returns how many indexes were handed out so far, holes included. */
size_t av_shared_count(const struct av_shared *t);
/* Returns how many entries all processes have removed so far. */
uint64_t av_shared_removals(const struct av_shared *t);
/* Copies the entry at `index`, which is below the count. Kind ADDR_NONE marks a hole. */
void av_shared_get(const struct av_shared *t, size_t index, struct av_shared_entry *entry);

/*
 * A writer excludes other writers between begin and end. The last three calls need that. 0, -FI_EBUSY: another process has kept
 * the lock for FI_WEFT_ACCESS_TIMEOUT, or another error.
 */
int av_shared_begin(struct av_shared *t);
void av_shared_end(struct av_shared *t);
/* Copies the address to the next index. 0 or -FI_ENOMEM: the table is full. */
int av_shared_add(struct av_shared *t, const struct addr *a, uint32_t *index);
void av_shared_remove(struct av_shared *t, size_t index);
/* Returns a pointer to the entry's struct addr.uses. */
uint8_t *av_shared_uses(struct av_shared *t, size_t index);

/*
 * Excludes other processes that publish the name, until forked_close closes *door. Waits at most a
 * second for them. 0, -FI_EADDRINUSE or another error.
 */
int av_name_enter(const char *name, int *door);

/* Lets other processes find `fd` by the name, until forked_close closes *place. 0 or a negative error. */
int av_name_publish(const char *name, int fd, int *place);

#endif
