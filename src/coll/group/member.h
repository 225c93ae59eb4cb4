/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a peer may say about a group or a join: control messages count only from members, at the
 * rank that they name and in the relation that the message is for. Domain locked.
 */
#ifndef WEFT_COLL_MEMBER_H
#define WEFT_COLL_MEMBER_H

#include "coll/group/group.h"

/* May this peer send us this control message about the group, formed or being joined? */
bool member_may(struct group *g, const struct peer *from, const struct wire_group *msg);
/* Logs and counts the message, which is dropped: the sender is no such member. */
void member_refuse(struct coll *coll, const struct peer *from, const struct wire_group *msg);
/* The same for a message of a collective with this tag. `from` NULL: an unknown, lost peer. */
void member_refuse_message(struct coll *coll, const struct peer *from, uint64_t tag);

#endif
