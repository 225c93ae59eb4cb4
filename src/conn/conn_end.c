/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/conn_end.h"

#include <rdma/fi_errno.h>

#include "base/reason.h"
#include "conn/contact.h"

const struct conn_end_row conn_end_rows[END_COUNT] = {
	[END_LOST] = {FI_ECONNRESET, REASON_ENDED, false},
	[END_SILENT] = {FI_ETIMEDOUT, REASON_SILENT, false},
	[END_NOBODY] = {FI_ECONNREFUSED, REASON_NOBODY, false},
	[END_REFUSED] = {FI_EACCES, REASON_REFUSED, false},
	[END_AWAITED] = {FI_EFIREWALLADDR, REASON_AWAITED, false},
	[END_PROTOCOL] = {FI_EPROTO, 0, false},
	[END_OTHER] = {0},
	[END_CLOSED] = {FI_ESHUTDOWN, REASON_CLOSED, false},
	[END_LOCAL] = {0},
	[END_RETIRED] = {FI_ESHUTDOWN, 0, false},
	[END_BUDGET] = {FI_EPROTO, REASON_BUDGET, true},
	[END_KEYS] = {FI_EPROTO, REASON_BUDGET, true},
	[END_MEMORY] = {FI_ENOMEM, REASON_MEMORY, false},
	[END_OVERDUE] = {FI_ETIMEDOUT, REASON_OVERDUE, false},
	[END_STUCK] = {FI_ETIMEDOUT, REASON_STUCK, false},
};

/* Returns the end that an error (positive) tells of. */
static enum conn_end conn_end_of(int err)
{
	enum conn_end end = END_LOST;

	while (end < END_OTHER && conn_end_rows[end].error != err)
		end++;
	return end;
}

int conn_end_decide(struct contact *peer, int found)
{
	const struct conn_end_row *row;

	if (!peer->end)
		peer->end = conn_end_of(found);
	row = &conn_end_rows[peer->end];
	return row->error ? row->error : found;
}

void conn_end_closed(struct contact *peer)
{
	if (contact_linked(peer) && !contact_expelled(peer))
		peer->end = END_CLOSED;
}

int conn_end_reason(const struct contact *peer, int err)
{
	const struct conn_end_row *row = &conn_end_rows[peer->end];

	/* A device knows more than its error. */
	if (peer->end <= END_OTHER && peer->real && peer->real->reason)
		return peer->real->reason;
	return row->reason ? row->reason : err;
}
