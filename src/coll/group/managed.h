/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of groups whose membership the application manages. Joining such a group sends no control
 * message: each member counts its joins per key, and the number contains the count. Domain locked.
 */
#ifndef WEFT_COLL_MANAGED_H
#define WEFT_COLL_MANAGED_H

#include <stdbool.h>
#include <stdint.h>

#include "coll/coll.h"

/* Set in the numbers of managed groups, only. */
#define MANAGED_ID (UINT64_C(1) << 63)

/*
 * Returns the last number for this key, for managed_next to advance; NULL: no memory. The pointer
 * is valid until the next call. Numbers take eight bytes per key until the endpoint closes.
 */
uint64_t *managed_last(struct coll *coll, uint64_t key);
uint64_t managed_next(uint64_t id);
/* May a group of this number still be joined here? */
bool managed_ahead(const struct coll *coll, uint64_t id);

#endif
