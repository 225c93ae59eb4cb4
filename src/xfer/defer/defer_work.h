/* SPDX-License-Identifier: BSD-2-Clause */
/* Queued deferred work, for the files defer_*.c alone. Domain locked. */
#ifndef WEFT_XFER_DEFER_WORK_H
#define WEFT_XFER_DEFER_WORK_H

#include <rdma/fi_trigger.h>

#include "xfer/defer/defer.h"

struct deferred {
	struct work work;
	/* The application's structure; names the work, not read once it is queued. */
	const struct fi_deferred_work *of;
	enum fi_op_type type;
	const void *op; /* struct fi_op_* of that type, the application's; valid until the end */
	/* Counter that counts the end, or that the work changes; a reference is held. Or NULL. */
	struct cntr *reports_to;
};

static inline struct deferred *deferred_of(const struct work *work)
{
	return LIST_ENTRY(work, struct deferred, work);
}

/*
 * Checks the arguments and, with `post`, posts the operation. 0: defer_done is called at its end; -FI_EAGAIN or another
 * negative error.
 */
int defer_post(struct deferred *d, bool post);
/* Reports a failed post to the endpoint's queue if the flags of the work ask for a completion. `err` is positive. */
void defer_post_error(const struct deferred *d, int err);

#endif
