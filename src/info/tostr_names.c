/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of all values and flags. Flags are written in this order. */
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_trigger.h>

#include "info/tostr.h"
#include "info/providers.h"

/* clang-format off */
#define N(x) {(uint64_t)(x), #x}

static const struct tostr_name ep_type[] = {
	N(FI_EP_UNSPEC), N(FI_EP_MSG), N(FI_EP_DGRAM), N(FI_EP_RDM),
};

static const struct tostr_name caps[] = {
	N(FI_MSG), N(FI_RMA), N(FI_TAGGED), N(FI_ATOMIC), N(FI_MULTICAST), N(FI_COLLECTIVE),
	N(FI_READ), N(FI_WRITE), N(FI_RECV), N(FI_SEND), N(FI_REMOTE_READ), N(FI_REMOTE_WRITE),
	N(FI_MULTI_RECV), N(FI_REMOTE_CQ_DATA), N(FI_TRIGGER), N(FI_FENCE), N(FI_RMA_PMEM),
	N(FI_SOURCE_ERR), N(FI_LOCAL_COMM), N(FI_REMOTE_COMM), N(FI_SHARED_AV), N(FI_RMA_EVENT),
	N(FI_SOURCE), N(FI_NAMED_RX_CTX), N(FI_DIRECTED_RECV), N(FI_AV_USER_ID), N(FI_PEER),
	N(FI_HMEM), N(FI_TAGGED_DIRECTED_RECV), N(FI_TAGGED_MULTI_RECV), N(FI_EXACT_DIRECTED_RECV),
	N(FI_XPU),
};

static const struct tostr_name op_flags[] = {
	N(FI_MULTICAST), N(FI_MULTI_RECV), N(FI_REMOTE_CQ_DATA), N(FI_MORE), N(FI_PEEK),
	N(FI_TRIGGER), N(FI_FENCE), N(FI_COMPLETION), N(FI_INJECT), N(FI_INJECT_COMPLETE),
	N(FI_TRANSMIT_COMPLETE), N(FI_DELIVERY_COMPLETE), N(FI_MATCH_COMPLETE), N(FI_AFFINITY),
	N(FI_CLAIM), N(FI_DISCARD), N(FI_COMMIT_COMPLETE), N(FI_AUTH_KEY),
};

static const struct tostr_name addr_format[] = {
	N(FI_FORMAT_UNSPEC), N(FI_SOCKADDR), N(FI_SOCKADDR_IN), N(FI_SOCKADDR_IN6),
	N(FI_SOCKADDR_IB), N(FI_ADDR_PSMX), N(FI_ADDR_GNI), N(FI_ADDR_BGQ), N(FI_ADDR_MLX),
	N(FI_ADDR_STR), N(FI_ADDR_PSMX2), N(FI_ADDR_IB_UD), N(FI_ADDR_EFA), N(FI_ADDR_PSMX3),
	N(FI_ADDR_OPX), N(FI_ADDR_CXI), N(FI_ADDR_UCX), N(FI_SOCKADDR_IP),
};

static const struct tostr_name threading[] = {
	N(FI_THREAD_UNSPEC), N(FI_THREAD_SAFE), N(FI_THREAD_FID), N(FI_THREAD_DOMAIN),
	N(FI_THREAD_COMPLETION), N(FI_THREAD_ENDPOINT),
};

static const struct tostr_name progress[] = {
	N(FI_PROGRESS_UNSPEC), N(FI_PROGRESS_AUTO), N(FI_PROGRESS_MANUAL),
	N(FI_PROGRESS_CONTROL_UNIFIED),
};

