/* SPDX-License-Identifier: BSD-2-Clause */
/* Shares of the budget: beyond its own a sender has to pause. */
#include <rdma/fi_ext_weft.h>

#include "xfer/msg/budget.h"
#include "xfer/worker.h"

/* All that the address vector does not hold have one share together. */
static size_t share_of(const struct peer *peer, size_t mark)
{
	const struct budget *b = &peer_worker(peer)->budget;
	size_t parts = b->holder_count[1] + (b->all.count != b->known.count);

	if (!peer->rx.account.known)
		parts *= b->holder_count[0];
	if (!parts)
		parts = 1;
	return mark / parts;
}

bool budget_pauses(const struct peer *peer, size_t mark)
{
	return peer->rx.account.sum.bytes > share_of(peer, mark);
}

bool budget_resumes(const struct peer *peer, size_t mark)
{
	return peer->rx.account.sum.bytes <= share_of(peer, mark) / 2;
}

bool budget_full(const struct budget *b, size_t mark)
{
	return b->all.bytes > mark;
}

void budget_stats(const struct budget *b, struct fi_weft_stats *stats)
{
	stats->unexpected_bytes = b->all.bytes;
	stats->unexpected_count = b->all.count;
	stats->unexpected_dropped = b->dropped;
	stats->unexpected_disconnected = b->disconnected;
}
