/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members that close the group. A member leaves when it has done its part, whatever the others do: it sends LEAVE,
 * behind all its messages, to the members it is connected to. If one of them still waits for a message of it, the
 * group ends with an error, there and then everywhere. A member that connects only to wait for another one asks
 * whether that one is still there (HERE); so does, a while later, a member that was connected by other traffic.
 * Domain locked.
 */
#ifndef WEFT_COLL_LEAVE_H
#define WEFT_COLL_LEAVE_H

#include "coll/group/group.h"

/* We close the group, with nothing under way. */
void leave_say(struct group *g);
/* Asks the member that we wait for whether it is still there. */
void leave_ask(struct group *g, uint32_t rank);
/* Has that member left? */
static inline bool leave_has(const struct group *g, uint32_t rank)
{
	return g->left && g->left[rank / 64] >> rank % 64 & 1;
}
void leave_doubt_first(struct group *g, uint32_t rank);
/* Must the member be asked? It may have left before we were connected. */
static inline bool leave_doubts(const struct group *g, uint32_t rank)
{
	return !g->doubts || !(g->doubts[rank / 64].seen >> rank % 64 & 1);
}
/* We wait for a connected member: it is asked once, later. */
static inline void leave_doubt(struct group *g, uint32_t rank)
{
	if (leave_doubts(g, rank))
		leave_doubt_first(g, rank);
}
/* The connection ended: with the next one the member may not know that we are in the group. */
static inline void leave_doubt_again(struct group *g, uint32_t rank)
{
	if (g->doubts)
		g->doubts[rank / 64].seen &= ~(UINT64_C(1) << rank % 64);
}
/* Sends the questions that are due. */
void leave_poll(struct group *g);
/* A LEAVE, or an ABORT: the group has ended for the sender. */
void leave_hear(struct coll *coll, struct peer *from, const struct wire_group *msg);
void leave_hear_ask(struct coll *coll, struct peer *from, const struct wire_group *msg);
/* The group is formed: handles kept messages of members that have left already. */
void leave_take(struct group *g);
/* No join is pending any more: drops kept messages about groups that one could have formed. */
void leave_flush(struct coll *coll);

#endif
