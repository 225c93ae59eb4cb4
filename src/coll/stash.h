/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short messages of a group that came a little before they were waited for: a member that is a step ahead sends
 * one. They are sooner kept and found here than in the queues of the group's context, where all go that find
 * no room. Of one member none overtakes another: nothing is put here while something waits in those.
 */
#ifndef WEFT_COLL_STASH_H
#define WEFT_COLL_STASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet;

#define STASH_MESSAGES 16
#define STASH_BYTES    64 /* of each */

struct stashed {
	uint64_t tag; /* as it came */
	size_t len;
	_Alignas(16) unsigned char payload[STASH_BYTES];
};

struct stash {
	unsigned int count;
	struct stashed message[STASH_MESSAGES]; /* in the order they came */
};

/* False: it is too long, is to be answered, or there is no room. */
bool stash_put(struct stash *stash, const struct packet *p);
/* The oldest of this tag, what it was taken for aside (WIRE_GROUP_WHAT_MASK), or NULL. */
struct stashed *stash_find(struct stash *stash, uint64_t tag);
void stash_drop(struct stash *stash, struct stashed *message);

#endif
