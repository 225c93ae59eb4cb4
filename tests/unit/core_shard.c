/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which objects of a domain have a lock of their own, and what puts them under one again. */
#include <rdma/fi_errno.h>
#include <rdma/fi_trigger.h>
#include <string.h>

#include "cntr/cntr.h"
#include "core/cq.h"
#include "core/ep.h"
#include "suite.h"

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct domain *dom;
static struct fid_av *av;

/* Opens a domain; `progress` is that of data and control. */
static void open_domain(enum fi_threading threading, enum fi_progress progress, uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr attr = {.type = FI_AV_UNSPEC};

	hints->fabric_attr->prov_name = strdup("shm");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = caps;
	hints->domain_attr->threading = threading;
	hints->domain_attr->data_progress = hints->domain_attr->control_progress = progress;
	ck_assert_int_eq(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(hints);
	ck_assert_int_eq(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
	ck_assert_int_eq(fi_av_open(domain, &attr, &av, NULL), 0);
	dom = domain_of(domain);
}

static void setup(void)
{
	open_domain(FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_MSG | FI_TAGGED | FI_TRIGGER);
}

static void teardown(void)
{
	ck_assert_int_eq(fi_close(&av->fid), 0);
	ck_assert_int_eq(fi_close(&domain->fid), 0);
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
}

static struct fid_cq *open_cq(void)
{
	struct fid_cq *cq;

	ck_assert_int_eq(fi_cq_open(domain, NULL, &cq, NULL), 0);
	return cq;
}

static struct fid_cntr *open_cntr(void)
{
	struct fid_cntr *cntr;

	ck_assert_int_eq(fi_cntr_open(domain, NULL, &cntr, NULL), 0);
	return cntr;
}

static struct fid_ep *open_ep(struct fid_cq *cq)
{
	struct fid_ep *ep;

	ck_assert_int_eq(fi_endpoint(domain, info, &ep, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	ck_assert_int_eq(fi_enable(ep), 0);
	return ep;
}

static void close_all(struct fid_ep *const *ep, struct fid_cq *const *cq, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ck_assert_int_eq(fi_close(&ep[i]->fid), 0);
	for (size_t i = 0; i < count; i++)
		ck_assert_int_eq(fi_close(&cq[i]->fid), 0);
}

static const struct shard *of_ep(struct fid_ep *ep)
{
	return ep_of(ep)->shard.shard;
}

static const struct shard *of_cq(struct fid_cq *cq)
{
	return cq_of(cq)->workers.shard.shard;
}

START_TEST(endpoints_with_queues_of_their_own)
{
	struct fid_cq *cq[] = {open_cq(), open_cq()};
	struct fid_ep *ep[2];

	ck_assert_ptr_eq(of_cq(cq[0]), dom->main_shard);
	for (int i = 0; i < 2; i++)
		ep[i] = open_ep(cq[i]);
	ck_assert_ptr_ne(of_ep(ep[0]), dom->main_shard);
	ck_assert_ptr_ne(of_ep(ep[0]), of_ep(ep[1]));
	for (int i = 0; i < 2; i++) {
		ck_assert_ptr_eq(of_ep(ep[i]), of_cq(cq[i]));
		ck_assert_uint_eq((uintptr_t)of_ep(ep[i]) % APART, 0);
		ck_assert_uint_eq((uintptr_t)ep[i] % APART, 0);
		ck_assert_uint_eq((uintptr_t)cq[i] % APART, 0);
	}
	close_all(ep, cq, 2);
}
END_TEST

START_TEST(endpoints_that_share_a_queue_or_counter)
{
	struct fid_cq *cq[] = {open_cq(), open_cq(), open_cq()};
	struct fid_cntr *cntr = open_cntr();
	struct fid_ep *ep[4] = {open_ep(cq[0]), open_ep(cq[1]), open_ep(cq[2]), open_ep(cq[0])};

	ck_assert_ptr_eq(of_ep(ep[3]), of_ep(ep[0]));
	ck_assert_ptr_ne(of_ep(ep[1]), of_ep(ep[0]));
	ck_assert_ptr_ne(of_ep(ep[1]), dom->main_shard);
	/* A counter that is bound late joins them. */
	ck_assert_int_eq(fi_ep_bind(ep[0], &cntr->fid, FI_SEND), 0);
	ck_assert_ptr_eq(cntr_of(cntr)->workers.shard.shard, of_ep(ep[0]));
	ck_assert_int_eq(fi_ep_bind(ep[1], &cntr->fid, FI_SEND), 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_ptr_eq(of_ep(ep[i]), of_ep(ep[3]));
		ck_assert_ptr_eq(of_cq(cq[i]), of_ep(ep[3]));
	}
	ck_assert_ptr_ne(of_ep(ep[2]), of_ep(ep[3]));
	ck_assert_int_eq(fi_close(&ep[3]->fid), 0);
	close_all(ep, cq, 3);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
}
END_TEST

START_TEST(an_alias_brings_its_endpoint_back)
{
	struct fid_cq *cq[] = {open_cq(), open_cq()};
	struct fid_ep *ep[] = {open_ep(cq[0]), open_ep(cq[1])}, *alias;

	ck_assert_int_eq(fi_ep_alias(ep[0], &alias, FI_TRANSMIT), 0);
	ck_assert_ptr_eq(of_ep(ep[0]), dom->main_shard);
	ck_assert_ptr_eq(of_cq(cq[0]), dom->main_shard);
	ck_assert_ptr_eq(of_ep(alias), dom->main_shard);
	ck_assert_ptr_ne(of_ep(ep[1]), dom->main_shard);
	ck_assert_int_eq(fi_close(&alias->fid), 0);
	close_all(ep, cq, 2);
}
END_TEST

START_TEST(deferred_work_unites_all)
{
	struct fid_cq *cq[] = {open_cq(), open_cq(), open_cq()};
	struct fid_ep *ep[3] = {open_ep(cq[0]), open_ep(cq[1])};
	struct fid_cntr *cntr = open_cntr();
	struct fi_op_cntr op = {.cntr = cntr, .value = 1};
	struct fi_deferred_work work = {
		.threshold = 1, .triggering_cntr = cntr, .op_type = FI_OP_CNTR_ADD, .op.cntr = &op};

	ck_assert_int_eq(fi_control(&domain->fid, FI_QUEUE_WORK, &work), 0);
	ep[2] = open_ep(cq[2]);
	for (int i = 0; i < 3; i++) {
		ck_assert_ptr_eq(of_ep(ep[i]), dom->main_shard);
		ck_assert_ptr_eq(of_cq(cq[i]), dom->main_shard);
	}
	ck_assert_int_eq(fi_control(&domain->fid, FI_CANCEL_WORK, &work), 0);
	close_all(ep, cq, 3);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
}
END_TEST

/* A triggered send without queued work before it: the call itself has to unite the domain. */
START_TEST(a_triggered_send_unites_all)
{
	struct fid_cq *cq[] = {open_cq(), open_cq()};
	struct fid_ep *ep[] = {open_ep(cq[0]), open_ep(cq[1])};
	struct fid_cntr *cntr = open_cntr();
	struct fi_triggered_context context = {.event_type = FI_TRIGGER_THRESHOLD,
					       .trigger.threshold = {.cntr = cntr, .threshold = 1}};
	struct fi_msg msg = {.context = &context};
	char name[128];
	size_t len = sizeof(name);

	ck_assert_int_eq(fi_getname(&ep[1]->fid, name, &len), 0);
	ck_assert_int_eq(fi_av_insert(av, name, 1, &msg.addr, 0, NULL), 1);
	ck_assert_int_eq(fi_sendmsg(ep[0], &msg, FI_TRIGGER), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_ptr_eq(of_ep(ep[i]), dom->main_shard);
	close_all(ep, cq, 2);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
}
END_TEST

START_TEST(more_endpoints_than_shards)
{
	enum { COUNT = SHARDS_MAX + 2 };
	struct fid_cq *cq[COUNT];
	struct fid_ep *ep[COUNT];

	for (int i = 0; i < COUNT; i++)
		ep[i] = open_ep(cq[i] = open_cq());
	ck_assert_ptr_ne(of_ep(ep[SHARDS_MAX - 2]), dom->main_shard);
	ck_assert_ptr_eq(of_ep(ep[COUNT - 1]), dom->main_shard);
	close_all(ep, cq, COUNT);
	/* Shards of closed endpoints are used again. */
	ep[0] = open_ep(cq[0] = open_cq());
	ck_assert_ptr_ne(of_ep(ep[0]), dom->main_shard);
	close_all(ep, cq, 1);
}
END_TEST

static void stays_in_main(enum fi_threading threading, enum fi_progress progress, uint64_t caps)
{
	struct fid_cq *cq;
	struct fid_ep *ep;

	open_domain(threading, progress, caps);
	ep = open_ep(cq = open_cq());
	ck_assert_ptr_eq(of_ep(ep), dom->main_shard);
	close_all(&ep, &cq, 1);
	teardown();
}

START_TEST(one_thread_progress_thread_collectives)
{
	stays_in_main(FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL, FI_MSG);
	stays_in_main(FI_THREAD_SAFE, FI_PROGRESS_AUTO, FI_MSG);
	stays_in_main(FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_MSG | FI_COLLECTIVE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_shard");
	TCase *opened = tcase_create("opened"), *others = tcase_create("others");

	tcase_add_checked_fixture(opened, setup, teardown);
	tcase_add_test(opened, endpoints_with_queues_of_their_own);
	tcase_add_test(opened, endpoints_that_share_a_queue_or_counter);
	tcase_add_test(opened, an_alias_brings_its_endpoint_back);
	tcase_add_test(opened, deferred_work_unites_all);
	tcase_add_test(opened, a_triggered_send_unites_all);
	tcase_add_test(opened, more_endpoints_than_shards);
	tcase_add_test(others, one_thread_progress_thread_collectives);
	suite_add_tcase(suite, opened);
	suite_add_tcase(suite, others);
	return suite_run(suite);
}
