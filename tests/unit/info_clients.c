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

int main(void)
{
	Suite *suite = suite_create("info_clients");
	TCase *tc = new_case("clients");

	tcase_add_test(tc, open_mpi_4);
	tcase_add_test(tc, open_mpi_5);
	tcase_add_test(tc, mpich);
	tcase_add_test(tc, nccl);
	suite_add_tcase(suite, tc);
	return run(suite);
}
