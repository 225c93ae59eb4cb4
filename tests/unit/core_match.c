/* SPDX-License-Identifier: BSD-2-Clause */
/* What fi_getinfo grants: one attribute after the other, and what known clients ask. */
#include <check.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NOW   FI_VERSION(2, 6)
#define BASIC (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

static struct fi_info *hints, *list;

static void setup(void)
{
	hints = fi_allocinfo();
	list = NULL;
}

static void teardown(void)
{
	fi_freeinfo(hints);
	fi_freeinfo(list);
}

static int ask(uint32_t version)
{
	int ret;

	fi_freeinfo(list);
	list = (struct fi_info *)(uintptr_t)1;
	ret = fi_getinfo(version, NULL, NULL, 0, hints, &list);
	if (ret)
		ck_assert_ptr_null(list);
	return ret;
}

static void ask_for(const char *prov_name)
{
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = prov_name ? strdup(prov_name) : NULL;
}

static int found(const char *prov_name)
{
	ask_for(prov_name);
	return ask(NOW);
}

static void first_is(const char *prov_name)
{
	ck_assert_str_eq(list->fabric_attr->prov_name, prov_name);
}

/* ---- Capabilities ---- */

START_TEST(sparse_hints)
{
	struct fi_info bare = {.caps = FI_MSG};

	ck_assert_int_eq(fi_getinfo(NOW, NULL, NULL, 0, &bare, &list), 0);
	ck_assert_uint_eq(list->tx_attr->caps & (FI_MSG | FI_SEND | FI_RECV), FI_MSG | FI_SEND);
}
END_TEST

START_TEST(caps_primary_only_as_asked)
{
	hints->caps = FI_TAGGED;
	ck_assert_int_eq(ask(NOW), 0);
	ck_assert_uint_eq(list->caps & (FI_MSG | FI_DIRECTED_RECV | FI_NAMED_RX_CTX | FI_SOURCE),
			  0);
	ck_assert_uint_eq(list->caps & (FI_TAGGED | FI_SEND | FI_RECV),
			  FI_TAGGED | FI_SEND | FI_RECV);
	ck_assert_uint_eq(list->tx_attr->caps, FI_TAGGED | FI_SEND);
	ck_assert_uint_eq(list->rx_attr->caps & ~FI_MULTI_RECV, FI_TAGGED | FI_RECV);
}
END_TEST

START_TEST(caps_one_way)
{
	hints->caps = FI_MSG | FI_SEND;
	ck_assert_int_eq(ask(NOW), 0);
	ck_assert_uint_eq(list->caps & (FI_SEND | FI_RECV), FI_SEND);
	ck_assert_uint_eq(list->rx_attr->caps & FI_RECV, 0);
}
END_TEST

START_TEST(caps_of_contexts)
{
	hints->caps = FI_MSG;
	hints->tx_attr->caps = FI_TAGGED;
	ck_assert_int_eq(ask(NOW), 0);
	ck_assert_uint_eq(list->caps & (FI_MSG | FI_TAGGED), FI_MSG | FI_TAGGED);
	ck_assert_uint_eq(list->tx_attr->caps & (FI_MSG | FI_TAGGED | FI_SEND),
			  FI_TAGGED | FI_SEND);
	hints->tx_attr->caps = FI_MULTICAST;
	ck_assert_int_eq(ask(NOW), -FI_ENODATA);
}
END_TEST

START_TEST(caps_not_there)
{
	const uint64_t absent[] = {FI_MULTICAST, FI_HMEM, FI_COLLECTIVE, 1ULL << 40};

	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		hints->caps = FI_MSG | absent[i];
		ck_assert_int_eq(ask(NOW), -FI_ENODATA);
	}
}
END_TEST

START_TEST(caps_remote)
{
	hints->caps = FI_MSG | FI_REMOTE_COMM;
	ck_assert_int_eq(found("weft"), 0);
	ck_assert_uint_eq(list->domain_attr->caps, FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SHARED_AV);
	ck_assert_int_eq(found("shm"), -FI_ENODATA);
	hints->caps = FI_MSG | FI_LOCAL_COMM;
	ck_assert_int_eq(ask(NOW), 0);
	hints->domain_attr->caps = FI_REMOTE_COMM;
	ck_assert_int_eq(ask(NOW), -FI_ENODATA);
}
END_TEST

