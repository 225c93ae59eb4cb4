/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which endpoints end the lockless calls of a domain that was opened with FI_THREAD_DOMAIN. */
#include <rdma/fi_endpoint.h>
#include <string.h>

#include "core/domain.h"
#include "suite.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const struct {
	enum fi_threading threading;
	uint64_t caps; /* beside FI_MSG */
	bool unlocked;
} entries[] = {
	{FI_THREAD_DOMAIN, 0, true},
	{FI_THREAD_UNSPEC, 0, true},
	{FI_THREAD_SAFE, 0, false},
	{FI_THREAD_FID, 0, false},
	{FI_THREAD_COMPLETION, 0, false},
	{FI_THREAD_ENDPOINT, 0, false},
	{FI_THREAD_DOMAIN, FI_COLLECTIVE, false},
};

START_TEST(admits)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;

	hints->fabric_attr->prov_name = strdup("tcp");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	ck_assert_int_eq(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), 0);
	ck_assert_int_eq(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
	ck_assert(domain_of(domain)->unlocked);
	info->domain_attr->threading = entries[_i].threading;
	info->caps |= entries[_i].caps;
	ck_assert_int_eq(fi_endpoint(domain, info, &ep, NULL), 0);
	ck_assert_int_eq(domain_of(domain)->unlocked, entries[_i].unlocked);
	ck_assert_int_eq(fi_close(&ep->fid), 0);
	ck_assert_int_eq(fi_close(&domain->fid), 0);
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_domain");
	TCase *tc = tcase_create("domain");

	tcase_add_loop_test(tc, admits, 0, COUNT(entries));
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
