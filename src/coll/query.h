/* SPDX-License-Identifier: BSD-2-Clause */
/* Which collectives support which types and operators; limits. */
#ifndef WEFT_COLL_QUERY_H
#define WEFT_COLL_QUERY_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUERY_BYTES_MAX (SIZE_MAX / 4) /* limit for the elements of all members together */

/* Returns 0, -FI_EOPNOTSUPP, or -FI_EINVAL: no such collective. Accepts any numbers. */
int query_valid(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op);
/* Return the bytes of an element, and the alignment that reductions need. */
size_t query_width(enum fi_datatype type);
size_t query_align(enum fi_datatype type);

#endif
