/* SPDX-License-Identifier: BSD-2-Clause */
/* The members of each struct, in output order. */
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "info/tostr.h"

/* clang-format off */
#define M(kind, type, member)    {#member, offsetof(struct type, member), kind, 0}
#define NAMES(set, type, member) {#member, offsetof(struct type, member), NAMED, set}

static const struct tostr_member tx_attr[] = {
	NAMES(FI_TYPE_CAPS, fi_tx_attr, caps), NAMES(FI_TYPE_MODE, fi_tx_attr, mode),
	NAMES(FI_TYPE_OP_FLAGS, fi_tx_attr, op_flags),
	NAMES(FI_TYPE_MSG_ORDER, fi_tx_attr, msg_order), M(SIZE, fi_tx_attr, inject_size),
	M(SIZE, fi_tx_attr, size), M(SIZE, fi_tx_attr, iov_limit),
	M(SIZE, fi_tx_attr, rma_iov_limit), M(HEX32, fi_tx_attr, tclass),
};

static const struct tostr_member rx_attr[] = {
	NAMES(FI_TYPE_CAPS, fi_rx_attr, caps), NAMES(FI_TYPE_MODE, fi_rx_attr, mode),
	NAMES(FI_TYPE_OP_FLAGS, fi_rx_attr, op_flags),
	NAMES(FI_TYPE_MSG_ORDER, fi_rx_attr, msg_order), M(SIZE, fi_rx_attr, size),
	M(SIZE, fi_rx_attr, iov_limit),
};

static const struct tostr_member ep_attr[] = {
	NAMES(FI_TYPE_EP_TYPE, fi_ep_attr, type), NAMES(FI_TYPE_PROTOCOL, fi_ep_attr, protocol),
	M(U32, fi_ep_attr, protocol_version), M(SIZE, fi_ep_attr, max_msg_size),
	M(SIZE, fi_ep_attr, msg_prefix_size), M(SIZE, fi_ep_attr, max_order_raw_size),
	M(SIZE, fi_ep_attr, max_order_war_size), M(SIZE, fi_ep_attr, max_order_waw_size),
	M(BITS64, fi_ep_attr, mem_tag_format), M(CTX_COUNT, fi_ep_attr, tx_ctx_cnt),
	M(CTX_COUNT, fi_ep_attr, rx_ctx_cnt), M(SIZE, fi_ep_attr, auth_key_size),
};

static const struct tostr_member domain_attr[] = {
	M(PTR, fi_domain_attr, domain), M(STR, fi_domain_attr, name),
	NAMES(FI_TYPE_THREADING, fi_domain_attr, threading),
	NAMES(FI_TYPE_PROGRESS, fi_domain_attr, progress),
	NAMES(TOSTR_RESOURCE_MGMT, fi_domain_attr, resource_mgmt),
	NAMES(FI_TYPE_AV_TYPE, fi_domain_attr, av_type),
	NAMES(FI_TYPE_MR_MODE, fi_domain_attr, mr_mode), M(SIZE, fi_domain_attr, mr_key_size),
	M(SIZE, fi_domain_attr, cq_data_size), M(SIZE, fi_domain_attr, cq_cnt),
	M(SIZE, fi_domain_attr, ep_cnt), M(SIZE, fi_domain_attr, tx_ctx_cnt),
	M(SIZE, fi_domain_attr, rx_ctx_cnt), M(SIZE, fi_domain_attr, max_ep_tx_ctx),
	M(SIZE, fi_domain_attr, max_ep_rx_ctx), M(SIZE, fi_domain_attr, max_ep_stx_ctx),
	M(SIZE, fi_domain_attr, max_ep_srx_ctx), M(SIZE, fi_domain_attr, cntr_cnt),
	M(SIZE, fi_domain_attr, mr_iov_limit), NAMES(FI_TYPE_CAPS, fi_domain_attr, caps),
	NAMES(FI_TYPE_MODE, fi_domain_attr, mode), M(SIZE, fi_domain_attr, auth_key_size),
	M(SIZE, fi_domain_attr, max_err_data), M(SIZE, fi_domain_attr, mr_cnt),
	M(HEX32, fi_domain_attr, tclass), M(SIZE, fi_domain_attr, max_ep_auth_key),
	M(U32, fi_domain_attr, max_group_id), M(U64, fi_domain_attr, max_cntr_value),
	M(U64, fi_domain_attr, max_err_cntr_value),
};

static const struct tostr_member fabric_attr[] = {
	M(STR, fi_fabric_attr, name), M(STR, fi_fabric_attr, prov_name),
	M(VERSION, fi_fabric_attr, prov_version), M(VERSION, fi_fabric_attr, api_version),
};

static const struct tostr_member info[] = {
	NAMES(FI_TYPE_CAPS, fi_info, caps), NAMES(FI_TYPE_MODE, fi_info, mode),
	NAMES(FI_TYPE_ADDR_FORMAT, fi_info, addr_format), M(SIZE, fi_info, src_addrlen),
	M(SIZE, fi_info, dest_addrlen),
};

