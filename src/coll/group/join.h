/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How members who are given the same set find that they are: along a binomial tree of the ranks all tell
 * their parents, the first one gives the group a number, and tells it back down. A join is known by its
 * `key` until then. A member that waits long asks those it waits for; see join.c for what becomes of members
 * who do not agree. Domain locked.
 */
#ifndef WEFT_COLL_JOIN_H
#define WEFT_COLL_JOIN_H

#include "coll/group/group.h"

/* A control message about a join that nobody here has begun. */
struct join_message {
	struct list link;
	uint32_t from; /* in the worker's pool of peers */
	struct wire_group msg;
};

/* The joins of this key that came to nothing so far, here or elsewhere: news of them is old. */
struct join_failure {
	struct list link;
	uint64_t key;
	uint32_t attempt; /* the last of them */
};

/* Keeps a control message in one of coll's lists of them, unless there are too many, or too many of the peer. */
void join_keep(struct coll *coll, struct peer *from, const struct wire_group *msg);
/* Begins: g->join has its key. */
void join_start(struct group *g);
void join_hear(struct coll *coll, struct peer *from, const struct wire_group *msg);
/* A pending one comes to nothing; the others are told. */
void join_fail(struct group *g, int err);
/* The peer is gone. */
void join_peer_failed(struct coll *coll, struct peer *peer, int err);
/* Asks, where too long nothing was heard. */
void join_poll(struct coll *coll, uint64_t now);
void join_close(struct coll *coll);
void join_drop(struct coll *coll, struct join_message *w);

/* ---- For the files join*.c alone --------------------------------------------------------------- */

uint32_t join_parent(uint32_t rank);
/* The next child in a set of them, taken out; its rank is returned, its bit's number in *k. */
uint32_t join_child(const struct group *g, uint32_t *bits, unsigned int *k);
/* What is said of the join. */
struct wire_group join_say_what(const struct group *g, enum wire_group_kind kind);
int join_say(struct group *g, uint32_t rank, enum wire_group_kind kind);
/* The active one of this key, or NULL. */
struct group *join_find(struct coll *coll, uint64_t key);
struct join_failure *join_failure_of(struct coll *coll, uint64_t key);
/* An attempt has failed; what is heard of it, or of those before, is old from now on. */
void join_note_failure(struct coll *coll, uint64_t key, uint32_t attempt);
/* All below us have joined? Then our parent is told, or the group stands. */
void join_check(struct group *g);
/* The group stands, by this number: our children are told. */
void join_formed(struct group *g, uint64_t id);
/* What came about it before it began; it may end by that. */
void join_hear_kept(struct group *g);

#endif
