/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of a round of a collective. Domain locked. */
#ifndef WEFT_COLL_EXCHANGE_H
#define WEFT_COLL_EXCHANGE_H

#include "coll/op.h"

/* Prepares an operation that is new, or was ended during a round. */
void exchange_prepare(struct op *op);
/* Starts the messages of op->round. When all are complete, the operation goes to coll->ready. */
void exchange_start(struct op *op);
/*
 * Handles a message to the group. Returns true if a waiting operation took the message, or the
 * early queue keeps it.
 */
bool exchange_take(struct group *g, struct peer *peer, const struct packet *p);
/* Does the work belong to a slot of an operation? */
bool exchange_is_work(const struct work *work);
/* Does the operation wait for a message from this member? */
bool exchange_waits_for(const struct op *op, uint32_t rank);
/* Connects to the members that the operation waits for; finds members that have left. */
void exchange_poll(struct op *op);
/* Does a long message of the group to this peer still wait for its ATS? */
bool exchange_awaits_ats(const struct group *g, const struct peer *peer);

#endif
