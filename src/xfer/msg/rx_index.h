/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An index of the unexpected messages of a context, so that a receive that names a tag finds the oldest message of
 * that tag, or of that tag and source, in a time that does not depend on how many are kept. Made when many are kept,
 * freed with the last of them; where there is no memory for it the queue is searched. Receives that ignore bits of the
 * tag search the queue in any case. Domain locked.
 */
#ifndef WEFT_XFER_RX_INDEX_H
#define WEFT_XFER_RX_INDEX_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct rx;
struct unexpected;

/* A message among those of equal key; the oldest of them stands for all in its bucket. */
struct rx_equal {
	struct list all;        /* struct rx_equal.all of the messages of this key, oldest first */
	struct rx_equal *next;  /* in the bucket; only of the oldest */
	struct rx_equal **back; /* what points here; NULL: not the oldest, or not in an index */
};

/* By tag; by tag and source. */
enum { RX_BY_TAG, RX_BY_SOURCE, RX_KEYS };

/* Adds the newest message of context `rx`, which is on its list. Makes the index if that is due. */
void rx_index_add(struct rx *rx, struct unexpected *u);
/* Removes a message; does nothing if it is not in the index. Frees the index if it was the last one. */
void rx_index_remove(struct rx *rx, struct unexpected *u);
/* Enters the message by another source, as the newest one of it. */
void rx_index_source(struct rx *rx, struct unexpected *u, fi_addr_t src);
/* Returns the oldest message of this tag and source (FI_ADDR_UNSPEC: any), or NULL. */
struct unexpected *rx_index_find(const struct rx *rx, bool tagged, fi_addr_t src, uint64_t tag);
void rx_index_free(struct rx *rx);

#endif
