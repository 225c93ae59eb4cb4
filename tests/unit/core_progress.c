/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that a domain has one progress thread, however many ask for it at once, and ends it. */
#include <dirent.h>
#include <pthread.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "suite.h"

#define ASK    4
#define ROUNDS 50

static struct fid_domain *domain;
static pthread_barrier_t together;

static int progress_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;

	ck_assert_ptr_nonnull(tasks);
	while ((entry = readdir(tasks))) {
		char path[300], name[16] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file))
			count += !strcmp(name, "weft-progress\n");
		fclose(file);
	}
	closedir(tasks);
	return count;
}

/* A thread that has been joined may be listed a moment longer. */
static void expect_threads(int count)
{
	for (int ms = 0; ms < 1000 && progress_threads() > count; ms++)
		usleep(1000);
	ck_assert_int_eq(progress_threads(), count);
}

/* A sleeper on a condition variable makes no progress, so such a queue asks for the thread. */
static void *open_queue(void *result)
{
	struct fi_cq_attr attr = {.wait_obj = FI_WAIT_MUTEX_COND, .format = FI_CQ_FORMAT_CONTEXT};

	pthread_barrier_wait(&together);
	ck_assert_int_eq(fi_cq_open(domain, &attr, result, NULL), 0);
	return NULL;
}

START_TEST(threads_that_ask_at_once)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;

	hints->fabric_attr->prov_name = strdup("shm");
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	ck_assert_int_eq(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(hints);
	ck_assert_int_eq(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	pthread_barrier_init(&together, NULL, ASK);
	for (int i = 0; i < ROUNDS; i++) {
		struct fid_cq *queues[ASK];
		pthread_t askers[ASK];

		ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
		expect_threads(0);
		for (int k = 0; k < ASK; k++)
			ck_assert_int_eq(pthread_create(&askers[k], NULL, open_queue, &queues[k]),
					 0);
		for (int k = 0; k < ASK; k++)
			pthread_join(askers[k], NULL);
		expect_threads(1);
		for (int k = 0; k < ASK; k++)
			ck_assert_int_eq(fi_close(&queues[k]->fid), 0);
		ck_assert_int_eq(fi_close(&domain->fid), 0);
	}
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_progress");
	TCase *starts = tcase_create("starts");

	tcase_add_test(starts, threads_that_ask_at_once);
	suite_add_tcase(suite, starts);
	return suite_run(suite);
}
