/* SPDX-License-Identifier: BSD-2-Clause */
/* One group as one member sees it: from the join to fi_close of its fid_mc. Domain locked. */
#ifndef WEFT_COLL_GROUP_H
#define WEFT_COLL_GROUP_H

#include <rdma/fi_cm.h>

#include "coll/coll.h"
#include "coll/group/early_queue.h"

struct av_members;
struct layout;

/* Neighbours in the graph that ends are told along: 2^k ranks up and down. */
#define GROUP_LINKS 24 /* k below this: a rank has so many bits */

/* A join under way. */
struct join {
	uint64_t key; /* who the members are, in their order; and of what they are a part */
	uint32_t attempt;
	uint32_t children;              /* by k: rank + 2^k is to tell us */
	uint32_t arrived;               /* has told us */
	uint32_t attempts[GROUP_LINKS]; /* theirs */
	bool active;                    /* no older one of this key is pending */
	bool reported;                  /* to our parent */
	uint64_t since, probe_at;       /* ms */
};

/* Has a member left while we were not connected? Bits by rank, of 64 each. */
struct doubt {
	uint64_t seen; /* waited for since we are connected: it was asked, */
	uint64_t due;  /* or will be at the next look */
};

struct group {
	struct fid_mc fid;
	struct coll *coll;
	struct ep *ep;
	struct list in_coll, in_bucket, in_joins, in_broken;
	struct av_members *members; /* shared with the set */
	uint64_t set;               /* number of that */
	uint64_t flags;             /* FI_*_SET: the collectives it is for; none: all */
	uint64_t ways;              /* FI_SEND, FI_RECV: which data of ours may go and come */
	uint64_t serial;            /* among those of this endpoint, never the same again */
	uint64_t id;                /* what messages call it; 0: it does not stand yet */
	uint32_t rank, size;
	uint16_t cpus; /* of the member with the fewest, of those heard of; 0: nobody says */
	bool shares;   /* all of them share memory with others of their host */
	int err;       /* positive: it has ended, or never stood */
	struct join join;
	struct rx rx;
	struct early_queue early; /* short messages, before they are waited for */
	struct list ops;          /* struct op.in_group, in the order of the calls */
	size_t op_count;
	unsigned int alone_count; /* of them: op->alone */
	uint64_t seq;             /* of the last collective */
	unsigned int spell;       /* since the last one that all waited for all in */
	bool laid_out;            /* layout is there, or not needed */
	struct layout *layout;
	uint64_t *left;       /* bits by rank: who has closed it; NULL: nobody */
	struct doubt *doubts; /* NULL: nobody has been waited for */
	bool doubts_due;      /* somebody is to be asked */
	uint32_t missed;      /* member who could not be reached, */
	uint64_t missed_at;   /* ms: since when; 0: none */
	fi_addr_t root;       /* asked for last */
	uint32_t root_rank;
};

/* One that does not stand yet. Takes `members` on success. NULL: no memory. */
struct group *group_new(struct coll *coll, struct av_members *members, uint32_t rank);
/* The group an application means by this address, or NULL. */
struct group *group_of(struct coll *coll, fi_addr_t coll_addr);
struct group *group_find(struct coll *coll, uint64_t id);
/* It stands, by this number: the application is told. */
void group_form(struct group *g, uint64_t id);
/* The application is told that it does not. */
void group_refuse(struct group *g, int err);
/* Will be ended by coll_run: err is positive. */
void group_fail(struct group *g, int err);
/* A member cannot be reached: if that is so for a while, the group will be ended. */
void group_miss(struct group *g, uint32_t rank, int err);
/* Ends all that is under way in it, and tells the others. */
void group_end(struct group *g);
/* Is the member of that rank this peer? */
bool group_has(struct group *g, uint32_t rank, const struct peer *peer);
/* The rank of a peer, or `size`. */
uint32_t group_rank(struct group *g, const struct peer *peer);
/* The rank of an entry of the vector, or `size`. */
uint32_t group_rank_of(struct group *g, fi_addr_t addr);
fi_addr_t group_member(const struct group *g, uint32_t rank);
/* Says it to all neighbours. */
void group_tell(struct group *g, const struct wire_group *msg);
/* One of an ended group is told that it is; NULL. */
struct rx *group_answer(struct group *g, struct peer *to);
/* Receives that wait for members who have left are looked at. */
void group_poll(struct group *g);
/*
 * Before the first collective: who shares a host with whom is found out. All members plan by it, so
 * without it none can be begun. 0 or -FI_ENOMEM.
 */
int group_lay_out(struct group *g);

#endif
