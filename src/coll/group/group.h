/* SPDX-License-Identifier: BSD-2-Clause */
/* A group as one member sees it, from the join to fi_close of its fid_mc. Domain locked. */
#ifndef WEFT_COLL_GROUP_H
#define WEFT_COLL_GROUP_H

#include <rdma/fi_cm.h>

#include "coll/coll.h"

struct av_members;
struct layout;
struct packet;

/* A member announces the end of a group to the members 2^k ranks above and below. */
#define GROUP_LINKS 24 /* limit of k: a rank has this many bits */

/* The state of a join. */
struct join {
	uint64_t key; /* hash of the members in order, and of the group they are part of */
	uint32_t attempt;
	uint32_t children;              /* bit k: the member of rank + 2^k must report to us */
	uint32_t arrived;               /* bit k: that member has reported */
	uint32_t attempts[GROUP_LINKS]; /* attempt numbers of the reports */
	bool active;                    /* false: an older join of this key is pending */
	bool reported;                  /* our report was sent to the parent */
	uint64_t since, probe_at;       /* ms */
};

/* Members that may have left while we were not connected. Bit sets by rank, 64 per entry. */
struct doubt {
	uint64_t seen; /* members awaited since we connected: already asked, */
	uint64_t due;  /* or to be asked at the next poll */
};

/*
 * Short messages of a group that arrived before their operation waited for them, from members that are a step ahead.
 * This queue is faster than the queues of the group's context, which take all other messages. A member's messages stay
 * in order: nothing is put here while a message waits in those queues.
 */
#define EARLY_QUEUE_MESSAGES 16
#define EARLY_QUEUE_BYTES    64 /* longest payload kept */

struct early_message {
	uint64_t tag; /* as it came */
	size_t len;
	_Alignas(16) unsigned char payload[EARLY_QUEUE_BYTES];
};

struct early_queue {
	unsigned int count;
	struct early_message message[EARLY_QUEUE_MESSAGES]; /* in the order they came */
};

struct group {
	struct fid_mc fid;
	struct coll *coll;
	struct ep *ep;
	struct list in_coll, in_bucket, in_joins, in_broken;
	struct av_members *members; /* shared with the address vector set */
	uint64_t set;               /* number of the set */
	uint64_t flags;             /* FI_*_SET: permitted collectives; 0: all */
	uint64_t ways;              /* FI_SEND, FI_RECV: what this endpoint may do */
	uint64_t serial;            /* number among this endpoint's groups, never reused */
	uint64_t id;                /* number in the group's messages; 0: not formed yet */
	uint32_t rank, size;
	uint16_t cpus; /* fewest processors of the members that have reported; 0: unknown */
	bool shares;   /* every member shares memory with others on its host */
	int err;       /* positive: the group has ended, or the join failed */
	struct join join;
	struct rx rx;
	struct early_queue early;
	struct list ops; /* struct op.in_group, in call order */
	size_t op_count;
	unsigned int alone_count; /* number of operations with op->alone */
	uint64_t seq;             /* number of the last collective */
	unsigned int spell; /* counts collectives since all members last waited for each other */
	bool laid_out;      /* layout is made, or not needed */
	struct layout *layout;
	uint64_t *left;       /* bit set by rank: members that have closed the group; NULL: none */
	struct doubt *doubts; /* NULL: no member was awaited yet */
	bool doubts_due;      /* some member must be asked whether it has left */
	uint32_t missed;      /* rank of a member that could not be reached */
	uint64_t missed_at;   /* time (ms) of the first failure; 0: none */
	fi_addr_t root;       /* root of the last call */
	uint32_t root_rank;
};

/* Creates a group, not formed. Takes `members` on success. Returns NULL if memory is out. */
struct group *group_new(struct coll *coll, struct av_members *members, uint32_t rank);
/* Returns the group of this collective address, or NULL. */
struct group *group_of(struct coll *coll, fi_addr_t coll_addr);
struct group *group_find(struct coll *coll, uint64_t id);
/* The group is formed, with this number: reports the join as complete. */
void group_form(struct group *g, uint64_t id);
/* The join failed: reports the error. */
void group_refuse(struct group *g, int err);
/* The group has failed with `err` (positive); coll_run ends it. */
void group_fail(struct group *g, int err);
/* A member cannot be reached: the group fails if this persists. */
void group_miss(struct group *g, uint32_t rank, int err);
/* Ends all operations of the group and tells the other members. */
void group_end(struct group *g);
/* Is this peer the member of that rank? */
bool group_has(struct group *g, uint32_t rank, const struct peer *peer);
/* Returns the rank of the peer; g->size: not a member. */
uint32_t group_rank(struct group *g, const struct peer *peer);
/* Returns the rank of an entry of the address vector; g->size: not a member. */
uint32_t group_rank_of(struct group *g, fi_addr_t addr);
fi_addr_t group_member(const struct group *g, uint32_t rank);
/* Sends a control message to the members 2^k ranks above and below. */
void group_tell(struct group *g, const struct wire_group *msg);
/* Tells the peer that the group has ended. Returns NULL. */
struct rx *group_answer(struct group *g, struct peer *to);
/* Ends the group if a receive waits for a member that has left. */
void group_poll(struct group *g);
/*
 * Finds out which members share a host, before the first collective: all members plan with the
 * layout. Returns 0 or -FI_ENOMEM.
 */
int group_lay_out(struct group *g);

/* Short messages that came early: see struct early_queue. */

/* Returns false if the message is too long, needs an answer, or the queue is full. */
bool early_queue_put(struct early_queue *early, const struct packet *p);
/* Returns the oldest message of this tag, ignoring WIRE_GROUP_WHAT_MASK, or NULL. */
struct early_message *early_queue_find(struct early_queue *early, uint64_t tag);
void early_queue_drop(struct early_queue *early, struct early_message *message);

