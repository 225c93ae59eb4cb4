/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of a round of a collective. Domain locked. */
#ifndef WEFT_COLL_EXCHANGE_H
#define WEFT_COLL_EXCHANGE_H

#include "coll/op.h"

/* Prepares an operation that is new, or was ended in the middle of a round. */
void exchange_prepare(struct op *op);
/* Starts the messages of op->round; when the last is complete, the operation is put on coll->ready. */
void exchange_start(struct op *op);
/*
 * A message to the group has come. True: an operation waited for it and has it now, or will find it in the early
 * queue.
 */
bool exchange_take(struct group *g, struct peer *peer, const struct packet *p);
/* Is this the work of a slot? */
bool exchange_is_work(const struct work *work);
/* Does the operation wait for a message of that member? */
bool exchange_waits_for(const struct op *op, uint32_t rank);
/* Connects to members that the operation waits for. */
void exchange_poll(struct op *op);
/* Does a long message of the group to this peer still await its ATS? */
bool exchange_awaits_ats(const struct group *g, const struct peer *peer);

#endif
