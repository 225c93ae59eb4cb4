/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members who close the group. Whoever has done its part goes, whatever the others are at: what it sent
 * them is before its last word (LEAVE). Who waits for it then waits in vain, and the group ends there,
 * so everywhere. It tells those it is connected to; who connects only to wait for somebody asks whether
 * he is still there (HERE). Domain locked.
 */
#ifndef WEFT_COLL_LEAVE_H
#define WEFT_COLL_LEAVE_H

#include "coll/group.h"

/* We close it, with nothing under way. */
void leave_say(struct group *g);
/* Asks that member, whom we wait for. */
void leave_ask(struct group *g, uint32_t rank);
/* Has that member left? */
static inline bool leave_has(const struct group *g, uint32_t rank)
{
	return g->left && g->left[rank / 64] >> rank % 64 & 1;
}
/* Its last word, or that the group has ended for it (ABORT). */
void leave_hear(struct coll *coll, struct peer *from, const struct wire_group *word);
void leave_hear_ask(struct coll *coll, struct peer *from, const struct wire_group *word);
/* The group stands: who has left it already? */
void leave_take(struct group *g);
/* No join is pending: what was said about groups that might have come of one is void. */
void leave_flush(struct coll *coll);

#endif
