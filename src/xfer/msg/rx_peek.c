/* SPDX-License-Identifier: BSD-2-Clause */
/* Unexpected messages are peeked at, claimed and discarded as fi_tagged(3) describes. */
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/cq.h"
#include "link/wire.h"
#include "xfer/rma/rma.h"
#include "xfer/worker.h"
#include "xfer/msg/rx.h"
#include "xfer/msg/tx.h"

/*
 * A peek makes no progress call after so many and this time (ns): a peer can send for ever. Time alone says nothing: the
 * process may have been off its core.
 */
#define LOOK_CALLS 1024u
#define LOOK_NS    100000u

/* Drops a message, and answers its sender if that awaits an answer. */
static void rx_peek_discard(struct rx *rx, struct unexpected *u)
{
	rx_take(rx, u);
	if (u->peer && wire_op(u->head) == WIRE_AMO)
		rma_match_refuse(u->peer, u->head);
	else if (u->peer && rx_wants_ack(u->head))
		tx_control(u->peer, WIRE_HEAD(WIRE_ATS, 0, 0, wire_id(u->head)), 0);
	rx_drop(u);
}

static size_t message_len(const struct unexpected *u)
{
	struct wire_rts rts;

	if (wire_op(u->head) == WIRE_AMO)
		return rma_match_len(&(struct message){.peer = u->peer,
						       .head = u->head,
						       .tag = u->tag,
						       .data = u->data,
						       .len = u->len,
						       .payload = u->payload});
	if (wire_op(u->head) != WIRE_RTS)
		return u->len;
	memcpy(&rts.len, u->payload, sizeof(rts.len));
	return rts.len;
}

static void complete_peek(struct rx *rx, bool tagged, const struct recv_args *args,
			  const struct unexpected *u)
{
	struct cq_slot slot = {.context = args->context,
			       .flags = FI_RECV | (tagged ? FI_TAGGED : FI_MSG),
			       .tag = u ? u->tag : args->tag,
			       .src = FI_ADDR_NOTAVAIL};

	if (!rx->cq)
		return;
	if (!u) {
		cq_push_error(rx->cq, &slot,
			      &(struct cq_error){.err = FI_ENOMSG, .prov_errno = FI_ENOMSG}, NULL);
		return;
	}
	if (wire_op(u->head) == WIRE_AMO) {
		slot.flags |= FI_ATOMIC;
	} else if (wire_flags(u->head) & WIRE_DATA) {
		slot.flags |= FI_REMOTE_CQ_DATA;
		slot.data = u->data;
	}
	slot.len = message_len(u);
	slot.src = rx_reported(rx, u->peer, u->src);
	cq_push(rx->cq, slot);
}

/* Looks at what has come, too: the message may lie behind many others, and behind requests that wait. */
static struct unexpected *rx_peek_find(struct rx *rx, struct worker *worker, bool tagged,
				       const struct recv_args *args)
{
	struct unexpected *u = rx_unexpected(rx, tagged, args);
	uint64_t begin = u ? 0 : clock_ns();
	unsigned int calls = 0;

	while (!u && worker && driven_progress(&worker->conn.driven)) {
		u = rx_unexpected(rx, tagged, args);
		if (++calls >= LOOK_CALLS && clock_ns() - begin >= LOOK_NS)
			break;
	}
	return u;
}

int rx_peek(struct rx *rx, struct worker *worker, bool tagged, const struct recv_args *args)
{
	struct unexpected *u;

	if (args->flags & FI_CLAIM && !args->context)
		return LOG_REFUSE(
			-FI_EINVAL, LOG_EP_DATA,
			"FI_CLAIM without a context, which has to be a struct fi_context");
	u = rx_peek_find(rx, worker, tagged, args);
	complete_peek(rx, tagged, args, u);
	if (!u)
		return 0;
	if (args->flags & FI_DISCARD) {
		rx_peek_discard(rx, u);
	} else if (args->flags & FI_CLAIM) {
		struct fi_context *context = args->context;

		rx_claim(rx, u);
		context->internal[0] = u;
	}
	return 0;
}

/* FI_CLAIM | FI_DISCARD: drops the claimed message; rx_claimed has found that there is one. */
int rx_discard_claimed(struct rx *rx, bool tagged, const struct recv_args *args)
{
	struct fi_context *context = args->context;
	struct unexpected *u = context->internal[0];

	context->internal[0] = NULL;
	complete_peek(rx, tagged, args, u);
	rx_peek_discard(rx, u);
	return 0;
}