/*
 * Messages to groups that are not formed here. If the group may still be joined here, the message
 * is kept, within the budget of its connection; else the sender gets ABORT. Domain locked.
 */

/* Returns the context that keeps the message; NULL: no join here can need it. */
struct rx *early_context(struct coll *coll, struct peer *peer, const struct packet *p);
/* The group is formed: moves its messages to the group's own queues. */
void early_take(struct group *g);
/* Tells the peer that no group of this number is joined here. */
void early_abort(struct peer *peer, uint64_t id);
/* No join is pending any more: drops messages kept for joins. */
void early_flush(struct coll *coll);
/* The peer is disconnected. */
void early_peer_failed(struct coll *coll, struct peer *peer);

/*
 * What a peer may say about a group or a join: control messages count only from members, at the
 * rank that they name and in the relation that the message is for. Domain locked.
 */

/* May this peer send us this control message about the group, formed or being joined? */
bool member_may(struct group *g, const struct peer *from, const struct wire_group *msg);
/* Logs and counts the message, which is dropped: the sender is no such member. */
void member_refuse(struct coll *coll, const struct peer *from, const struct wire_group *msg);
/* The same for a message of a collective with this tag. `from` NULL: an unknown, lost peer. */
void member_refuse_message(struct coll *coll, const struct peer *from, uint64_t tag);

/*
 * Numbers of groups whose membership the application manages. Joining such a group sends no control
 * message: each member counts its joins per key, and the number contains the count. Domain locked.
 */

/* Set in the numbers of managed groups, only. */
#define MANAGED_ID (UINT64_C(1) << 63)

/*
 * Returns the last number for this key, for managed_next to advance; NULL: no memory. The pointer
 * is valid until the next call. Numbers take eight bytes per key until the endpoint closes.
 */
uint64_t *managed_last(struct coll *coll, uint64_t key);
uint64_t managed_next(uint64_t id);
/* May a group of this number still be joined here? */
bool managed_ahead(const struct coll *coll, uint64_t id);

/*
 * Early control messages: about joins that have not begun here, and about the end of groups not formed here yet.
 * Whether the sender is a member cannot be known before, so they only count for a budget of the worker, one message for
 * each KEPT_BYTES of FI_WEFT_UNEXPECTED_MAX, from KEPT_LEAST to KEPT_MOST, which peers share: one peer has at most a
 * part of it, and if it is used up, the peer with the most messages loses its oldest. A lost report of a join is asked
 * for again (PROBE), a lost end of a group too (HERE). Domain locked.
 */
struct kept_message {
	struct list link;    /* coll->kept or coll->leaves, oldest first */
	struct list of_peer; /* peer->kept_controls, oldest first */
	struct peer *from;
	struct wire_group msg;
};

#define KEPT_BYTES  1024
#define KEPT_LEAST  64u
#define KEPT_MOST   65536u
#define KEPT_SHARES 16 /* a peer may have this fraction of the budget */

/* Keeps the message, or drops and logs it. */
void kept_add(struct coll *coll, struct peer *from, const struct wire_group *msg);
void kept_drop(struct coll *coll, struct kept_message *w);
/* The peer is disconnected, or freed next. */
void kept_drop_of(struct coll *coll, struct peer *peer);
void kept_close(struct coll *coll);

/*
 * Members that close the group. A member closes when its own part is done. It sends LEAVE, behind all its messages, to
 * the members it is connected to. If one of them still waits for a message of it, the group fails for all members at
 * once. A member that connects to another one only to wait for it asks it first whether it is still in the group
 * (HERE). It asks members that were connected by other traffic too, somewhat later. Domain locked.
 */

/* Announces that we close the group; no operation is in progress. */
void leave_say(struct group *g);
/* Asks a member that we wait for whether it is still in the group. */
void leave_ask(struct group *g, uint32_t rank);
/* Has this member left? */
static inline bool leave_has(const struct group *g, uint32_t rank)
{
	return g->left && g->left[rank / 64] >> rank % 64 & 1;
}
void leave_doubt_first(struct group *g, uint32_t rank);
/* Must this member be asked? It may have left before we connected. */
static inline bool leave_doubts(const struct group *g, uint32_t rank)
{
	return !g->doubts || !(g->doubts[rank / 64].seen >> rank % 64 & 1);
}
/* We wait for a connected member: asks it once, later. */
static inline void leave_doubt(struct group *g, uint32_t rank)
{
	if (leave_doubts(g, rank))
		leave_doubt_first(g, rank);
}
/* The connection ended: over the next one the member may not know that we are in the group. */
static inline void leave_doubt_again(struct group *g, uint32_t rank)
{
	if (g->doubts)
		g->doubts[rank / 64].seen &= ~(UINT64_C(1) << rank % 64);
}
/* Sends the questions that are due. */
void leave_poll(struct group *g);
/* Handles LEAVE, or ABORT: the group has ended for the sender. */
void leave_hear(struct coll *coll, struct peer *from, const struct wire_group *msg);
void leave_hear_ask(struct coll *coll, struct peer *from, const struct wire_group *msg);
/* The group is formed: handles kept messages of members that have already left. */
void leave_take(struct group *g);
/* No join is pending any more: drops kept messages about groups that joins could have formed. */
void leave_flush(struct coll *coll);

/*
 * Joins. Each member reports to its parent in a binomial tree of the ranks (UP). Rank 0 gives the group a number and
 * sends it down the tree (DOWN). Until then `key` identifies the join. A member that waits long asks those it waits for
 * (PROBE, ASK). See join.c for members that do not agree. Domain locked.
 */

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
