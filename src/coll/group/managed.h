/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of groups whose members the application manages: no control message is sent when one is joined, so
 * every member counts how often it has joined one of this key, and the count is part of the number.
 * Domain locked.
 */
#ifndef WEFT_COLL_MANAGED_H
#define WEFT_COLL_MANAGED_H

#include <stdbool.h>
#include <stdint.h>

#include "coll/coll.h"

/* Such numbers have it. */
#define MANAGED_ID (UINT64_C(1) << 63)

/*
 * The number last given for this key, to be moved on by managed_next; good until the next call. It is
 * kept as long as the endpoint lives: eight bytes a key. NULL: no memory.
 */
uint64_t *managed_last(struct coll *coll, uint64_t key);
uint64_t managed_next(uint64_t id);
/* Is it of a group that may be joined here yet? */
bool managed_ahead(const struct coll *coll, uint64_t id);

#endif