START_TEST(caps_shared_vectors)
{
	hints->caps = FI_MSG | FI_SHARED_AV;
	hints->domain_attr->caps = FI_SHARED_AV;
	ck_assert_int_eq(found("weft"), 0);
	ck_assert_uint_ne(list->caps & FI_SHARED_AV, 0);
	ck_assert_uint_eq((list->tx_attr->caps | list->rx_attr->caps) & FI_SHARED_AV, 0);
	ck_assert_int_eq(found("shm"), 0);
	ck_assert_int_eq(ask(FI_VERSION(1, 4)), -FI_ENODATA);
}
END_TEST

/* Bit 48 was FI_VARIABLE_MSG, which nobody has, and is FI_EXACT_DIRECTED_RECV from 2.0 on. */
START_TEST(caps_by_version)
{
	hints->caps = FI_MSG | FI_EXACT_DIRECTED_RECV;
	ck_assert_int_eq(ask(NOW), 0);
	ck_assert_int_eq(ask(FI_VERSION(1, 17)), -FI_ENODATA);
	hints->caps = 0;
	ck_assert_int_eq(ask(FI_VERSION(1, 4)), 0);
	ck_assert_uint_eq(list->caps & (FI_LOCAL_COMM | FI_TAGGED_MULTI_RECV), 0);
}
END_TEST

/* ---- Plain attributes ---- */

struct number {
	size_t part, at;
	size_t size;
	uint64_t asked, granted;
	bool met;
};

