/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer's table of regions (core/mr_share.h), mapped to read. What is in it may change at any time,
 * or be nonsense: all is copied before it is checked.
 */
#ifndef WEFT_CORE_MR_VIEW_H
#define WEFT_CORE_MR_VIEW_H

#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stdint.h>

struct share_page;

struct mr_view {
	const struct share_page *page; /* NULL: there is none, and nothing is found */
};

/* Where a range lies. */
struct mr_place {
	uint64_t at; /* address in the owner's memory */
	bool tell;   /* the owner counts such accesses */
};

/* Maps the table behind `fd`, which stays the caller's. -FI_EINVAL: it is none, or not sealed. */
int mr_view_attach(struct mr_view *view, int fd);
void mr_view_detach(struct mr_view *view);

/*
 * Looks a range up; `access` is FI_REMOTE_READ or FI_REMOTE_WRITE. 0; -FI_ENOKEY: not in the table,
 * which does not mean that there is no such region; -FI_EACCES: it does not grant that;
 * -FI_EINVAL: out of its bounds.
 */
int mr_view_find(const struct mr_view *view, const struct fi_rma_iov *range, uint64_t access,
		 struct mr_place *place);

#endif
