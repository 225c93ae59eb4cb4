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
 * Short messages of a group that arrived before their operation waited for them, from members that
 * are a step ahead. This queue is faster than the queues of the group's context, which take all
 * other messages. A member's messages stay in order: nothing is put here while a message waits in
 * those queues.
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

#endif
