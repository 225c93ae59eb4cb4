/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves what copies of an entry have, and that entries of external providers can be freed. */
#include <rdma/fabric.h>
#include <stdlib.h>

#include "info/info.h"
#include "suite.h"

/* A NIC without operations, as a provider may describe it, belongs to the provider. */
START_TEST(nic_without_operations)
{
	static struct fid_nic nic = {.fid = {.fclass = FI_CLASS_NIC}};
	struct fi_info *info = fi_allocinfo(), *copy;

	info->nic = &nic;
	copy = fi_dupinfo(info);
	ck_assert_ptr_nonnull(copy);
	ck_assert_ptr_null(copy->nic);
	fi_freeinfo(copy);
	fi_freeinfo(info);
}
END_TEST

/* The archive has the call of the headers' release: its structures end before those of 2.7. */
START_TEST(copies_end_with_2_6)
{
	struct fi_info *info = info_blank(), *copy;

	info->ep_attr->xpu_ctx = info;
	info->ep_attr->rx_ctx_cnt = 7;
	info->domain_attr->max_xpu_ctx_cnt = 3;
	info->domain_attr->max_err_cntr_value = 5;
	copy = fi_dupinfo(info);
	ck_assert_ptr_nonnull(copy);
	ck_assert_ptr_null(copy->ep_attr->xpu_ctx);
	ck_assert_uint_eq(copy->ep_attr->rx_ctx_cnt, 7);
	ck_assert_uint_eq(copy->domain_attr->max_xpu_ctx_cnt, 0);
	ck_assert_uint_eq(copy->domain_attr->max_err_cntr_value, 5);
	fi_freeinfo(copy);
	fi_freeinfo(info);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("info_info");
	TCase *tcase = tcase_create("info");

	tcase_add_test(tcase, nic_without_operations);
	tcase_add_test(tcase, copies_end_with_2_6);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