static const struct tostr_member av_attr[] = {
	NAMES(FI_TYPE_AV_TYPE, fi_av_attr, type), M(SIZE, fi_av_attr, count),
	M(SIZE, fi_av_attr, ep_per_node), M(STR, fi_av_attr, name),
	NAMES(TOSTR_AV_FLAGS, fi_av_attr, flags),
};

static const struct tostr_member cq_attr[] = {
	M(SIZE, fi_cq_attr, size), NAMES(TOSTR_CQ_FLAGS, fi_cq_attr, flags),
	NAMES(FI_TYPE_CQ_FORMAT, fi_cq_attr, format), NAMES(FI_TYPE_WAIT_OBJ, fi_cq_attr, wait_obj),
	M(INT, fi_cq_attr, signaling_vector), NAMES(FI_TYPE_CQ_WAIT_COND, fi_cq_attr, wait_cond),
};

static const struct tostr_member mr_attr[] = {
	M(PTR, fi_mr_attr, mr_iov), M(SIZE, fi_mr_attr, iov_count),
	NAMES(TOSTR_MR_ACCESS, fi_mr_attr, access), M(HEX64, fi_mr_attr, offset),
	M(HEX64, fi_mr_attr, requested_key), M(PTR, fi_mr_attr, context),
	M(SIZE, fi_mr_attr, auth_key_size), NAMES(FI_TYPE_HMEM_IFACE, fi_mr_attr, iface),
};

static const struct tostr_member cntr_attr[] = {
	NAMES(TOSTR_CNTR_EVENTS, fi_cntr_attr, events),
	NAMES(FI_TYPE_WAIT_OBJ, fi_cntr_attr, wait_obj), M(HEX64, fi_cntr_attr, flags),
};

static const struct tostr_member cq_err_entry[] = {
	M(PTR, fi_cq_err_entry, op_context), M(HEX64, fi_cq_err_entry, flags),
	M(SIZE, fi_cq_err_entry, len), M(PTR, fi_cq_err_entry, buf), M(U64, fi_cq_err_entry, data),
	M(HEX64, fi_cq_err_entry, tag), M(SIZE, fi_cq_err_entry, olen),
	M(INT, fi_cq_err_entry, err),
	/* err, not prov_errno: all releases print it so, and programs may rely on the text. */
	{"prov_errno", offsetof(struct fi_cq_err_entry, err), INT, 0},
	M(PTR, fi_cq_err_entry, err_data), M(SIZE, fi_cq_err_entry, err_data_size),
};

static const struct tostr_member device_attr[] = {
	M(STR, fi_device_attr, name), M(STR, fi_device_attr, device_id),
	M(STR, fi_device_attr, device_version), M(STR, fi_device_attr, vendor_id),
	M(STR, fi_device_attr, driver), M(STR, fi_device_attr, firmware),
};

static const struct tostr_member bus_attr[] = {NAMES(TOSTR_BUS_TYPE, fi_bus_attr, bus_type)};

static const struct tostr_member pci_attr[] = {
	M(U16, fi_pci_attr, domain_id), M(U8, fi_pci_attr, bus_id), M(U8, fi_pci_attr, device_id),
	M(U8, fi_pci_attr, function_id),
};

static const struct tostr_member link_attr[] = {
	M(STR, fi_link_attr, address), M(SIZE, fi_link_attr, mtu), M(SIZE, fi_link_attr, speed),
	NAMES(TOSTR_LINK_STATE, fi_link_attr, state), M(STR, fi_link_attr, network_type),
};

#define LAYOUT(x) {"fi_" #x, x, sizeof(x) / sizeof((x)[0])}
/* clang-format on */

static const struct tostr_layout by_type[] = {
	[FI_TYPE_INFO] = LAYOUT(info),
	[FI_TYPE_TX_ATTR] = LAYOUT(tx_attr),
	[FI_TYPE_RX_ATTR] = LAYOUT(rx_attr),
	[FI_TYPE_EP_ATTR] = LAYOUT(ep_attr),
	[FI_TYPE_DOMAIN_ATTR] = LAYOUT(domain_attr),
	[FI_TYPE_FABRIC_ATTR] = LAYOUT(fabric_attr),
	[FI_TYPE_AV_ATTR] = LAYOUT(av_attr),
	[FI_TYPE_CQ_ATTR] = LAYOUT(cq_attr),
	[FI_TYPE_MR_ATTR] = LAYOUT(mr_attr),
	[FI_TYPE_CNTR_ATTR] = LAYOUT(cntr_attr),
	[FI_TYPE_CQ_ERR_ENTRY] = LAYOUT(cq_err_entry),
	[TOSTR_DEVICE_ATTR] = LAYOUT(device_attr),
	[TOSTR_BUS_ATTR] = LAYOUT(bus_attr),
	[TOSTR_PCI_ATTR] = LAYOUT(pci_attr),
	[TOSTR_LINK_ATTR] = LAYOUT(link_attr),
};

const struct tostr_layout *tostr_layout(int set)
{
	if (set < 0 || (size_t)set >= sizeof(by_type) / sizeof(by_type[0]) || !by_type[set].member)
		return NULL;
	return &by_type[set];
}
