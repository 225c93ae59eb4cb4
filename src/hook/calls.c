/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and subsystems of all calls. */
#include "base/log.h"
#include "hook/call.h"

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

/* clang-format off */
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