static const struct tostr_name protocol[] = {
	N(FI_PROTO_UNSPEC), N(FI_PROTO_RDMA_CM_IB_RC), N(FI_PROTO_IWARP), N(FI_PROTO_IB_UD),
	N(FI_PROTO_PSMX), N(FI_PROTO_UDP), N(FI_PROTO_SOCK_TCP), N(FI_PROTO_MXM),
	N(FI_PROTO_IWARP_RDM), N(FI_PROTO_IB_RDM), N(FI_PROTO_GNI), N(FI_PROTO_RXM),
	N(FI_PROTO_RXD), N(FI_PROTO_MLX), N(FI_PROTO_NETWORKDIRECT), N(FI_PROTO_PSMX2),
	N(FI_PROTO_SHM), N(FI_PROTO_MRAIL), N(FI_PROTO_RSTREAM), N(FI_PROTO_RDMA_CM_IB_XRC),
	N(FI_PROTO_EFA), N(FI_PROTO_PSMX3), N(FI_PROTO_RXM_TCP), N(FI_PROTO_OPX), N(FI_PROTO_CXI),
	N(FI_PROTO_XNET), N(FI_PROTO_COLL), N(FI_PROTO_UCX), N(FI_PROTO_SM2), N(FI_PROTO_CXI_RNR),
	N(FI_PROTO_LPP), N(FI_PROTO_LNX), {PROVIDER_PROTO_WEFT, "FI_PROTO_WEFT"},
};

static const struct tostr_name msg_order[] = {
	N(FI_ORDER_RAR), N(FI_ORDER_RAW), N(FI_ORDER_RAS), N(FI_ORDER_WAR), N(FI_ORDER_WAW),
	N(FI_ORDER_WAS), N(FI_ORDER_SAR), N(FI_ORDER_SAW), N(FI_ORDER_SAS), N(FI_ORDER_RMA_RAR),
	N(FI_ORDER_RMA_RAW), N(FI_ORDER_RMA_WAR), N(FI_ORDER_RMA_WAW), N(FI_ORDER_ATOMIC_RAR),
	N(FI_ORDER_ATOMIC_RAW), N(FI_ORDER_ATOMIC_WAR), N(FI_ORDER_ATOMIC_WAW),
};

static const struct tostr_name mode[] = {
	N(FI_CONTEXT), N(FI_MSG_PREFIX), N(FI_ASYNC_IOV), N(FI_RX_CQ_DATA), N(FI_LOCAL_MR),
	N(FI_CONTEXT2),
};

static const struct tostr_name av_type[] = {N(FI_AV_UNSPEC), N(FI_AV_MAP), N(FI_AV_TABLE)};

static const struct tostr_name atomic_type[] = {
	N(FI_INT8), N(FI_UINT8), N(FI_INT16), N(FI_UINT16), N(FI_INT32), N(FI_UINT32), N(FI_INT64),
	N(FI_UINT64), N(FI_FLOAT), N(FI_DOUBLE), N(FI_FLOAT_COMPLEX), N(FI_DOUBLE_COMPLEX),
	N(FI_LONG_DOUBLE), N(FI_LONG_DOUBLE_COMPLEX), N(FI_INT128), N(FI_UINT128), N(FI_FLOAT16),
	N(FI_BFLOAT16), N(FI_FLOAT8_E4M3), N(FI_FLOAT8_E5M2), N(FI_VOID),
};

static const struct tostr_name atomic_op[] = {
	N(FI_MIN), N(FI_MAX), N(FI_SUM), N(FI_PROD), N(FI_LOR), N(FI_LAND), N(FI_BOR), N(FI_BAND),
	N(FI_LXOR), N(FI_BXOR), N(FI_ATOMIC_READ), N(FI_ATOMIC_WRITE), N(FI_CSWAP), N(FI_CSWAP_NE),
	N(FI_CSWAP_LE), N(FI_CSWAP_LT), N(FI_CSWAP_GE), N(FI_CSWAP_GT), N(FI_MSWAP), N(FI_DIFF),
	N(FI_NOOP),
};

static const struct tostr_name eq_event[] = {
	N(FI_NOTIFY), N(FI_CONNREQ), N(FI_CONNECTED), N(FI_SHUTDOWN), N(FI_MR_COMPLETE),
	N(FI_AV_COMPLETE), N(FI_JOIN_COMPLETE),
};

