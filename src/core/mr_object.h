/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls on registered regions, and questions about them. fi_mr(3) */
#ifndef WEFT_CORE_MR_OBJECT_H
#define WEFT_CORE_MR_OBJECT_H

#include "core/mr_table.h"

/* Frees a region that is in no table. */
void mr_object_free(struct region *r);

/* Returns whether the range lies within one segment of the region. */
bool mr_object_covers(const struct mr *mr, const struct iovec *range);

/* Returns whether the domain has this mode bit; FI_MR_BASIC stands for three bits. */
bool mr_object_mode(const struct domain *dom, int bit);

#endif
