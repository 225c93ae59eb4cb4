/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that fi_getinfo gives well-known programs the entries they need for their hints. */
#include "getinfo.h"

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

/* Open MPI asks for device memory first, then without. */
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

/* MPICH scores entries of a call without hints, then asks for the capabilities of the best one. */
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

static const struct {
	const char *client;
	uint32_t version;
	uint64_t caps, op_flags;
	int mr_mode;
	enum fi_threading threading;
	enum fi_progress data;
	enum fi_av_type av;
} one_sided[] = {
	{"Open MPI btl", FI_VERSION(1, 5), FI_RMA | FI_ATOMIC, FI_DELIVERY_COMPLETE, BASIC,
	 FI_THREAD_DOMAIN, FI_PROGRESS_UNSPEC, FI_AV_MAP},
	{"Open MPI 5 btl", FI_VERSION(1, 9), FI_RMA | FI_ATOMIC, FI_DELIVERY_COMPLETE,
	 BASIC | FI_MR_ENDPOINT, FI_THREAD_SAFE, FI_PROGRESS_UNSPEC, FI_AV_MAP},
	{"MPICH", FI_VERSION(1, 14), FI_TAGGED | FI_MSG | FI_MULTI_RECV | FI_RMA | FI_ATOMIC,
	 FI_DELIVERY_COMPLETE, BASIC, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL, FI_AV_TABLE},
	{"OpenSHMEM", FI_VERSION(1, 5), FI_RMA | FI_ATOMIC | FI_RMA_EVENT | FI_FENCE,
	 FI_DELIVERY_COMPLETE, BASIC, FI_THREAD_COMPLETION, FI_PROGRESS_AUTO, FI_AV_TABLE},
	{"RPC", FI_VERSION(1, 9), FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_MULTI_RECV, 0,
	 BASIC | FI_MR_LOCAL | FI_MR_ENDPOINT, FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_AV_MAP},
	{"GASNet-EX", FI_VERSION(1, 5), FI_RMA | FI_MSG | FI_MULTI_RECV, FI_DELIVERY_COMPLETE,
	 BASIC | FI_MR_ENDPOINT, FI_THREAD_SAFE, FI_PROGRESS_UNSPEC, FI_AV_TABLE},
	{"Chapel", FI_VERSION(1, 9), FI_MSG | FI_MULTI_RECV | FI_RMA | FI_ATOMIC, FI_COMPLETION,
	 FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ENDPOINT, FI_THREAD_DOMAIN,
	 FI_PROGRESS_UNSPEC, FI_AV_TABLE},
};

/*
 * Clients with one-sided operations offer registration modes, and go by those that are left: all that only
 * hardware needs are cleared, where none can be behind it.
 */
START_TEST(registration)
{
	static const char *const names[] = {"weft", "tcp", "shm"};
	int kept = one_sided[_i].mr_mode & BASIC;

	hints->caps = one_sided[_i].caps;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->op_flags = one_sided[_i].op_flags;
	hints->domain_attr->mr_mode = one_sided[_i].mr_mode;
	hints->domain_attr->threading = one_sided[_i].threading;
	hints->domain_attr->data_progress = one_sided[_i].data;
	hints->domain_attr->av_type = one_sided[_i].av;
	for (int n = 0; n < COUNT(names); n++) {
		ask_for(names[n]);
		ck_assert_msg(ask(one_sided[_i].version) == 0, "%s: no %s", one_sided[_i].client,
			      names[n]);
		ck_assert_int_eq(list->domain_attr->mr_mode, n == 0 ? kept : 0);
		ck_assert_int_eq(list->domain_attr->threading, one_sided[_i].threading);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("info_clients");
	TCase *tc = new_case("clients");

	tcase_add_test(tc, open_mpi_4);
	tcase_add_test(tc, open_mpi_5);
	tcase_add_test(tc, mpich);
	tcase_add_test(tc, nccl);
	tcase_add_loop_test(tc, registration, 0, COUNT(one_sided));
	suite_add_tcase(suite, tc);
	return run(suite);
}
