/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that move data. */
#include "hook/call.h"

/* clang-format off */
#define SHOWN SHOWN_SHAPE
MSG_CALLS(CALL_SHAPES_DATA)
TAGGED_CALLS(CALL_SHAPES_DATA)
RMA_CALLS(CALL_SHAPES_DATA)
ATOMIC_CALLS(CALL_SHAPES_DATA)
COLLECTIVE_CALLS(CALL_SHAPES_DATA)
#undef SHOWN

#define SHOWN SHOWN_BITS
MSG_CALLS(CALL_DATA)
TAGGED_CALLS(CALL_DATA)
RMA_CALLS(CALL_DATA)
ATOMIC_CALLS(CALL_DATA)
COLLECTIVE_CALLS(CALL_DATA)
#undef SHOWN
/* clang-format on */

const struct fi_ops_msg calls_msg = {.size = sizeof(calls_msg), MSG_CALLS(CALL_MEMBER)};
const struct fi_ops_tagged calls_tagged = {.size = sizeof(calls_tagged), TAGGED_CALLS(CALL_MEMBER)};
const struct fi_ops_rma calls_rma = {.size = sizeof(calls_rma), RMA_CALLS(CALL_MEMBER)};
const struct fi_ops_atomic calls_atomic = {.size = sizeof(calls_atomic), ATOMIC_CALLS(CALL_MEMBER)};
const struct fi_ops_collective calls_collective = {.size = sizeof(calls_collective),
						   COLLECTIVE_CALLS(CALL_MEMBER)};
