/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer's table of regions (core/mr_share.h), mapped read-only. The peer may change or corrupt its
 * contents at any time: values are copied before they are checked.
 */
#ifndef WEFT_CORE_MR_VIEW_H
#define WEFT_CORE_MR_VIEW_H

#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stdint.h>

struct share_page;

struct mr_view {
	const struct share_page *page; /* NULL: no table, every lookup fails */
};

/* Result of a lookup. */
struct mr_place {
	uint64_t at;  /* address in the owner's process */
	bool counted; /* the owner counts such accesses: notify it */
};

/*
 * Maps the table of `fd`, which stays the caller's. 0; -FI_EINVAL: no table, or not sealed; or
 * -errno.
 */
int mr_view_attach(struct mr_view *view, int fd);
void mr_view_detach(struct mr_view *view);

/*
 * Looks a range up. `access` is FI_REMOTE_READ or FI_REMOTE_WRITE. 0; -FI_ENOKEY: not in the table,
 * though the region may exist; -FI_EACCES: access not granted; -FI_EINVAL: out of bounds.
 */
int mr_view_find(const struct mr_view *view, const struct fi_rma_iov *range, uint64_t access,
		 struct mr_place *place);

#endif
