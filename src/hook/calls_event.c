/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that read completions, events and counters. */
#include "hook/call.h"

/* clang-format off */
#define SHOWN SHOWN_SHAPE
CQ_CALLS(CALL_SHAPES_CALL)
EQ_CALLS(CALL_SHAPES_CALL)
CNTR_CALLS(CALL_SHAPES_CALL)
WAIT_CALLS(CALL_SHAPES_CALL)
POLL_CALLS(CALL_SHAPES_CALL)
#undef SHOWN

#define SHOWN SHOWN_BITS
CQ_CALLS(CALL_CALL)
EQ_CALLS(CALL_CALL)
CNTR_CALLS(CALL_CALL)
WAIT_CALLS(CALL_CALL)
POLL_CALLS(CALL_CALL)
#undef SHOWN
/* clang-format on */

const struct fi_ops_cq calls_cq = {.size = sizeof(calls_cq), CQ_CALLS(CALL_MEMBER)};
const struct fi_ops_eq calls_eq = {.size = sizeof(calls_eq), EQ_CALLS(CALL_MEMBER)};
const struct fi_ops_cntr calls_cntr = {.size = sizeof(calls_cntr), CNTR_CALLS(CALL_MEMBER)};
const struct fi_ops_wait calls_wait = {.size = sizeof(calls_wait), WAIT_CALLS(CALL_MEMBER)};
const struct fi_ops_poll calls_poll = {.size = sizeof(calls_poll), POLL_CALLS(CALL_MEMBER)};
