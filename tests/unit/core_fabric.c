/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves how fabrics and their passive endpoints open, close, and get addresses. */
#include <netinet/in.h>
#include <string.h>

#include "info/opened.h"
#include "api/pep.h"
#include "suite.h"

static struct fi_fabric_attr attr = {
	.name = "weft", .prov_name = "weft", .api_version = FI_VERSION(1, 9)};
static struct fid_fabric *fabric;

static void setup(void)
{
	ck_assert_int_eq(fi_fabric(&attr, &fabric, &attr), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
}

START_TEST(refused)
{
	struct fi_info info = {.fabric_attr = NULL};
	struct fi_fabric_attr a = attr;
	struct fid_fabric *f;

	ck_assert_int_eq(fi_fabric(NULL, &f, NULL), -FI_EINVAL);
	a.name = NULL;
	ck_assert_int_eq(fi_fabric(&a, &f, NULL), -FI_EINVAL);
	a = attr;
	a.prov_name = NULL;
	ck_assert_int_eq(fi_fabric(&a, &f, NULL), -FI_EINVAL);
	a.prov_name = "nobody";
	ck_assert_int_eq(fi_fabric(&a, &f, NULL), -FI_ENODEV);
	a = attr;
	a.name = "nowhere";
	ck_assert_int_eq(fi_fabric(&a, &f, NULL), -FI_ENODEV);
	ck_assert_int_eq(fi_fabric2(NULL, &f, 0, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_fabric2(&info, &f, 0, NULL), -FI_EINVAL);
	info.fabric_attr = &attr;
	ck_assert_int_eq(fi_fabric2(&info, &f, FI_PEEK, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_fabric2(&info, &f, 0, NULL), 0);
	ck_assert_int_eq(fi_close(&f->fid), 0);
}
END_TEST

START_TEST(opened)
{
	struct fid_fabric *second;

	ck_assert_uint_eq(fabric->fid.fclass, FI_CLASS_FABRIC);
	ck_assert_ptr_eq(fabric->fid.context, &attr);
	ck_assert_uint_eq(fabric->api_version, FI_VERSION(1, 9));
	ck_assert_ptr_eq(opened_fabric(provider_find("weft"))->fid, fabric);
	ck_assert_ptr_null(opened_fabric(provider_find("tcp")));
	ck_assert_int_eq(fi_fabric(&attr, &second, NULL), 0);
	ck_assert_ptr_eq(opened_fabric(provider_find("weft"))->fid, fabric);
	ck_assert_ptr_eq(opened_fabric_of(second)->fid, second);
	ck_assert_int_eq(fi_close(&second->fid), 0);
	ck_assert_ptr_null(opened_fabric_of(second));
}
END_TEST

START_TEST(full_table)
{
	void *ops;

	ck_assert_int_eq(fi_control(&fabric->fid, FI_ALIAS, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_open_ops(&fabric->fid, "x", 0, &ops, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_set_ops(&fabric->fid, "x", 0, NULL, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fabric->fid.ops->bind(&fabric->fid, NULL, 0), -FI_ENOSYS);
	ck_assert_int_eq(fabric->fid.ops->tostr(&fabric->fid, NULL, 0), -FI_ENOSYS);
	ck_assert_int_eq(fi_trywait(fabric, NULL, 0), 0);
	ck_assert_int_eq(fi_trywait(fabric, NULL, 1), -FI_EINVAL);
}
END_TEST

static struct fid_pep *open_pep(struct sockaddr_in *addr)
{
	struct fi_ep_attr ep_attr = {.type = FI_EP_MSG};
	struct fi_info info = {.ep_attr = &ep_attr,
			       .addr_format = FI_SOCKADDR_IN,
			       .src_addr = addr,
			       .src_addrlen = addr ? sizeof(*addr) : 0};
	struct fid_pep *pep;

	ck_assert_int_eq(fi_passive_ep(fabric, &info, &pep, addr), 0);
	ck_assert_ptr_eq(pep->fid.context, addr);
	ck_assert_int_eq(fi_close(&fabric->fid), -FI_EBUSY);
	return pep;
}

/* fi_getname completes an address without a port. */
START_TEST(pep_names)
{
	struct sockaddr_in addr = {.sin_family = AF_INET}, got = {0};
	struct fid_pep *pep = open_pep(NULL);
	size_t len = sizeof(got);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(fi_getname(&pep->fid, &got, &len), 0);
	ck_assert_uint_eq(got.sin_family, AF_INET);
	ck_assert_uint_ne(got.sin_addr.s_addr, htonl(INADDR_ANY));
	ck_assert_uint_ne(got.sin_port, 0);
	ck_assert_int_eq(fi_close(&pep->fid), 0);
	pep = open_pep(NULL);
	ck_assert_int_eq(fi_setname(&pep->fid, &addr, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_setname(&pep->fid, &addr, sizeof(addr)), 0);
	ck_assert_int_eq(fi_getname(&pep->fid, &got, &len), 0);
	ck_assert_uint_eq(len, sizeof(got));
	ck_assert_uint_eq(got.sin_addr.s_addr, addr.sin_addr.s_addr);
	ck_assert_uint_ne(got.sin_port, 0);
	ck_assert_int_eq(fi_close(&pep->fid), 0);
	pep = open_pep(&addr);
	len = 0;
	ck_assert_int_eq(fi_getname(&pep->fid, NULL, &len), -FI_ETOOSMALL);
	ck_assert_uint_eq(len, sizeof(got));
	ck_assert_int_eq(fi_getname(&pep->fid, &got, &len), 0);
	ck_assert_int_eq(fi_close(&pep->fid), 0);
}
END_TEST

START_TEST(pep_options)
{
	struct fid_pep *pep = open_pep(NULL);
	size_t size = 0, len = 4;
	int backlog = 7;

	ck_assert_int_eq(fi_getopt(&pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &len),
			 -FI_ETOOSMALL);
	ck_assert_uint_eq(len, sizeof(size));
	ck_assert_int_eq(fi_getopt(&pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &len),
			 0);
	ck_assert_uint_ge(size, 56); /* the least private data of any connected transport */
	ck_assert_int_eq(fi_getopt(&pep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &size, &len),
			 -FI_ENOPROTOOPT);
	ck_assert_int_eq(fi_setopt(&pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, len),
			 -FI_ENOPROTOOPT);
	ck_assert_int_eq(fi_control(&pep->fid, FI_BACKLOG, &backlog), 0);
	ck_assert_int_eq(pep_of(pep)->backlog, 7);
	backlog = -1;
	ck_assert_int_eq(fi_control(&pep->fid, FI_BACKLOG, &backlog), -FI_EINVAL);
	ck_assert_int_eq(fi_control(&pep->fid, FI_BACKLOG, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_control(&pep->fid, FI_ENABLE, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_cancel(&pep->fid, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_close(&pep->fid), 0);
}
END_TEST

START_TEST(pep_events)
{
	struct fid_pep *pep = open_pep(NULL);
	struct fid_eq *eq;

	ck_assert_int_eq(fi_eq_open(fabric, NULL, &eq, NULL), 0);
	ck_assert_int_eq(fi_listen(pep), -FI_ENOEQ);
	ck_assert_int_eq(fi_pep_bind(pep, &fabric->fid, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_pep_bind(pep, &eq->fid, 1), -FI_EINVAL);
	ck_assert_int_eq(fi_pep_bind(pep, &eq->fid, 0), 0);
	ck_assert_int_eq(fi_pep_bind(pep, &eq->fid, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_close(&eq->fid), -FI_EBUSY);
	ck_assert_int_eq(fi_listen(pep), 0);
	ck_assert_int_eq(fi_reject(pep, NULL, NULL, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_close(&pep->fid), 0);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

/* An event queue of another fabric binds neither to a domain nor to an endpoint. */
START_TEST(other_fabric)
{
	struct fid_fabric *other;
	struct fid_domain *domain;
	struct fid_eq *eq, *far;
	struct fi_info *info;
	struct fid_ep *ep;

	ck_assert_int_eq(fi_getinfo(FI_VERSION(1, 9), NULL, NULL, 0, NULL, &info), 0);
	ck_assert_int_eq(fi_fabric(info->fabric_attr, &other, NULL), 0);
	ck_assert_int_eq(fi_domain(other, info, &domain, NULL), 0);
	ck_assert_int_eq(fi_endpoint(domain, info, &ep, NULL), 0);
	ck_assert_int_eq(fi_eq_open(other, NULL, &eq, NULL), 0);
	ck_assert_int_eq(fi_eq_open(fabric, NULL, &far, NULL), 0);
	ck_assert_int_eq(fi_domain_bind(domain, &far->fid, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_ep_bind(ep, &far->fid, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_close(&far->fid), 0);
	ck_assert_int_eq(fi_domain_bind(domain, &eq->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &eq->fid, 0), 0);
	ck_assert_int_eq(fi_close(&ep->fid), 0);
	ck_assert_int_eq(fi_close(&domain->fid), 0);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
	ck_assert_int_eq(fi_close(&other->fid), 0);
	fi_freeinfo(info);
}
END_TEST

START_TEST(pep_refused)
{
	struct fi_ep_attr ep_attr = {.type = FI_EP_RDM};
	struct fi_info info = {.ep_attr = &ep_attr};
	struct fid_pep *pep;

	ck_assert_int_eq(fi_passive_ep(fabric, NULL, &pep, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_passive_ep(fabric, &info, &pep, NULL), -FI_EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_fabric");
	TCase *tcase = tcase_create("fabric");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, refused);
	tcase_add_test(tcase, opened);
	tcase_add_test(tcase, full_table);
	tcase_add_test(tcase, pep_names);
	tcase_add_test(tcase, pep_options);
	tcase_add_test(tcase, pep_events);
	tcase_add_test(tcase, other_fabric);
	tcase_add_test(tcase, pep_refused);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
