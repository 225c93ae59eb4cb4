/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to groups that are not formed here. If the group may still be joined here, the message
 * is kept, within the budget of its connection; else the sender gets ABORT. Domain locked.
 */
#ifndef WEFT_COLL_EARLY_H
#define WEFT_COLL_EARLY_H

#include "coll/group/group.h"

/* Returns the context that keeps the message; NULL: no join here can need it. */
struct rx *early_context(struct coll *coll, struct peer *peer, const struct packet *p);
/* The group is formed: moves its messages to the group's own queues. */
void early_take(struct group *g);
/* No join is pending any more: drops messages kept for joins. */
void early_flush(struct coll *coll);
/* The peer is disconnected. */
void early_peer_failed(struct coll *coll, struct peer *peer);

#endif
