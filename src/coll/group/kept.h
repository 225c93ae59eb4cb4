/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Early control messages: about joins that have not begun here, and about the end of groups not
 * formed here yet. Whether the sender is a member cannot be known before, so they only count for a
 * budget of the worker, one message for each KEPT_BYTES of FI_WEFT_UNEXPECTED_MAX, from KEPT_LEAST to
 * KEPT_MOST, which peers share: one peer has at most a part of it,
 * and if it is used up, the peer with the most messages loses its oldest. A lost report of a join
 * is asked for again (PROBE), a lost end of a group too (HERE). Domain locked.
 */
#ifndef WEFT_COLL_KEPT_H
#define WEFT_COLL_KEPT_H

#include "coll/coll.h"

struct kept_message {
	struct list link;    /* coll->kept or coll->leaves, oldest first */
	struct list of_peer; /* peer->kept_controls, oldest first */
	struct peer *from;
	struct wire_group msg;
};

#define KEPT_BYTES  1024
#define KEPT_LEAST  64u
#define KEPT_MOST   65536u
#define KEPT_SHARES 16 /* a peer may have this fraction of the budget */

/* Keeps the message, or drops and logs it. */
void kept_add(struct coll *coll, struct peer *from, const struct wire_group *msg);
void kept_drop(struct coll *coll, struct kept_message *w);
/* The peer is disconnected, or freed next. */
void kept_drop_of(struct coll *coll, struct peer *peer);
void kept_close(struct coll *coll);

#endif