static const struct tostr_name cq_event_flags[] = {
	N(FI_SEND), N(FI_RECV), N(FI_RMA), N(FI_ATOMIC), N(FI_MSG), N(FI_TAGGED), N(FI_READ),
	N(FI_WRITE), N(FI_REMOTE_READ), N(FI_REMOTE_WRITE), N(FI_REMOTE_CQ_DATA), N(FI_MULTI_RECV),
	N(FI_MORE), N(FI_CLAIM), N(FI_MULTICAST), N(FI_COLLECTIVE),
};

static const struct tostr_name mr_mode[] = {
	N(FI_MR_BASIC), N(FI_MR_SCALABLE), N(FI_MR_LOCAL), N(FI_MR_RAW), N(FI_MR_VIRT_ADDR),
	N(FI_MR_ALLOCATED), N(FI_MR_PROV_KEY), N(FI_MR_MMU_NOTIFY), N(FI_MR_RMA_EVENT),
	N(FI_MR_ENDPOINT), N(FI_MR_HMEM), N(FI_MR_COLLECTIVE), N(FI_MR_XPU_DESC),
};

static const struct tostr_name op_type[] = {
	N(FI_OP_RECV), N(FI_OP_SEND), N(FI_OP_TRECV), N(FI_OP_TSEND), N(FI_OP_READ), N(FI_OP_WRITE),
	N(FI_OP_ATOMIC), N(FI_OP_FETCH_ATOMIC), N(FI_OP_COMPARE_ATOMIC), N(FI_OP_CNTR_SET),
	N(FI_OP_CNTR_ADD),
};

static const struct tostr_name collective_op[] = {
	N(FI_BARRIER), N(FI_BROADCAST), N(FI_ALLTOALL), N(FI_ALLREDUCE), N(FI_ALLGATHER),
	N(FI_REDUCE_SCATTER), N(FI_REDUCE), N(FI_SCATTER), N(FI_GATHER),
};

static const struct tostr_name hmem_iface[] = {
	N(FI_HMEM_SYSTEM), N(FI_HMEM_CUDA), N(FI_HMEM_ROCR), N(FI_HMEM_ZE), N(FI_HMEM_NEURON),
	N(FI_HMEM_SYNAPSEAI),
};

static const struct tostr_name cq_format[] = {
	N(FI_CQ_FORMAT_UNSPEC), N(FI_CQ_FORMAT_CONTEXT), N(FI_CQ_FORMAT_MSG), N(FI_CQ_FORMAT_DATA),
	N(FI_CQ_FORMAT_TAGGED),
};

static const struct tostr_name cq_wait_cond[] = {N(FI_CQ_COND_NONE), N(FI_CQ_COND_THRESHOLD)};

static const struct tostr_name wait_obj[] = {
	N(FI_WAIT_NONE), N(FI_WAIT_UNSPEC), N(FI_WAIT_SET), N(FI_WAIT_FD), N(FI_WAIT_MUTEX_COND),
	N(FI_WAIT_YIELD), N(FI_WAIT_POLLFD),
};

static const struct tostr_name resource_mgmt[] = {
	N(FI_RM_UNSPEC), N(FI_RM_DISABLED), N(FI_RM_ENABLED),
};

static const struct tostr_name av_flags[] = {
	N(FI_EVENT), N(FI_READ), N(FI_SYMMETRIC), N(FI_AV_USER_ID),
};

static const struct tostr_name cq_flags[] = {N(FI_AFFINITY)};

static const struct tostr_name mr_access[] = {
	N(FI_RECV), N(FI_SEND), N(FI_READ), N(FI_WRITE), N(FI_REMOTE_READ), N(FI_REMOTE_WRITE),
	N(FI_COLLECTIVE),
};

static const struct tostr_name cntr_events[] = {N(FI_CNTR_EVENTS_COMP), N(FI_CNTR_EVENTS_BYTES)};

