/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Template: a refusing function for each entry, so that no table holds NULL. refuse_state.c and
 * refuse_support.c include it and define REFUSAL (the error) and REFUSE_TABLE. The calls and their
 * parameters are those of the rows that hooks are made of.
 */
#include "entry/tables.h"
#include "hook/rows.h"

/* The functions ignore their arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define REFUSE(kind, type, name, table, member, arguments, ...)                                    \
	static type refuse_##name ROW_PARAMETERS(arguments)                                        \
	{                                                                                          \
		return REFUSAL;                                                                    \
	}
#define REFUSE_MEMBER(kind, type, name, table, member, ...) .member = refuse_##name,

/* clang-format off */
MSG_CALLS(REFUSE)
TAGGED_CALLS(REFUSE)
RMA_CALLS(REFUSE)
ATOMIC_CALLS(REFUSE)
COLLECTIVE_CALLS(REFUSE)

const struct ep_tables REFUSE_TABLE = {
	.msg = {.size = sizeof(struct fi_ops_msg), MSG_CALLS(REFUSE_MEMBER)},
	.tagged = {.size = sizeof(struct fi_ops_tagged), TAGGED_CALLS(REFUSE_MEMBER)},
	.rma = {.size = sizeof(struct fi_ops_rma), RMA_CALLS(REFUSE_MEMBER)},
	.atomic = {.size = sizeof(struct fi_ops_atomic), ATOMIC_CALLS(REFUSE_MEMBER)},
	.collective = {.size = sizeof(struct fi_ops_collective), COLLECTIVE_CALLS(REFUSE_MEMBER)},
};
/* clang-format on */
