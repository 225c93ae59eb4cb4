/* SPDX-License-Identifier: BSD-2-Clause */
/* Adding a call to the figures of its kind. */
#ifndef WEFT_HOOK_TALLY_H
#define WEFT_HOOK_TALLY_H

#include <rdma/fi_errno.h>

#include "hook/call.h"
#include "hook/tally_page.h"

static inline void tally_field(uint64_t *field, uint64_t value)
{
	if (value)
		__atomic_fetch_add(field, value, __ATOMIC_RELAXED);
}

static inline void tally_add(struct tally *t, const struct call *call)
{
	bool failed = call_failed(call);
	bool again = failed && (int64_t)*call_result(call) == -FI_EAGAIN;

	tally_field(&t->calls, 1);
	tally_field(&t->again, again);
	tally_field(&t->failed, failed && !again);
	tally_field(&t->bytes, failed ? 0 : call->bytes);
	tally_field(&t->ns, call->ended.ns - call->began.ns);
	tally_field(&t->events, call->ended.events - call->began.events);
}

#endif
