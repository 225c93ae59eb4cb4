/* SPDX-License-Identifier: BSD-2-Clause */
/* One group as one member sees it: from the join to fi_close of its fid_mc. Domain locked. */
#ifndef WEFT_COLL_GROUP_H
#define WEFT_COLL_GROUP_H

#include <rdma/fi_cm.h>

#include "coll/coll.h"
#include "coll/group/early_queue.h"

struct av_members;
struct layout;

/* A member tells the end of a group to its neighbours: 2^k ranks up and down. */
#define GROUP_LINKS 24 /* k is below this: a rank has so many bits */

/* A join under way. */
struct join {
	uint64_t key; /* hash of the members in their order, and of the group they are a part of */
	uint32_t attempt;
	uint32_t children;              /* by k: rank + 2^k is to report to us */
	uint32_t arrived;               /* has reported to us */
	uint32_t attempts[GROUP_LINKS]; /* theirs */
	bool active;                    /* no older one of this key is pending */
	bool reported;                  /* to our parent */
	uint64_t since, probe_at;       /* ms */
};

/* Has a member left while we were not connected? Bits by rank, of 64 each. */
struct doubt {
	uint64_t seen; /* waited for since we are connected: it was asked, */
	uint64_t due;  /* or will be at the next poll */
};

struct group {
	struct fid_mc fid;
	struct coll *coll;
	struct ep *ep;
	struct list in_coll, in_bucket, in_joins, in_broken;
	struct av_members *members; /* shared with the set */
	uint64_t set;               /* number of the set */
	uint64_t flags;             /* FI_*_SET: the collectives it is for; none: all */
	uint64_t ways;              /* FI_SEND, FI_RECV: what this endpoint may do in it */
	uint64_t serial;            /* among those of this endpoint, never the same again */
	uint64_t id;                /* the number in its messages; 0: not formed yet */
	uint32_t rank, size;
	uint16_t cpus; /* of the member with the fewest that has reported; 0: not known */
	bool shares;   /* all of them share memory with others of their host */
	int err;       /* positive: it has ended, or was never formed */
	struct join join;
	struct rx rx;
	struct early_queue early; /* short messages, before they are waited for */
	struct list ops;          /* struct op.in_group, in the order of the calls */
	size_t op_count;
	unsigned int alone_count; /* of them: op->alone */
	uint64_t seq;             /* of the last collective */
	unsigned int spell;       /* collectives since the last one in which all waited for all */
	bool laid_out;            /* the layout is made, or not needed */
	struct layout *layout;
	uint64_t *left;       /* bits by rank: members that have closed it; NULL: none */
	struct doubt *doubts; /* NULL: no member has been waited for */
	bool doubts_due;      /* a member is to be asked whether it is still there */
	uint32_t missed;      /* member that could not be reached, */
	uint64_t missed_at;   /* ms: since when; 0: none */
	fi_addr_t root;       /* of the last call */
	uint32_t root_rank;
};

/* A group that is not formed yet. Owns `members` on success. NULL: no memory. */
struct group *group_new(struct coll *coll, struct av_members *members, uint32_t rank);
/* The group an application means by this address, or NULL. */
struct group *group_of(struct coll *coll, fi_addr_t coll_addr);
struct group *group_find(struct coll *coll, uint64_t id);
/* Formed, with this number: writes the event of the join. */
void group_form(struct group *g, uint64_t id);
/* The join failed: writes the error event. */
void group_refuse(struct group *g, int err);
/* Will be ended by coll_run: err is positive. */
void group_fail(struct group *g, int err);
/* A member cannot be reached: the group ends if that lasts. */
void group_miss(struct group *g, uint32_t rank, int err);
/* Ends all its operations and tells the other members. */
void group_end(struct group *g);
/* Is the member of that rank this peer? */
bool group_has(struct group *g, uint32_t rank, const struct peer *peer);
/* The rank of a peer, or `size`. */
uint32_t group_rank(struct group *g, const struct peer *peer);
/* The rank of an entry of the vector, or `size`. */
uint32_t group_rank_of(struct group *g, fi_addr_t addr);
fi_addr_t group_member(const struct group *g, uint32_t rank);
/* Sends a control message to all neighbours. */
void group_tell(struct group *g, const struct wire_group *msg);
/* Tells the peer that this group has ended. Returns NULL. */
struct rx *group_answer(struct group *g, struct peer *to);
/* Ends the group if a receive waits for a member that has left. */
void group_poll(struct group *g);
/*
 * Before the first collective: finds out which members share a host. All members plan by that, so without it no
 * collective can begin. 0 or -FI_ENOMEM.
 */
int group_lay_out(struct group *g);

#endif
