/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/op.h"

#include <complex.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_errno.h>

#include "atomic/atomic.h"
#include "base/log.h"
#include "coll/plan/plan.h"
#include "link/engine.h"
#include "link/wire.h"

size_t query_width(enum fi_datatype type)
{
	return type == FI_VOID ? 1 : atomic_size(type);
}

size_t query_align(enum fi_datatype type)
{
	switch (type) {
	case FI_FLOAT_COMPLEX:
		return _Alignof(float complex);
	case FI_DOUBLE_COMPLEX:
		return _Alignof(double complex);
	case FI_LONG_DOUBLE_COMPLEX:
		return _Alignof(long double complex);
	default:
		return query_width(type);
	}
}

/* Operators that move data unchanged are accepted for collectives that only move data. */
static bool query_moves(enum fi_op op)
{
	return op == FI_NOOP || op == FI_ATOMIC_READ || op == FI_ATOMIC_WRITE;
}

int query_valid(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op)
{
	bool offered;

	if ((unsigned int)coll > FI_GATHER)
		return -FI_EINVAL;
	if (coll == FI_BARRIER)
		offered = type == FI_VOID && op == FI_NOOP;
	else if (plan_reduces(coll))
		offered = op != FI_DIFF &&
			  plain_find(op, type); /* FI_DIFF depends on the order of operands */
	else
		offered = query_moves(op) && type != FI_VOID && atomic_size(type);
	return offered ? 0 : -FI_EOPNOTSUPP;
}

int coll_query(enum fi_collective_op coll, struct fi_collective_attr *attr, uint64_t flags)
{
	int err;

	if (!attr || attr->mode)
		return LOG_REFUSE(-FI_EINVAL, LOG_DOMAIN,
				  "fi_query_collective: no attributes, or mode %#llx is not 0",
				  attr ? (unsigned long long)attr->mode : 0);
	if (flags && flags != FI_SCATTER)
		return -FI_EBADFLAGS;
	/* FI_SCATTER selects the scattering form of a reduction. */
	if (flags && coll != FI_REDUCE && coll != FI_REDUCE_SCATTER)
		return -FI_EINVAL;
	if (flags)
		coll = FI_REDUCE_SCATTER;
	err = query_valid(coll, attr->datatype, attr->op);
	if (err)
		return err;
	attr->datatype_attr.size = coll == FI_BARRIER ? 0 : query_width(attr->datatype);
	attr->datatype_attr.count =
		coll == FI_BARRIER ? 0 : QUERY_BYTES_MAX / attr->datatype_attr.size;
	attr->max_members = (size_t)1 << WIRE_GROUP_RANK_BITS;
	return 0;
}
