/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of groups whose members the application manages. Joining one sends no control message, so every member
 * counts its joins of the same key, and the count is part of the number. Domain locked.
 */
#ifndef WEFT_COLL_MANAGED_H
#define WEFT_COLL_MANAGED_H

#include <stdbool.h>
#include <stdint.h>

#include "coll/coll.h"

/* Set in the numbers of managed groups. */
#define MANAGED_ID (UINT64_C(1) << 63)

/*
 * The number given last for this key, which managed_next increments; valid until the next call. Kept until the
 * endpoint is closed: eight bytes a key. NULL: no memory.
 */
uint64_t *managed_last(struct coll *coll, uint64_t key);
uint64_t managed_next(uint64_t id);
/* May the group of this number still be joined here? */
bool managed_ahead(const struct coll *coll, uint64_t id);

#endif