#define IN(part, member)                                                                           \
	offsetof(struct fi_info, part##_attr), offsetof(struct fi_##part##_attr, member),          \
		sizeof(((struct fi_##part##_attr *)0)->member)
#define MET     true
#define REFUSED 0, false

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
	{IN(ep, type), FI_EP_MSG, REFUSED},
	{IN(ep, type), FI_EP_DGRAM, REFUSED},
	{IN(ep, type), FI_EP_RDM, FI_EP_RDM, MET},
	{IN(ep, protocol), FI_PROTO_RXM, REFUSED},
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
	{IN(domain, data_progress), FI_PROGRESS_CONTROL_UNIFIED, REFUSED},
	{IN(domain, resource_mgmt), FI_RM_DISABLED, FI_RM_ENABLED, MET},
	{IN(domain, av_type), FI_AV_MAP, FI_AV_MAP, MET},
	{IN(domain, av_type), FI_AV_TABLE, FI_AV_TABLE, MET},
	{IN(domain, av_type), 3, REFUSED},
	{IN(domain, max_ep_auth_key), 1, REFUSED},
	{IN(domain, max_group_id), 1, REFUSED},
};

static void *member(struct fi_info *info, const struct number *n)
{
	return *(char **)((char *)info + n->part) + n->at;
}

START_TEST(attribute)
{
	const struct number *n = &numbers[_i];
	uint64_t wide;

	memcpy(member(hints, n), &n->asked, n->size);
	ck_assert_int_eq(ask(NOW), n->met ? 0 : -FI_ENODATA);
	for (struct fi_info *i = list; i; i = i->next) {
		wide = 0;
		memcpy(&wide, member(i, n), n->size);
		ck_assert_uint_eq(wide, n->granted);
	}
}
END_TEST

/* Members an old caller does not have hold anything. */
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
	{NOW, FI_MR_PROV_KEY, FI_MR_PROV_KEY},
	{NOW, 0xffc, BASIC},
	{FI_VERSION(1, 5), BASIC | FI_MR_ENDPOINT, BASIC},
	{FI_VERSION(1, 4), 0, FI_MR_BASIC},
	{FI_VERSION(1, 4), FI_MR_BASIC, FI_MR_BASIC},
	{FI_VERSION(1, 4), FI_MR_SCALABLE, FI_MR_SCALABLE},
	{FI_VERSION(1, 4), FI_MR_LOCAL, -1},
	{FI_VERSION(1, 0), 3, -1},
};

START_TEST(mr_mode)
{
	hints->domain_attr->mr_mode = mr_modes[_i].asked;
	ck_assert_int_eq(ask(mr_modes[_i].version), mr_modes[_i].granted < 0 ? -FI_ENODATA : 0);
	for (struct fi_info *i = list; i; i = i->next)
		ck_assert_int_eq(i->domain_attr->mr_mode, mr_modes[_i].granted);
}
END_TEST

/* ---- What known clients ask ---- */

static void completion_hints(void)
{
	hints->tx_attr->op_flags = hints->rx_attr->op_flags = FI_COMPLETION;
	hints->domain_attr->cq_data_size = 4;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = FI_AV_MAP;
}

static void mpi_hints(uint64_t caps)
{
	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	completion_hints();
}

START_TEST(open_mpi_4)
{
	mpi_hints(FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV);
	ck_assert_int_eq(ask(FI_VERSION(1, 5)), 0);
	first_is("weft");
	ck_assert_uint_eq(list->caps & hints->caps, hints->caps);
	ck_assert_int_eq(list->domain_attr->threading, FI_THREAD_DOMAIN);
	ck_assert_int_eq(list->domain_attr->av_type, FI_AV_MAP);
	hints->domain_attr->threading = FI_THREAD_SAFE;
	ck_assert_int_eq(ask(FI_VERSION(1, 5)), 0);
	ck_assert_int_eq(list->domain_attr->threading, FI_THREAD_SAFE);
}
END_TEST

/* It asks for device memory first and does without where there is none. */
START_TEST(open_mpi_5)
{
	uint64_t caps = FI_MSG | FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;

	mpi_hints(caps | FI_HMEM);
	hints->domain_attr->mr_mode = FI_MR_HMEM;
	ck_assert_int_eq(ask(FI_VERSION(1, 18)), -FI_ENODATA);
	mpi_hints(caps);
	hints->domain_attr->mr_mode = 0;
	ck_assert_int_eq(ask(FI_VERSION(1, 18)), 0);
	first_is("weft");
	ck_assert_int_eq(ask(FI_VERSION(1, 9)), 0);
}
END_TEST

/* It scores what no hints give, then asks for what the winner advertised. */
START_TEST(mpich)
{
	const uint64_t scored = FI_TAGGED | FI_MSG | FI_MULTI_RECV | FI_NAMED_RX_CTX;
	uint64_t caps;

	ck_assert_int_eq(fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, NULL, &list), 0);
	first_is("weft");
	caps = list->caps;
	ck_assert_uint_eq(caps & scored, scored);
	ck_assert_uint_gt(list->domain_attr->max_ep_tx_ctx, 1);
	ck_assert_uint_ge(list->domain_attr->cq_data_size, 4);
	mpi_hints(caps);
	ask_for(list->fabric_attr->prov_name);
	hints->mode = FI_CONTEXT | FI_ASYNC_IOV | FI_RX_CQ_DATA | FI_CONTEXT2;
	hints->domain_attr->mode = FI_RESTRICTED_COMP;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
	ck_assert_int_eq(ask(FI_VERSION(1, 14)), 0);
	ck_assert_uint_eq(list->caps, caps);
	ck_assert_int_eq(list->domain_attr->threading, FI_THREAD_DOMAIN);
	ck_assert_int_eq(list->domain_attr->data_progress, FI_PROGRESS_MANUAL);
}
END_TEST

START_TEST(nccl)
{
	hints->caps = FI_TAGGED | FI_MSG | FI_LOCAL_COMM | FI_REMOTE_COMM;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_HMEM | BASIC | FI_MR_ENDPOINT;
	ck_assert_int_eq(ask(FI_VERSION(1, 20)), 0);
	first_is("weft");
	ck_assert_int_eq(ask(FI_VERSION(1, 6)), 0);
	first_is("weft");
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static TCase *attributes_case(void)
{
	TCase *tc = tcase_create("attributes");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, sparse_hints);
	tcase_add_test(tc, caps_primary_only_as_asked);
	tcase_add_test(tc, caps_one_way);
	tcase_add_test(tc, caps_of_contexts);
	tcase_add_test(tc, caps_not_there);
	tcase_add_test(tc, caps_remote);
	tcase_add_test(tc, caps_shared_vectors);
	tcase_add_test(tc, caps_by_version);
	tcase_add_loop_test(tc, attribute, 0, COUNT(numbers));
	tcase_add_test(tc, attributes_by_version);
	tcase_add_test(tc, message_order);
	tcase_add_test(tc, modes_are_not_needed);
	tcase_add_loop_test(tc, mr_mode, 0, COUNT(mr_modes));
	return tc;
}

static TCase *clients_case(void)
{
	TCase *tc = tcase_create("clients");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, open_mpi_4);
	tcase_add_test(tc, open_mpi_5);
	tcase_add_test(tc, mpich);
	tcase_add_test(tc, nccl);
	return tc;
}

int main(void)
{
	Suite *suite = suite_create("core_match");
	SRunner *runner;
	int failed;

	unsetenv("FI_PROVIDER");
	unsetenv("FI_TCP_IFACE");
	suite_add_tcase(suite, attributes_case());
	suite_add_tcase(suite, clients_case());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
