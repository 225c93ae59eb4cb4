/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins: along a binomial tree of the ranks each member reports to its parent (UP); rank 0 gives the group a
 * number and sends it back down (DOWN). Until then `key` identifies the join. A member that waits long asks those
 * it waits for (PROBE, ASK); join.c says what happens when members do not agree. Domain locked.
 */
#ifndef WEFT_COLL_JOIN_H
#define WEFT_COLL_JOIN_H

#include "coll/group/group.h"

/* A control message about a join that has not begun here. */
struct join_message {
	struct list link;
	uint32_t from; /* in the worker's pool of peers */
	struct wire_group msg;
};

/* Failed joins of this key, here or elsewhere: messages about them are stale. */
struct join_failure {
	struct list link;
	uint64_t key;
	uint32_t attempt; /* the last of them */
};

/*
 * Keeps a control message in coll->kept or coll->leaves; drops it (logged) above the limit of all or of the peer.
 */
void join_keep(struct coll *coll, struct peer *from, const struct wire_group *msg);
/* Begins the join; g->join.key is set. */
void join_start(struct group *g);
void join_hear(struct coll *coll, struct peer *from, const struct wire_group *msg);
/* A pending join fails; tells the other members. */
void join_fail(struct group *g, int err);
/* The peer is disconnected. */
void join_peer_failed(struct coll *coll, struct peer *peer, int err);
/* Asks the members from which nothing came for too long. */
void join_poll(struct coll *coll, uint64_t now);
void join_close(struct coll *coll);
void join_drop(struct coll *coll, struct join_message *w);

/* ---- For the files join*.c alone --------------------------------------------------------------- */

uint32_t join_parent(uint32_t rank);
/* Takes the next child out of a set: returns its rank, *k is the number of its bit. */
uint32_t join_child(const struct group *g, uint32_t *bits, unsigned int *k);
/* Fills a control message about the join. */
struct wire_group join_say_what(const struct group *g, enum wire_group_kind kind);
int join_say(struct group *g, uint32_t rank, enum wire_group_kind kind);
/* The active one of this key, or NULL. */
struct group *join_find(struct coll *coll, uint64_t key);
struct join_failure *join_failure_of(struct coll *coll, uint64_t key);
/* An attempt has failed: messages about it, or about earlier ones, are stale from now on. */
void join_note_failure(struct coll *coll, uint64_t key, uint32_t attempt);
/* If all members below us have joined: reports to our parent, or forms the group. */
void join_check(struct group *g);
/* The group is formed, with this number: tells our children. */
void join_formed(struct group *g, uint64_t id);
/* Handles messages about the join that came before it began; it may fail by that. */
void join_hear_kept(struct group *g);

#endif