static const struct tostr_name bus_type[] = {N(FI_BUS_UNKNOWN), N(FI_BUS_PCI)};

static const struct tostr_name link_state[] = {N(FI_LINK_UNKNOWN), N(FI_LINK_DOWN), N(FI_LINK_UP)};

#define SET(x, flags, wide) {x, sizeof(x) / sizeof((x)[0]), flags, wide}
#define VALUES(x)    SET(x, false, false)
#define FLAGS(x)     SET(x, true, true)
#define INT_FLAGS(x) SET(x, true, false)
/* clang-format on */

static const struct tostr_names sets[] = {
	[FI_TYPE_EP_TYPE] = VALUES(ep_type),
	[FI_TYPE_CAPS] = FLAGS(caps),
	[FI_TYPE_OP_FLAGS] = FLAGS(op_flags),
	[FI_TYPE_ADDR_FORMAT] = VALUES(addr_format),
	[FI_TYPE_THREADING] = VALUES(threading),
	[FI_TYPE_PROGRESS] = VALUES(progress),
	[FI_TYPE_PROTOCOL] = VALUES(protocol),
	[FI_TYPE_MSG_ORDER] = FLAGS(msg_order),
	[FI_TYPE_MODE] = FLAGS(mode),
	[FI_TYPE_AV_TYPE] = VALUES(av_type),
	[FI_TYPE_ATOMIC_TYPE] = VALUES(atomic_type),
	[FI_TYPE_ATOMIC_OP] = VALUES(atomic_op),
	[FI_TYPE_EQ_EVENT] = VALUES(eq_event),
	[FI_TYPE_CQ_EVENT_FLAGS] = FLAGS(cq_event_flags),
	[FI_TYPE_MR_MODE] = INT_FLAGS(mr_mode),
	[FI_TYPE_OP_TYPE] = VALUES(op_type),
	[FI_TYPE_COLLECTIVE_OP] = VALUES(collective_op),
	[FI_TYPE_HMEM_IFACE] = VALUES(hmem_iface),
	[FI_TYPE_CQ_FORMAT] = VALUES(cq_format),
	[FI_TYPE_CQ_WAIT_COND] = VALUES(cq_wait_cond),
	[FI_TYPE_WAIT_OBJ] = VALUES(wait_obj),
	[TOSTR_RESOURCE_MGMT] = VALUES(resource_mgmt),
	[TOSTR_AV_FLAGS] = FLAGS(av_flags),
	[TOSTR_CQ_FLAGS] = FLAGS(cq_flags),
	[TOSTR_MR_ACCESS] = FLAGS(mr_access),
	[TOSTR_CNTR_EVENTS] = VALUES(cntr_events),
	[TOSTR_BUS_TYPE] = VALUES(bus_type),
	[TOSTR_LINK_STATE] = VALUES(link_state),
};

const struct tostr_names *tostr_names(int set)
{
	if (set < 0 || (size_t)set >= sizeof(sets) / sizeof(sets[0]) || !sets[set].name)
		return NULL;
	return &sets[set];
}

const char *tostr_name(int set, uint64_t value)
{
	const struct tostr_names *names = tostr_names(set);

	for (size_t i = 0; names && i < names->count; i++)
		if (names->name[i].value == value)
			return names->name[i].name;
	return "Unknown";
}

/* Writes the names of the set bits, separated by ", ". Omits bits without a name. */
static void tostr_flags(struct text *t, int set, uint64_t value)
{
	const struct tostr_names *names = tostr_names(set);

	for (size_t i = 0; names && i < names->count; i++)
		if (names->name[i].value & value)
			text_add(t, "%s, ", names->name[i].name);
	text_strip(t, ", ");
}

void tostr_value(struct text *t, int set, const void *data)
{
	const struct tostr_names *names = tostr_names(set);
	uint64_t value = names->wide ? *(const uint64_t *)data : *(const uint32_t *)data;

	if (names->flags)
		tostr_flags(t, set, value);
	else
		text_add(t, "%s", tostr_name(set, value));
}
