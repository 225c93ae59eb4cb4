/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to groups that do not stand here. Those of a group that may be joined here yet are kept, up
 * to what one connection may make us keep; who sends others is told that we do not belong to it. Domain
 * locked.
 */
#ifndef WEFT_COLL_EARLY_H
#define WEFT_COLL_EARLY_H

#include "coll/group/group.h"

/* Where such a message is kept; NULL: nobody will ever want it. */
struct rx *early_context(struct coll *coll, struct peer *peer, const struct packet *p);
/* The group stands: what its members sent goes where its receives will be posted. */
void early_take(struct group *g);
/* No join is pending: what was kept for one is for nobody. */
void early_flush(struct coll *coll);
/* The peer is gone. */
void early_peer_failed(struct coll *coll, struct peer *peer);

#endif
