/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A forked child may close its copies of the parent's objects, in any order: that does nothing, to
 * them or to what the kernel holds for both.
 */
#include <poll.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_wait *set;
static struct fid_eq *eq;
static struct fid_cntr *cntr;
static struct fid_poll *members;
static struct fid_stx *stx;

static void setup(void)
{
	struct fi_wait_attr wait_attr = {.wait_obj = FI_WAIT_FD};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_SET, .flags = FI_WRITE};
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup("shm");
	ck_assert_int_eq(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(hints);
	ck_assert_int_eq(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	ck_assert_int_eq(fi_wait_open(fabric, &wait_attr, &set), 0);
	eq_attr.wait_set = set;
	ck_assert_int_eq(fi_eq_open(fabric, &eq_attr, &eq, NULL), 0);
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
	ck_assert_int_eq(fi_cntr_open(domain, NULL, &cntr, NULL), 0);
	ck_assert_int_eq(fi_poll_open(domain, NULL, &members), 0);
	ck_assert_int_eq(fi_poll_add(members, &cntr->fid, 0), 0);
	ck_assert_int_eq(fi_stx_context(domain, NULL, &stx, NULL), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(fi_poll_del(members, &cntr->fid, 0), 0);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
	ck_assert_int_eq(fi_close(&members->fid), 0);
	ck_assert_int_eq(fi_close(&stx->fid), 0);
	ck_assert_int_eq(fi_close(&domain->fid), 0);
	ck_assert_int_eq(fi_close(&set->fid), -FI_EBUSY);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
}

/* The child's: each close succeeds, though other objects use most of these. */
static int close_all(void)
{
	struct fid *const all[] = {&fabric->fid,  &set->fid, &eq->fid,   &domain->fid,
				   &members->fid, &stx->fid, &cntr->fid, &eq->fid};
	int failed = 0;

	for (unsigned int i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		failed += fi_close(all[i]) != 0;
	return failed;
}

/* What the child opens itself is closed as ever. */
static int open_own(void)
{
	struct fid_fabric *own;
	struct fid_eq *own_eq;

	if (fi_fabric(info->fabric_attr, &own, NULL) || fi_eq_open(own, NULL, &own_eq, NULL))
		return 1;
	return fi_close(&own->fid) != -FI_EBUSY || fi_close(&own_eq->fid) || fi_close(&own->fid);
}

START_TEST(child_closes)
{
	uint32_t word = 1, event;
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(close_all() + 16 * open_own());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	/* The queue still wakes the set. */
	ck_assert_int_eq(fi_eq_write(eq, FI_NOTIFY, &word, sizeof(word), 0), sizeof(word));
	ck_assert_int_eq(fi_wait(set, 1000), 0);
	ck_assert_int_eq(fi_eq_read(eq, &event, &word, sizeof(word), 0), sizeof(word));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_forked");
	TCase *all = tcase_create("forked");

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, child_closes);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
