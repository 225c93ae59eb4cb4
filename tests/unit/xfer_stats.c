/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that FI_WEFT_STATS and FI_WEFT_STATS_SIGNAL neither stop nor end a program, whatever the
 * file, standard error and the signal are: each test runs a program of its own in a child.
 */
#include <fcntl.h>
#include <pthread.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/ep.h"
#include "suite.h"
#include "xfer/worker.h"

#define LIMIT 20   /* seconds a program may take */
#define POLLS 5000 /* reads of a queue, more than lie between two looks for a signal */

static char folder[32], file[64], errors[64];
static char text[65536]; /* of a file */

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;

static void must(int ret)
{
	if (ret)
		_exit(99);
}

static void find(enum fi_threading threading)
{
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup("shm");
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = threading;
	hints->domain_attr->data_progress = hints->domain_attr->control_progress =
		FI_PROGRESS_MANUAL;
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
}

/* Opens an endpoint that knows itself, so that it has a peer. */
static void open_endpoint(enum fi_threading threading)
{
	struct fi_cq_attr cq_attr = {.wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	char name[256], byte = 1;
	size_t len = sizeof(name);
	fi_addr_t self;

	find(threading);
	must(fi_fabric(info->fabric_attr, &fabric, NULL));
	must(fi_domain(fabric, info, &domain, NULL));
	must(fi_av_open(domain, &av_attr, &av, NULL));
	must(fi_cq_open(domain, &cq_attr, &cq, NULL));
	must(fi_endpoint(domain, info, &ep, NULL));
	must(fi_ep_bind(ep, &av->fid, 0));
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	must(fi_enable(ep));
	must(fi_getname(&ep->fid, name, &len));
	must(fi_av_insert(av, name, 1, &self, 0, NULL) != 1);
	must((int)fi_inject(ep, &byte, sizeof(byte), self));
}

/* Sends ourselves the signal, and makes the calls that report. */
static void ask(void)
{
	must(raise(SIGUSR2));
	for (int i = 0; i < POLLS; i++)
		fi_cq_read(cq, NULL, 0);
}

/* Runs `program` in a child with that FI_WEFT_STATS; its standard error is in a file. Returns its status. */
static int run(void (*program)(void), const char *stats)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		int fd = open(errors, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

		alarm(LIMIT);
		dup2(fd, STDERR_FILENO);
		setenv("FI_LOG_LEVEL", "warn", 1);
		setenv("FI_WEFT_STATS", stats, 1);
		setenv("FI_WEFT_STATS_SIGNAL", "USR2", 1);
		program();
		exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static const char *content(const char *name)
{
	int fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[len > 0 ? len : 0] = '\0';
	return text;
}

static void setup(void)
{
	strcpy(folder, "/tmp/xfer-stats-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/report", folder);
	snprintf(errors, sizeof(errors), "%s/errors", folder);
}

static void teardown(void)
{
	unlink(file);
	unlink(errors);
	rmdir(folder);
}

static void open_and_close(void)
{
	open_endpoint(FI_THREAD_SAFE);
	must(fi_close(&ep->fid));
}

START_TEST(own_file)
{
	struct stat st;

	umask(0);
	ck_assert_int_eq(run(open_and_close, file), 0);
	ck_assert_ptr_nonnull(strstr(content(file), "\n  peer "));
	ck_assert_int_eq(stat(file, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_str_eq(content(errors), "");
}
END_TEST

START_TEST(fifo)
{
	ck_assert_int_eq(mkfifo(file, 0600), 0);
	ck_assert_int_eq(run(open_and_close, file), 0);
	ck_assert_ptr_nonnull(strstr(content(errors), file));
}
END_TEST

START_TEST(device)
{
	ck_assert_int_eq(run(open_and_close, "/dev/full"), 0);
	ck_assert_ptr_nonnull(strstr(content(errors), "FI_WEFT_STATS=/dev/full"));
}
END_TEST

START_TEST(empty)
{
	ck_assert_int_eq(run(open_and_close, ""), 0);
	ck_assert_str_eq(content(errors), "");
}
END_TEST

/* The file may not grow. */
static void close_full(void)
{
	struct rlimit none = {0, RLIM_INFINITY};

	open_endpoint(FI_THREAD_SAFE);
	must(setrlimit(RLIMIT_FSIZE, &none));
	must(fi_close(&ep->fid));
}

START_TEST(lost)
{
	struct stat st;
	int ends[2];

	/* The log goes to a pipe, which has no limit. */
	ck_assert_int_eq(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	snprintf(errors, sizeof(errors), "/proc/self/fd/%d", ends[1]);
	ck_assert_int_eq(run(close_full, file), 0);
	memset(text, 0, sizeof(text));
	ck_assert_int_gt(read(ends[0], text, sizeof(text) - 1), 0);
	ck_assert_ptr_nonnull(strstr(text, "File too large"));
	ck_assert_ptr_nonnull(strstr(text, file));
	ck_assert_int_eq(stat(file, &st), 0);
	ck_assert_int_eq(st.st_size, 0);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

/* Nobody reads standard error. */
static void report_unread(void)
{
	int ends[2];

	signal(SIGPIPE, SIG_DFL);
	open_endpoint(FI_THREAD_SAFE);
	must(pipe2(ends, O_CLOEXEC));
	must(dup2(ends[1], STDERR_FILENO) < 0);
	close(ends[0]);
	ask();
}

START_TEST(unread)
{
	ck_assert_int_eq(run(report_unread, ""), 0);
}
END_TEST

static void exit_open(void)
{
	open_endpoint(FI_THREAD_SAFE);
}

static void exit_open_domain(void)
{
	open_endpoint(FI_THREAD_DOMAIN);
}

/* Without a lock that keeps others out, lists are not walked at exit. */
START_TEST(at_exit)
{
	ck_assert_int_eq(run(exit_open, file), 0);
	ck_assert_ptr_nonnull(strstr(content(file), "\n  peer "));
	unlink(file);
	ck_assert_int_eq(run(exit_open_domain, file), 0);
	ck_assert_int_eq(strncmp(content(file), "endpoint ", 9), 0);
	ck_assert_ptr_null(strstr(text, "\n  peer "));
}
END_TEST

static bool signals_late;

static void exit_late(void)
{
	signals_late = true;
	open_endpoint(FI_THREAD_SAFE);
	ask();
}

/* Runs after the destructors of the library. */
static __attribute__((destructor(101))) void signal_late(void)
{
	if (signals_late)
		must(raise(SIGUSR2));
}

START_TEST(late_signal)
{
	ck_assert_int_eq(run(exit_late, file), 0);
	ck_assert_ptr_nonnull(strstr(content(file), "endpoint "));
}
END_TEST

/* A child leaves the report to its parent. */
static void exit_in_child(void)
{
	int status = -1;
	pid_t pid;

	open_endpoint(FI_THREAD_SAFE);
	pid = fork();
	if (pid == 0)
		exit(0);
	waitpid(pid, &status, 0);
	must(status);
	must(!access(file, F_OK));
}

START_TEST(parents)
{
	ck_assert_int_eq(run(exit_in_child, file), 0);
	ck_assert_int_eq(strncmp(content(file), "endpoint ", 9), 0);
	ck_assert_ptr_null(strstr(text + 1, "endpoint "));
}
END_TEST

static pthread_t forker;
static bool forks_late;

static void *fork_and_open(void *exiting)
{
	int status = -1;
	pid_t pid;

	sem_wait(exiting);
	usleep(30000); /* into the wait for the lock of the shard, where forking has gone wrong */
	pid = fork();
	if (pid == 0) {
		alarm(LIMIT / 2);
		open_endpoint(FI_THREAD_SAFE);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	must(status);
	return NULL;
}

static sem_t exiting;

static void say_exiting(void)
{
	sem_post(&exiting);
}

/* The report at exit waits in vain for a lock while another thread forks. */
static void fork_at_exit(void)
{
	forks_late = true;
	open_endpoint(FI_THREAD_SAFE);
	must(sem_init(&exiting, 0, 0));
	must(pthread_create(&forker, NULL, fork_and_open, &exiting));
	must(atexit(say_exiting));
	shard_take(&worker_driven(((struct ep *)ep)->worker)->shard);
}

/* Runs after the destructors of the library, which is linked behind this file. */
static __attribute__((destructor)) void await_forker(void)
{
	if (forks_late)
		must(pthread_join(forker, NULL));
}

START_TEST(forked)
{
	ck_assert_int_eq(run(fork_at_exit, file), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_stats");
	TCase *tcase = tcase_create("stats");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, LIMIT * 2);
	tcase_add_test(tcase, own_file);
	tcase_add_test(tcase, fifo);
	tcase_add_test(tcase, device);
	tcase_add_test(tcase, empty);
	tcase_add_test(tcase, lost);
	tcase_add_test(tcase, unread);
	tcase_add_test(tcase, at_exit);
	tcase_add_test(tcase, late_signal);
	tcase_add_test(tcase, parents);
	tcase_add_test(tcase, forked);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
