/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves whose file a trace is, and that threads of all kinds can write to it. */
#include <fcntl.h>
#include <pthread.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hook/hook.h"
#include "hook/layers.h"
#include "suite.h"

static char folder[64], path[128], content[65536];

/* ---- Objects of a provider that does nothing -------------------------------------------------- */

static int no_close(struct fid *fid)
{
	(void)fid;
	return 0;
}

static int no_add(struct fid_cntr *cntr, uint64_t value)
{
	(void)cntr;
	(void)value;
	return 0;
}

static int open_nothing(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
			void *context)
{
	(void)fabric;
	(void)info;
	(void)domain;
	(void)context;
	return -FI_ENODEV;
}

static struct fi_ops fid_ops = {.size = sizeof(struct fi_ops), .close = no_close};
static struct fi_ops_cntr cntr_ops = {.size = sizeof(struct fi_ops_cntr), .add = no_add};
static struct fi_ops_fabric fabric_ops = {.size = sizeof(struct fi_ops_fabric),
					  .domain = open_nothing};
static struct fid_cntr cntr;
static struct fid_fabric fabric;

static void setup(void)
{
	char name[96];

	strcpy(folder, "/tmp/hook_trace_file.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(name, sizeof(name), "%s/t", folder);
	snprintf(path, sizeof(path), "%s.%d.json", name, (int)getpid());
	setenv("FI_HOOK", "trace", 1);
	setenv("FI_WEFT_TRACE_FILE", name, 1);
	cntr = (struct fid_cntr){.fid = {FI_CLASS_CNTR, NULL, &fid_ops}, .ops = &cntr_ops};
	fabric = (struct fid_fabric){.fid = {FI_CLASS_FABRIC, NULL, &fid_ops}, .ops = &fabric_ops};
	hook_fabric(&fabric);
	hook_object(&cntr.fid);
}

static void teardown(void)
{
	unlink(path);
	rmdir(folder);
}

static const char *read_file(const char *name)
{
	int fd = open(name, O_RDONLY | O_NONBLOCK);
	ssize_t len = read(fd, content, sizeof(content) - 1);

	close(fd);
	ck_assert_int_ge(len, 0);
	content[len] = '\0';
	return content;
}

static void write_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0666);

	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	fchmod(fd, 0666);
	close(fd);
}

/* ---- Whose file it is ------------------------------------------------------------------------- */

static void ck_assert_own_file(void)
{
	struct stat is;

	ck_assert_int_eq(lstat(path, &is), 0);
	ck_assert(S_ISREG(is.st_mode));
	ck_assert_uint_eq(is.st_mode & 0777, 0600);
	ck_assert_ptr_nonnull(strstr(read_file(path), "\"name\":\"fi_cntr_add\""));
}

/* Who has the pipe open would read all; if nobody has, an open waits for ever. */
START_TEST(over_a_pipe)
{
	ck_assert_int_eq(mkfifo(path, 0666), 0);
	ck_assert_int_eq(cntr.ops->add(&cntr, 1), 0);
	ck_assert_own_file();
}
END_TEST

START_TEST(over_a_file)
{
	char other[128];

	snprintf(other, sizeof(other), "%s/other", folder);
	write_file(path, "before");
	ck_assert_int_eq(link(path, other), 0);
	ck_assert_int_eq(cntr.ops->add(&cntr, 1), 0);
	ck_assert_own_file();
	ck_assert_str_eq(read_file(other), "before");
	unlink(other);
}
END_TEST

/* Links for whatever process: to another file, and to one that another user would like to be made. */
START_TEST(over_a_link)
{
	char other[128];

	snprintf(other, sizeof(other), "%s/other", folder);
	if (_i)
		write_file(other, "before");
	ck_assert_int_eq(symlink(other, path), 0);
	ck_assert_int_eq(cntr.ops->add(&cntr, 1), 0);
	ck_assert_own_file();
	if (_i)
		ck_assert_str_eq(read_file(other), "before");
	ck_assert_int_eq(unlink(other), _i ? 0 : -1);
}
END_TEST

/* What cannot be removed leaves the program without a trace. */
START_TEST(over_a_folder)
{
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(cntr.ops->add(&cntr, 1), 0);
	ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

/* ---- Threads ---------------------------------------------------------------------------------- */

static void *adds(void *forever)
{
	do {
		cntr.ops->add(&cntr, 1);
		pthread_testcancel();
	} while (forever);
	return NULL;
}

/* A thread that is cancelled leaves the file to others. */
START_TEST(cancelled)
{
	void *result;

	for (int i = 0; i < 20; i++) {
		pthread_t thread;

		ck_assert_int_eq(pthread_create(&thread, NULL, adds, &cntr), 0);
		usleep(1000);
		pthread_cancel(thread);
		ck_assert_int_eq(pthread_join(thread, &result), 0);
		ck_assert_ptr_eq(result, PTHREAD_CANCELED);
		cntr.ops->add(&cntr, 2);
	}
}
END_TEST

static void *opens(void *info)
{
	struct fid_domain *domain;

	fabric.ops->domain(&fabric, info, &domain, NULL);
	return NULL;
}

/* Has no room for a value of some thousand characters (bytes); sanitizers make each frame larger. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHORT_STACK 131072
#else
#define SHORT_STACK 20480
#endif

/* A long value does not go through the caller's stack. */
START_TEST(short_stack)
{
	struct fi_info *info = fi_dupinfo(NULL);
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	ck_assert_int_eq(pthread_attr_setstacksize(&attr, SHORT_STACK), 0);
	ck_assert_int_eq(pthread_create(&thread, &attr, opens, info), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_ptr_nonnull(strstr(read_file(path), "\"info\":\"fi_info: "));
	pthread_attr_destroy(&attr);
	fi_freeinfo(info);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hook_trace_file");
	TCase *tcase = tcase_create("trace_file");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, over_a_pipe);
	tcase_add_test(tcase, over_a_file);
	tcase_add_loop_test(tcase, over_a_link, 0, 2);
	tcase_add_test(tcase, over_a_folder);
	tcase_add_test(tcase, cancelled);
	tcase_add_test(tcase, short_stack);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
