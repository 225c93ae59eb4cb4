/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of an endpoint's data calls, and those that refuse. */
#ifndef WEFT_ENTRY_TABLES_H
#define WEFT_ENTRY_TABLES_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

/*
 * Tables of one endpoint, at the same place from its opening to its end: fid.msg and its like point
 * here. Calls that the endpoint lacks, or that come too early, refuse; none is NULL.
 */
struct ep_tables {
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
	struct fi_ops_rma rma;
	struct fi_ops_atomic atomic;
	struct fi_ops_collective collective;
};

/* Tables whose entry functions all refuse. */
extern const struct ep_tables refuse_state;   /* -FI_EOPBADSTATE: not enabled */
extern const struct ep_tables refuse_support; /* -FI_EOPNOTSUPP: not a capability */

#endif
