/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of injected operations, for all kinds of operations and for each. */
#include "core/ep.h"

static void ep_inject_lower(size_t *value, size_t most)
{
	if (*value > most)
		*value = most;
}

void ep_set_inject(struct ep *ep, uint64_t kind, size_t value)
{
	static const uint64_t kinds[] = {FI_MSG, FI_TAGGED, FI_RMA, FI_ATOMIC};

	if (kind & FI_ATOMIC)
		ep->atomic_inject_max = value;
	else if (kind & FI_RMA)
		ep->rma_inject_max = value;
	else if (kind & FI_TAGGED)
		ep->tagged_inject_max = value;
	else
		ep->inject_max = value;
	ep->inject_least = ep->inject_limit;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		ep_inject_lower(&ep->inject_least, ep_inject_max(ep, kinds[i]));
}

void ep_limit_inject(struct ep *ep, size_t most)
{
	ep_inject_lower(&ep->inject_limit, most);
	ep_inject_lower(&ep->inject_least, most);
	ep_inject_lower(&ep->inject_max, most);
	ep_inject_lower(&ep->tagged_inject_max, most);
	ep_inject_lower(&ep->rma_inject_max, most);
	ep_inject_lower(&ep->atomic_inject_max, most);
}
