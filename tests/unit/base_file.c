/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that exceeding the limit on file sizes is an error of the call, without a SIGXFSZ. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "suite.h"

#define LIMIT 100 /* bytes of a file */

static int fd;
static sigset_t before;

static void limit_to(rlim_t bytes)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
}

/* Resizes under the limit, which is set for this call alone: check writes files too. */
static int resize(off_t len)
{
	int ret;

	limit_to(LIMIT);
	ret = file_resize(fd, len) ? errno : 0;
	limit_to(RLIM_INFINITY);
	return ret;
}

/* Writes under the limit. Returns the number of bytes written, or a negative error. */
static ssize_t put(int to, const void *buf, size_t len)
{
	ssize_t ret;

	limit_to(LIMIT);
	ret = file_write(to, buf, len);
	if (ret < 0)
		ret = -errno;
	limit_to(RLIM_INFINITY);
	return ret;
}

static void setup(void)
{
	signal(SIGXFSZ, SIG_DFL);
	fd = memfd_create("test", MFD_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	pthread_sigmask(SIG_BLOCK, NULL, &before);
}

/* Checks that the thread's signal mask is unchanged. */
static void teardown(void)
{
	sigset_t after;

	pthread_sigmask(SIG_BLOCK, NULL, &after);
	for (int sig = 1; sig < NSIG; sig++)
		ck_assert_int_eq(sigismember(&after, sig), sigismember(&before, sig));
	close(fd);
}

static bool pending(void)
{
	sigset_t set;

	sigpending(&set);
	return sigismember(&set, SIGXFSZ);
}

START_TEST(resized)
{
	struct stat st;

	ck_assert_int_eq(resize(LIMIT), 0);
	ck_assert_int_eq(resize(LIMIT + 1), EFBIG);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(st.st_size, LIMIT);
}
END_TEST

START_TEST(written)
{
	char bytes[LIMIT + 20] = {1};

	ck_assert_int_eq(put(fd, bytes, sizeof(bytes)), LIMIT);
	ck_assert_int_eq(put(fd, bytes, 1), -EFBIG);
	ck_assert_int_eq(put(-1, bytes, 1), -EBADF);
	ck_assert(!pending());
}
END_TEST

/* A pending SIGXFSZ of the application stays pending, and none is added where none was. */
START_TEST(blocked)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	ck_assert_int_eq(resize(LIMIT + 1), EFBIG);
	ck_assert(!pending());
	raise(SIGXFSZ);
	ck_assert_int_eq(resize(LIMIT + 1), EFBIG);
	ck_assert(pending());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_file");
	TCase *tcase = tcase_create("file");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, resized);
	tcase_add_test(tcase, written);
	tcase_add_test(tcase, blocked);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
