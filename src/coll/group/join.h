/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins. Each member reports to its parent in a binomial tree of the ranks (UP). Rank 0 gives the
 * group a number and sends it down the tree (DOWN). Until then `key` identifies the join. A member
 * that waits long asks those it waits for (PROBE, ASK). See join.c for members that do not agree.
 * Domain locked.
 */
#ifndef WEFT_COLL_JOIN_H
#define WEFT_COLL_JOIN_H

#include "coll/group/group.h"

/* A join of this key that failed, here or elsewhere: messages about it are stale. */
struct join_failure {
	struct list link;
	uint64_t key;
	uint32_t attempt; /* number of the last failed attempt */
};

/* Begins the join of g->join.key. */
void join_start(struct group *g);
void join_hear(struct coll *coll, struct peer *from, const struct wire_group *msg);
/* Fails a pending join and tells the other members. */
void join_fail(struct group *g, int err);
/* The peer is disconnected: pending joins with it fail. */
void join_peer_failed(struct coll *coll, struct peer *peer, int err);
/* Sends PROBE to members that have been silent for too long. */
void join_poll(struct coll *coll, uint64_t now);
void join_close(struct coll *coll);

/* ---- For the files join*.c alone ------------------------------------------------------------- */

uint32_t join_parent(uint32_t rank);
/* Removes the lowest child from *bits. Returns its rank, and its bit number in *k. */
uint32_t join_child(const struct group *g, uint32_t *bits, unsigned int *k);
/* Returns a control message about the join. */
struct wire_group join_say_what(const struct group *g, enum wire_group_kind kind);
int join_say(struct group *g, uint32_t rank, enum wire_group_kind kind);
/* Returns the active join of this key, or NULL. */
struct group *join_find(struct coll *coll, uint64_t key);
struct join_failure *join_failure_of(struct coll *coll, uint64_t key);
/* The attempt failed: messages about it and earlier attempts are stale from now on. */
void join_note_failure(struct coll *coll, uint64_t key, uint32_t attempt);
/* If all children have reported: reports to the parent; rank 0 forms the group. */
void join_check(struct group *g);
/* The group is formed, with number `id`: tells the children. */
void join_formed(struct group *g, uint64_t id);
/* Notes what members have said about failed attempts of the join, which begins now. */
void join_hear_failures(struct group *g);
/* Handles the other kept messages about the join, which has just begun. The join may fail. */
void join_hear_kept(struct group *g);

#endif
