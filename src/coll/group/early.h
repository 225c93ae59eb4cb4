/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to groups that are not formed here. A message to a group that may still be joined here is kept, within
 * the budget of its connection; to others the answer is that we are no member (ABORT). Domain locked.
 */
#ifndef WEFT_COLL_EARLY_H
#define WEFT_COLL_EARLY_H

#include "coll/group/group.h"

/* The context that keeps such a message; NULL: no join here can need it. */
struct rx *early_context(struct coll *coll, struct peer *peer, const struct packet *p);
/* The group is formed: moves its members' messages to the queues in which its receives are posted. */
void early_take(struct group *g);
/* No join is pending any more: drops the messages kept for one. */
void early_flush(struct coll *coll);
/* The peer is disconnected. */
void early_peer_failed(struct coll *coll, struct peer *peer);

#endif
