/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions and tables of all calls, their names and subsystems. Those of struct fi_ops are in hook.c. */
#include "base/log.h"
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
MSG_CALLS(CALL_SHAPES_DATA)
TAGGED_CALLS(CALL_SHAPES_DATA)
RMA_CALLS(CALL_SHAPES_DATA)
ATOMIC_CALLS(CALL_SHAPES_DATA)
COLLECTIVE_CALLS(CALL_SHAPES_DATA)
CQ_CALLS(CALL_SHAPES_CALL)
EQ_CALLS(CALL_SHAPES_CALL)
CNTR_CALLS(CALL_SHAPES_CALL)
WAIT_CALLS(CALL_SHAPES_CALL)
POLL_CALLS(CALL_SHAPES_CALL)
#undef SHOWN

#define SHOWN SHOWN_BITS
FABRIC_CALLS(CALL_CALL, CALL_OPEN)
DOMAIN_CALLS(CALL_CALL, CALL_OPEN)
MR_CALLS(CALL_CALL, CALL_OPEN)
EP_CALLS(CALL_CALL, CALL_OPEN)
CM_CALLS(CALL_CALL, CALL_OPEN)
AV_CALLS(CALL_CALL, CALL_OPEN)
AV_SET_CALLS(CALL_CALL, CALL_OPEN)
MSG_CALLS(CALL_DATA)
TAGGED_CALLS(CALL_DATA)
RMA_CALLS(CALL_DATA)
ATOMIC_CALLS(CALL_DATA)
COLLECTIVE_CALLS(CALL_DATA)
CQ_CALLS(CALL_CALL)
EQ_CALLS(CALL_CALL)
CNTR_CALLS(CALL_CALL)
WAIT_CALLS(CALL_CALL)
POLL_CALLS(CALL_CALL)
#undef SHOWN

const struct fi_ops_fabric calls_fabric = {.size = sizeof(calls_fabric), FABRIC_CALLS(CALL_MEMBER, CALL_MEMBER)};
const struct fi_ops_domain calls_domain = {.size = sizeof(calls_domain), DOMAIN_CALLS(CALL_MEMBER, CALL_MEMBER)};
const struct fi_ops_mr calls_mr = {.size = sizeof(calls_mr), MR_CALLS(CALL_MEMBER, CALL_MEMBER)};
const struct fi_ops_ep calls_ep = {.size = sizeof(calls_ep), EP_CALLS(CALL_MEMBER, CALL_MEMBER)};
const struct fi_ops_cm calls_cm = {.size = sizeof(calls_cm), CM_CALLS(CALL_MEMBER, CALL_MEMBER)};
const struct fi_ops_av calls_av = {.size = sizeof(calls_av), AV_CALLS(CALL_MEMBER, CALL_MEMBER)};
const struct fi_ops_av_set calls_av_set = {.size = sizeof(calls_av_set), AV_SET_CALLS(CALL_MEMBER, CALL_MEMBER)};
const struct fi_ops_msg calls_msg = {.size = sizeof(calls_msg), MSG_CALLS(CALL_MEMBER)};
const struct fi_ops_tagged calls_tagged = {.size = sizeof(calls_tagged), TAGGED_CALLS(CALL_MEMBER)};
const struct fi_ops_rma calls_rma = {.size = sizeof(calls_rma), RMA_CALLS(CALL_MEMBER)};
const struct fi_ops_atomic calls_atomic = {.size = sizeof(calls_atomic), ATOMIC_CALLS(CALL_MEMBER)};
const struct fi_ops_collective calls_collective = {.size = sizeof(calls_collective), COLLECTIVE_CALLS(CALL_MEMBER)};
const struct fi_ops_cq calls_cq = {.size = sizeof(calls_cq), CQ_CALLS(CALL_MEMBER)};
const struct fi_ops_eq calls_eq = {.size = sizeof(calls_eq), EQ_CALLS(CALL_MEMBER)};
const struct fi_ops_cntr calls_cntr = {.size = sizeof(calls_cntr), CNTR_CALLS(CALL_MEMBER)};
const struct fi_ops_wait calls_wait = {.size = sizeof(calls_wait), WAIT_CALLS(CALL_MEMBER)};
const struct fi_ops_poll calls_poll = {.size = sizeof(calls_poll), POLL_CALLS(CALL_MEMBER)};

#define NAME(subsys, name)         [CALL_##name] = {#name, subsys},
#define CORE(result, name, ...)    NAME(LOG_CORE, name)
#define FABRIC(result, name, ...)  NAME(LOG_FABRIC, name)
#define DOMAIN(result, name, ...)  NAME(LOG_DOMAIN, name)
#define MR(result, name, ...)      NAME(LOG_MR, name)
#define EP_CTRL(result, name, ...) NAME(LOG_EP_CTRL, name)
#define AV(result, name, ...)      NAME(LOG_AV, name)
#define EP_DATA(result, name, ...) NAME(LOG_EP_DATA, name)
#define CQ(result, name, ...)      NAME(LOG_CQ, name)
#define EQ(result, name, ...)      NAME(LOG_EQ, name)
#define CNTR(result, name, ...)    NAME(LOG_CNTR, name)

static const struct {
	char name[24]; /* no pointer, so that there is nothing to relocate */
	unsigned char subsys;
} calls[CALL_COUNT] = {
	[CALL_fi_close] = {"fi_close", LOG_CORE},
	FID_CALLS(CORE, CORE)
	FABRIC_CALLS(FABRIC, FABRIC)
	DOMAIN_CALLS(DOMAIN, DOMAIN)
	MR_CALLS(MR, MR)
	EP_CALLS(EP_CTRL, EP_CTRL)
	CM_CALLS(EP_CTRL, EP_CTRL)
	AV_CALLS(AV, AV)
	AV_SET_CALLS(AV, AV)
	MSG_CALLS(EP_DATA)
	TAGGED_CALLS(EP_DATA)
	RMA_CALLS(EP_DATA)
	ATOMIC_CALLS(EP_DATA)
	COLLECTIVE_CALLS(EP_DATA)
	CQ_CALLS(CQ)
	EQ_CALLS(EQ)
	CNTR_CALLS(CNTR)
	WAIT_CALLS(CORE)
	POLL_CALLS(CORE)
};
/* clang-format on */

const char *calls_name(enum call_id id)
{
	return calls[id].name;
}

int calls_subsys(enum call_id id)
{
	return calls[id].subsys;
}
