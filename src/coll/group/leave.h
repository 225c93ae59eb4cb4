/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members that close the group. A member closes when its own part is done. It sends LEAVE, behind
 * all its messages, to the members it is connected to. If one of them still waits for a message of
 * it, the group fails for all members at once. A member that connects to another one only to wait
 * for it asks it first whether it is still in the group (HERE). It asks members that were connected
 * by other traffic too, somewhat later. Domain locked.
 */
#ifndef WEFT_COLL_LEAVE_H
#define WEFT_COLL_LEAVE_H

#include "coll/group/group.h"

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

#endif
