/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that open and control objects; those of struct fi_ops are in hook.c. */
#include "hook/call.h"

/* clang-format off */
#define SHOWN SHOWN_SHAPE
FABRIC_CALLS(CALL_SHAPES_CALL, CALL_SHAPES_OPEN)
DOMAIN_CALLS(CALL_SHAPES_CALL, CALL_SHAPES_OPEN)
MR_CALLS(CALL_SHAPES_CALL, CALL_SHAPES_OPEN)
EP_CALLS(CALL_SHAPES_CALL, CALL_SHAPES_OPEN)
CM_CALLS(CALL_SHAPES_CALL, CALL_SHAPES_OPEN)
AV_CALLS(CALL_SHAPES_CALL, CALL_SHAPES_OPEN)
AV_SET_CALLS(CALL_SHAPES_CALL, CALL_SHAPES_OPEN)
#undef SHOWN

#define SHOWN SHOWN_BITS
FABRIC_CALLS(CALL_CALL, CALL_OPEN)
DOMAIN_CALLS(CALL_CALL, CALL_OPEN)
MR_CALLS(CALL_CALL, CALL_OPEN)
EP_CALLS(CALL_CALL, CALL_OPEN)
CM_CALLS(CALL_CALL, CALL_OPEN)
AV_CALLS(CALL_CALL, CALL_OPEN)
AV_SET_CALLS(CALL_CALL, CALL_OPEN)
#undef SHOWN
/* clang-format on */

const struct fi_ops_fabric calls_fabric = {.size = sizeof(calls_fabric),
					   FABRIC_CALLS(CALL_MEMBER, CALL_MEMBER)};
const struct fi_ops_domain calls_domain = {.size = sizeof(calls_domain),
					   DOMAIN_CALLS(CALL_MEMBER, CALL_MEMBER)};
const struct fi_ops_mr calls_mr = {.size = sizeof(calls_mr), MR_CALLS(CALL_MEMBER, CALL_MEMBER)};
const struct fi_ops_ep calls_ep = {.size = sizeof(calls_ep), EP_CALLS(CALL_MEMBER, CALL_MEMBER)};
const struct fi_ops_cm calls_cm = {.size = sizeof(calls_cm), CM_CALLS(CALL_MEMBER, CALL_MEMBER)};
const struct fi_ops_av calls_av = {.size = sizeof(calls_av), AV_CALLS(CALL_MEMBER, CALL_MEMBER)};
const struct fi_ops_av_set calls_av_set = {.size = sizeof(calls_av_set),
					   AV_SET_CALLS(CALL_MEMBER, CALL_MEMBER)};
