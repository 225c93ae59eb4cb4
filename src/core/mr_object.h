/* SPDX-License-Identifier: BSD-2-Clause */
/* What is done with a region once it is registered. fi_mr(3) */
#ifndef WEFT_CORE_MR_OBJECT_H
#define WEFT_CORE_MR_OBJECT_H

#include "core/mr_table.h"

extern struct fi_ops mr_object_ops;

/* Frees a region that is in no table. */
void mr_object_free(struct region *r);

/* Is this range within one segment of the region? */
bool mr_object_covers(const struct mr *mr, const struct iovec *range);

/* Does the domain follow this rule of registration? FI_MR_BASIC stands for three. */
bool mr_object_mode(const struct domain *dom, int bit);

#endif
