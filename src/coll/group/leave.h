/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members who close the group. A member that has done its part goes, whatever the others are at: what it sent
 * them is before its last control message (LEAVE). Who waits for it then waits in vain, and the group ends there,
 * so everywhere. It tells those it is connected to. A member that connects only to wait for another one asks whether
 * he is still there (HERE); and so, a while after, does who was connected by other traffic. Domain locked.
 */
#ifndef WEFT_COLL_LEAVE_H
#define WEFT_COLL_LEAVE_H

#include "coll/group/group.h"

/* We close it, with nothing under way. */
void leave_say(struct group *g);
/* Asks that member, whom we wait for. */
void leave_ask(struct group *g, uint32_t rank);
/* Has that member left? */
static inline bool leave_has(const struct group *g, uint32_t rank)
{
	return g->left && g->left[rank / 64] >> rank % 64 & 1;
}
void leave_doubt_first(struct group *g, uint32_t rank);
/* Is it to be asked, as it may have left before we were connected? */
static inline bool leave_doubts(const struct group *g, uint32_t rank)
{
	return !g->doubts || !(g->doubts[rank / 64].seen >> rank % 64 & 1);
}
/* We wait for that member, and are connected: it is asked later, once. */
static inline void leave_doubt(struct group *g, uint32_t rank)
{
	if (leave_doubts(g, rank))
		leave_doubt_first(g, rank);
}
/* The connection to it is gone: of the next one it may not know that we are a member. */
static inline void leave_doubt_again(struct group *g, uint32_t rank)
{
	if (g->doubts)
		g->doubts[rank / 64].seen &= ~(UINT64_C(1) << rank % 64);
}
/* Asks the members that are to be asked. */
void leave_poll(struct group *g);
/* Its LEAVE, or that the group has ended for it (ABORT). */
void leave_hear(struct coll *coll, struct peer *from, const struct wire_group *msg);
void leave_hear_ask(struct coll *coll, struct peer *from, const struct wire_group *msg);
/* The group stands: who has left it already? */
void leave_take(struct group *g);
/* No join is pending: what was said about groups that might have come of one is void. */
void leave_flush(struct coll *coll);

#endif
