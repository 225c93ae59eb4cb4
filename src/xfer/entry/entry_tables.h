/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's own, from which xfer_install fills an endpoint's tables. */
#ifndef WEFT_XFER_ENTRY_TABLES_H
#define WEFT_XFER_ENTRY_TABLES_H

#include "entry/tables.h"

/* Without the domain's lock; with it; with it, for connected endpoints: addresses are ignored. */
extern const struct entry_tables entry_st;
extern const struct entry_tables entry_mt;
extern const struct entry_tables entry_pair;

extern const struct fi_ops_rma entry_rma_mt;
extern const struct fi_ops_atomic entry_atomic_mt;

#endif
