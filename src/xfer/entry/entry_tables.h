/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables the entries are installed from. */
#ifndef WEFT_XFER_ENTRY_TABLES_H
#define WEFT_XFER_ENTRY_TABLES_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

struct entry_tables {
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
};

/* What an endpoint's tables point at once it is enabled: all entries, those it lacks refuse. */
struct entry_own {
	struct entry_tables two_sided;
	struct fi_ops_rma rma;
	struct fi_ops_atomic atomic;
};

extern const struct entry_tables entry_st;   /* no lock */
extern const struct entry_tables entry_mt;   /* the domain's lock */
extern const struct entry_tables entry_pair; /* the same, to the one peer there is */

extern const struct fi_ops_rma entry_rma_st, entry_rma_mt;
extern const struct fi_ops_atomic entry_atomic_st, entry_atomic_mt;

/* Every entry refuses; sends and receives apart, as an endpoint may have only one of them. */
struct refuse_tables {
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
	struct fi_ops_rma rma;
	struct fi_ops_atomic atomic;
	struct fi_ops_collective collective;
};

extern const struct refuse_tables refuse_state;   /* -FI_EOPBADSTATE: not enabled, shut down */
extern const struct refuse_tables refuse_support; /* -FI_EOPNOTSUPP: not a capability of it */

#endif
