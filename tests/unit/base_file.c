/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that exceeding the limit on file sizes, and writing where nobody reads, are errors of the
 * call without a signal; and what file_open_own opens.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
	return sigismember(&set, SIGXFSZ) || sigismember(&set, SIGPIPE);
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

/* Nobody reads: an error of the call, and no SIGPIPE. */
START_TEST(unread)
{
	int ends[2];

	signal(SIGPIPE, SIG_DFL);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	close(ends[0]);
	ck_assert_int_eq(put(ends[1], "1", 1), -EPIPE);
	ck_assert_int_eq(file_write_all(ends[1], "1", 1), -EPIPE);
	ck_assert(!pending());
	close(ends[1]);
}
END_TEST

static char folder[32], path[64], other[64];

static void make_folder(void)
{
	strcpy(folder, "/tmp/base-file-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
}

static void remove_folder(void)
{
	unlink(path);
	unlink(other);
	rmdir(folder);
}

static void make_other(void)
{
	int of = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_eq(write(of, "1234", 4), 4);
	close(of);
}

static off_t length_of(const char *name)
{
	struct stat st;

	ck_assert_int_eq(stat(name, &st), 0);
	return st.st_size;
}

/* Made for this user alone, kept or emptied as asked for. */
START_TEST(own)
{
	struct stat st;
	int of;

	umask(0);
	of = file_open_own(path, O_WRONLY | O_APPEND);
	ck_assert_int_ge(of, 0);
	ck_assert_int_eq(fstat(of, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(file_write(of, "12", 2), 2);
	close(of);
	close(file_open_own(path, O_WRONLY | O_APPEND));
	ck_assert_int_eq(length_of(path), 2);
	close(file_open_own(path, O_WRONLY | O_TRUNC));
	ck_assert_int_eq(length_of(path), 0);
}
END_TEST

/* What another user may have put there is refused, and stays as it is. */
START_TEST(not_own)
{
	ck_assert_int_eq(file_open_own("/dev/full", O_WRONLY), -EPERM);
	ck_assert_int_eq(file_open_own(folder, O_WRONLY), -EISDIR);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(file_open_own(path, O_WRONLY), -ENXIO);
	ck_assert_int_eq(file_open_own(path, O_RDWR), -EPERM);
	unlink(path);
	make_other();
	ck_assert_int_eq(symlink(other, path), 0);
	ck_assert_int_eq(file_open_own(path, O_WRONLY | O_TRUNC), -ELOOP);
	unlink(path);
	ck_assert_int_eq(link(other, path), 0);
	ck_assert_int_eq(file_open_own(path, O_WRONLY | O_TRUNC), -EPERM);
	ck_assert_int_eq(length_of(other), 4);
}
END_TEST

/* A file of another user: only root can make one. */
START_TEST(of_another)
{
	if (geteuid())
		return;
	make_other();
	ck_assert_int_eq(chown(other, 65534, 65534), 0);
	ck_assert_int_eq(file_open_own(other, O_WRONLY | O_TRUNC), -EPERM);
	ck_assert_int_eq(length_of(other), 4);
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
	tcase_add_test(tcase, unread);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("own");
	tcase_add_checked_fixture(tcase, make_folder, remove_folder);
	tcase_add_test(tcase, own);
	tcase_add_test(tcase, not_own);
	tcase_add_test(tcase, of_another);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
