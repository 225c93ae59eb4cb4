/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which values of each attribute fi_getinfo grants or refuses. */
#include "getinfo.h"

struct number {
	enum fi_ep_type type;
	size_t part, at;
	size_t size;
	uint64_t asked, granted;
	bool met;
};

#define IN_OF(type, part, member)                                                                  \
	type, offsetof(struct fi_info, part##_attr), offsetof(struct fi_##part##_attr, member),    \
		sizeof(((struct fi_##part##_attr *)0)->member)
#define IN(part, member)    IN_OF(FI_EP_RDM, part, member)
#define MSG(part, member)   IN_OF(FI_EP_MSG, part, member)
#define DGRAM(part, member) IN_OF(FI_EP_DGRAM, part, member)
#define MET                 true
#define REFUSED             0, false

static const struct number numbers[] = {
	{IN(tx, inject_size), 16, 4096, MET},
	{IN(tx, inject_size), 4096, 4096, MET},
	{IN(tx, inject_size), 4097, REFUSED},
	{IN(tx, size), 0, 1024, MET},
	{IN(tx, size), 16, 16, MET},
	{IN(tx, size), 65536, 65536, MET},
	{IN(tx, size), 65537, REFUSED},
	{IN(rx, size), 65536, 65536, MET},
	{IN(rx, size), 65537, REFUSED},
	{IN(tx, iov_limit), 1, 16, MET},
	{IN(tx, iov_limit), 17, REFUSED},
	{IN(rx, iov_limit), 17, REFUSED},
	{IN(tx, op_flags), FI_COMPLETION | FI_DELIVERY_COMPLETE,
	 FI_COMPLETION | FI_DELIVERY_COMPLETE, MET},
	{IN(tx, op_flags), FI_COMMIT_COMPLETE, FI_COMMIT_COMPLETE, MET},
	{IN(tx, op_flags), FI_MULTI_RECV, REFUSED},
	{IN(rx, op_flags), FI_MULTI_RECV | FI_COMPLETION, FI_MULTI_RECV | FI_COMPLETION, MET},
	{IN(rx, op_flags), FI_INJECT, REFUSED},
	{IN(tx, comp_order), FI_ORDER_STRICT, REFUSED},
	{IN(rx, comp_order), FI_ORDER_DATA, REFUSED},
	{IN(rx, total_buffered_recv), 100, 100, MET},
	{IN(tx, tclass), FI_TC_BULK_DATA, FI_TC_UNSPEC, MET},
	{IN(ep, type), FI_EP_MSG, FI_EP_MSG, MET},
	{IN(ep, type), FI_EP_DGRAM, FI_EP_DGRAM, MET},
	{IN(ep, type), FI_EP_RDM, FI_EP_RDM, MET},
	{IN(ep, type), 9, REFUSED},
	{IN(ep, protocol), FI_PROTO_RXM, FI_PROTO_RXM, MET},
	{IN(ep, protocol), FI_PROTO_EFA, REFUSED},
	{IN(ep, protocol), FI_PROTO_UDP, REFUSED},
	{IN(ep, protocol), FI_PROTO_XNET, FI_PROTO_XNET, MET},
	{IN(ep, protocol_version), 1, 1, MET},
	{IN(ep, protocol_version), 2, REFUSED},
	{IN(ep, max_msg_size), 100, SIZE_MAX, MET},
	{IN(ep, max_order_raw_size), 4096, SIZE_MAX, MET},
	{IN(ep, max_order_war_size), 0, SIZE_MAX, MET},
	{IN(ep, max_order_waw_size), SIZE_MAX, SIZE_MAX, MET},
	{IN(ep, mem_tag_format), 0, 0xaaaaaaaaaaaaaaaaULL, MET},
	{IN(ep, mem_tag_format), 0x30ff, 0x30ff, MET},
	{IN(ep, tx_ctx_cnt), 0, 1, MET},
	{IN(ep, tx_ctx_cnt), 64, 64, MET},
	{IN(ep, tx_ctx_cnt), 65, REFUSED},
	{IN(ep, rx_ctx_cnt), FI_SHARED_CONTEXT, FI_SHARED_CONTEXT, MET},
	{IN(ep, auth_key_size), 8, REFUSED},
	{IN(domain, mr_key_size), 1, 8, MET},
	{IN(domain, mr_key_size), 9, REFUSED},
	{IN(domain, cq_data_size), 4, 8, MET},
	{IN(domain, cq_data_size), 9, REFUSED},
	{IN(domain, cq_cnt), 1000000, 1000000, MET},
	{IN(domain, mr_iov_limit), 17, REFUSED},
	{IN(domain, max_ep_tx_ctx), 2, 64, MET},
	{IN(domain, max_ep_srx_ctx), 65, REFUSED},
	{IN(domain, threading), FI_THREAD_FID, FI_THREAD_FID, MET},
	{IN(domain, threading), FI_THREAD_DOMAIN, FI_THREAD_DOMAIN, MET},
	{IN(domain, threading), FI_THREAD_COMPLETION, FI_THREAD_COMPLETION, MET},
	{IN(domain, threading), FI_THREAD_ENDPOINT, FI_THREAD_ENDPOINT, MET},
	{IN(domain, threading), 6, REFUSED},
	{IN(domain, threading), 200, REFUSED},
	{IN(domain, control_progress), FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, MET},
	{IN(domain, control_progress), FI_PROGRESS_CONTROL_UNIFIED, FI_PROGRESS_CONTROL_UNIFIED,
	 MET},
	{IN(domain, data_progress), FI_PROGRESS_AUTO, FI_PROGRESS_AUTO, MET},
	{IN(domain, data_progress), FI_PROGRESS_CONTROL_UNIFIED, FI_PROGRESS_CONTROL_UNIFIED, MET},
	{IN(domain, data_progress), FI_PROGRESS_CONTROL_UNIFIED + 1, REFUSED},
	{IN(domain, resource_mgmt), FI_RM_DISABLED, FI_RM_ENABLED, MET},
	{IN(domain, av_type), FI_AV_MAP, FI_AV_MAP, MET},
	{IN(domain, av_type), FI_AV_TABLE, FI_AV_TABLE, MET},
	{IN(domain, av_type), 3, REFUSED},
	{IN(domain, auth_key_size), FI_AV_AUTH_KEY, FI_AV_AUTH_KEY, MET},
	{IN(domain, max_ep_auth_key), 0, 16, MET},
	{IN(domain, max_ep_auth_key), 3, 3, MET},
	{IN(domain, max_ep_auth_key), 17, REFUSED},
	{IN(domain, max_group_id), 1, REFUSED},

	{MSG(ep, protocol), FI_PROTO_SOCK_TCP, FI_PROTO_SOCK_TCP, MET},
	{MSG(ep, max_msg_size), 0, SIZE_MAX, MET},
	{MSG(ep, tx_ctx_cnt), 0, 1, MET},
	{MSG(ep, tx_ctx_cnt), 2, REFUSED},
	{MSG(ep, tx_ctx_cnt), FI_SHARED_CONTEXT, FI_SHARED_CONTEXT, MET},
	{MSG(ep, rx_ctx_cnt), 2, REFUSED},
	{MSG(ep, rx_ctx_cnt), FI_SHARED_CONTEXT, FI_SHARED_CONTEXT, MET},
	{MSG(domain, max_ep_tx_ctx), 0, 1, MET},
	{MSG(domain, max_ep_tx_ctx), 2, REFUSED},
	{MSG(domain, max_ep_rx_ctx), 0, 1, MET},
	{MSG(domain, max_ep_srx_ctx), 1, 64, MET},
	{MSG(domain, cq_data_size), 8, 8, MET},
	{MSG(domain, auth_key_size), FI_AV_AUTH_KEY, REFUSED},
	{MSG(domain, max_ep_auth_key), 1, REFUSED},

	{DGRAM(ep, protocol), FI_PROTO_UDP, FI_PROTO_UDP, MET},
	{DGRAM(ep, max_msg_size), 1472, 65507, MET},
	{DGRAM(ep, max_msg_size), 65508, REFUSED},
	{DGRAM(ep, max_order_raw_size), 0, 0, MET},
	{DGRAM(ep, max_order_waw_size), 1, REFUSED},
	{DGRAM(ep, mem_tag_format), 0, 0, MET},
	{DGRAM(ep, rx_ctx_cnt), FI_SHARED_CONTEXT, REFUSED},
	{DGRAM(tx, op_flags), FI_MULTICAST, FI_MULTICAST, MET},
	{DGRAM(tx, op_flags), FI_DELIVERY_COMPLETE, REFUSED},
	{DGRAM(tx, rma_iov_limit), 1, REFUSED},
	{DGRAM(tx, msg_order), FI_ORDER_SAS, REFUSED},
	{DGRAM(tx, msg_order), 0, 0, MET},
	{DGRAM(domain, cq_data_size), 0, 0, MET},
	{DGRAM(domain, cq_data_size), 4, REFUSED},
	{DGRAM(domain, max_ep_rx_ctx), 0, 1, MET},
	{DGRAM(domain, max_ep_srx_ctx), 0, 0, MET},
	{DGRAM(domain, max_ep_stx_ctx), 1, REFUSED},
	{DGRAM(domain, auth_key_size), FI_AV_AUTH_KEY, REFUSED},
	{DGRAM(domain, max_ep_auth_key), 1, REFUSED},
};

static void *member(struct fi_info *info, const struct number *n)
{
	return *(char **)((char *)info + n->part) + n->at;
}

START_TEST(attribute)
{
	const struct number *n = &numbers[_i];
	uint64_t wide;

	hints->ep_attr->type = n->type;
	if (n->type == FI_EP_DGRAM)
		hints->addr_format = FI_SOCKADDR_IN; /* IPv6 entries have another max_msg_size */
	memcpy(member(hints, n), &n->asked, n->size);
	ck_assert_int_eq(ask(NOW), n->met ? 0 : -FI_ENODATA);
	for (struct fi_info *i = list; i; i = i->next) {
		wide = 0;
		memcpy(&wide, member(i, n), n->size);
		ck_assert_uint_eq(wide, n->granted);
	}
}
END_TEST

/* Members that an old caller's struct lacks are not read. */
START_TEST(attributes_by_version)
{
	hints->domain_attr->max_ep_auth_key = 77;
	hints->domain_attr->max_group_id = 77;
	ck_assert_int_eq(ask(FI_VERSION(1, 19)), 0);
	ck_assert_int_eq(ask(FI_VERSION(1, 20)), -FI_ENODATA);
	hints->domain_attr->max_ep_auth_key = 0;
	ck_assert_int_eq(ask(FI_VERSION(1, 20)), 0);
	ck_assert_int_eq(ask(FI_VERSION(2, 0)), -FI_ENODATA);
}
END_TEST

START_TEST(message_order)
{
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	ck_assert_int_eq(ask(NOW), 0);
	ck_assert_uint_eq(list->tx_attr->msg_order & FI_ORDER_SAS, FI_ORDER_SAS);
	hints->tx_attr->msg_order = 1ULL << 60;
	ck_assert_int_eq(ask(NOW), -FI_ENODATA);
}
END_TEST

START_TEST(modes_are_not_needed)
{
	hints->mode = hints->tx_attr->mode = ~0ULL;
	hints->domain_attr->mode = FI_RESTRICTED_COMP;
	ck_assert_int_eq(ask(NOW), 0);
	ck_assert_uint_eq(list->mode | list->tx_attr->mode | list->rx_attr->mode, 0);
}
END_TEST

/* `granted` by weft, which RDMA devices may serve; shm and tcp have no use for bits. */
static const struct {
	uint32_t version;
	int asked, granted; /* -1: refused */
} mr_modes[] = {
	{NOW, 0, 0},
	{NOW, FI_MR_BASIC, FI_MR_BASIC},
	{NOW, FI_MR_SCALABLE, FI_MR_SCALABLE},
	{NOW, FI_MR_BASIC | FI_MR_SCALABLE, -1},
	{NOW, FI_MR_BASIC | FI_MR_LOCAL, -1},
	{NOW, BASIC, BASIC},
	{NOW, FI_MR_LOCAL, 0},
	{NOW, FI_MR_PROV_KEY, 0},
	{NOW, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED, 0},
	{NOW, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY},
	{NOW, 0xffc, BASIC},
	{NOW, ~(FI_MR_BASIC | FI_MR_SCALABLE), BASIC},
	{NOW, ~0, -1},
	{FI_VERSION(1, 5), BASIC | FI_MR_ENDPOINT, BASIC},
	{FI_VERSION(1, 4), 0, FI_MR_BASIC},
	{FI_VERSION(1, 4), FI_MR_BASIC, FI_MR_BASIC},
	{FI_VERSION(1, 4), FI_MR_SCALABLE, FI_MR_SCALABLE},
	{FI_VERSION(1, 4), FI_MR_LOCAL, -1},
	{FI_VERSION(1, 0), 3, -1},
};

START_TEST(mr_mode)
{
	hints->ep_attr->type = _i % 2 ? FI_EP_RDM : FI_EP_MSG;
	hints->domain_attr->mr_mode = mr_modes[_i].asked;
	ck_assert_int_eq(ask(mr_modes[_i].version), mr_modes[_i].granted < 0 ? -FI_ENODATA : 0);
	for (struct fi_info *i = list; i; i = i->next) {
		bool devices = strcmp(i->fabric_attr->prov_name, "weft") == 0;
		int names = FI_MR_BASIC | FI_MR_SCALABLE;

		ck_assert_int_eq(i->domain_attr->mr_mode,
				 mr_modes[_i].granted & (devices ? ~0 : names));
	}
}
END_TEST

/* Datagram endpoints need no registration mode. */
START_TEST(mr_mode_of_datagrams)
{
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->domain_attr->mr_mode = BASIC;
	ck_assert_int_eq(ask(NOW), 0);
	first_is("weft");
	ck_assert_int_eq(list->domain_attr->mr_mode, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("info_match");
	TCase *tc = new_case("match");

	tcase_add_loop_test(tc, attribute, 0, COUNT(numbers));
	tcase_add_test(tc, attributes_by_version);
	tcase_add_test(tc, message_order);
	tcase_add_test(tc, modes_are_not_needed);
	tcase_add_loop_test(tc, mr_mode, 0, COUNT(mr_modes));
	tcase_add_test(tc, mr_mode_of_datagrams);
	suite_add_tcase(suite, tc);
	return run(suite);
}
