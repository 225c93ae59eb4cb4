/* SPDX-License-Identifier: BSD-2-Clause */
/* Which collectives there are for which types and operators, and their limits. */
#ifndef WEFT_COLL_QUERY_H
#define WEFT_COLL_QUERY_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUERY_BYTES_MAX (SIZE_MAX / 4) /* of all members' elements together */

/* 0, -FI_EOPNOTSUPP, or -FI_EINVAL: there is no such collective. Any numbers may be asked about. */
int query_valid(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op);
bool query_reduces(enum fi_collective_op coll);
/* Bytes of an element that is offered, and how it has to be aligned to be combined. */
size_t query_width(enum fi_datatype type);
size_t query_align(enum fi_datatype type);

#endif
