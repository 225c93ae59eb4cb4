/* SPDX-License-Identifier: BSD-2-Clause */
/* Deferred work as it is queued, for the files defer_*.c alone. Domain locked. */
#ifndef WEFT_XFER_DEFER_WORK_H
#define WEFT_XFER_DEFER_WORK_H

#include <rdma/fi_trigger.h>

#include "xfer/defer/defer.h"

struct deferred {
	struct work work;
	const struct fi_deferred_work *of; /* what names it; not followed once it is queued */
	enum fi_op_type type;
	const void *op; /* struct fi_op_*, as the type says: the application's until the end */
	struct cntr
		*reports_to; /* counts its end, or is the counter to change; in its ref; or NULL */
};

static inline struct deferred *deferred_of(const struct work *work)
{
	return LIST_ENTRY(work, struct deferred, work);
}

/* Are its arguments such that it can be posted? 0 or a negative error. */
int defer_post_check(struct deferred *d);
/* Posts it. 0: it ends by defer_done. -FI_EAGAIN, or why not. */
int defer_post(struct deferred *d);
/* It could not be posted: the endpoint's queue has that where its flags ask for it. */
void defer_post_error(const struct deferred *d, int err);

#endif
