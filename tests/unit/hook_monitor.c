/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a monitored process leaves the files of others alone, which may have its pid elsewhere, and writes nothing where
 * others can read or have been first: what they have made in the place of its folder is refused.
 */
#include "hook/layers.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hook/tally_page.h"
#include "suite.h"

#define OTHER_BYTES 65536
#define OTHER_USER  65534

static char folder[64], path[128];

/* A file of another process, full of ones. */
static unsigned char *map_other(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	void *other;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, OTHER_BYTES), 0);
	other = mmap(NULL, OTHER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(other, MAP_FAILED);
	memset(other, 1, OTHER_BYTES);
	close(fd);
	return other;
}

static void setup(void)
{
	strcpy(folder, "/tmp/hook_monitor.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	setenv("FI_OFI_HOOK_MONITOR_BASEPATH", folder, 1);
}

static void teardown(void)
{
	unlink(path);
	rmdir(folder);
}

static void name_of(pid_t pid)
{
	snprintf(path, sizeof(path), "%s/%d", folder, (int)pid);
}

static uint64_t magic_in_file(void)
{
	int fd = open(path, O_RDONLY);
	struct tally_page page = {0};

	ck_assert_int_eq(read(fd, &page, sizeof(page)), sizeof(page));
	close(fd);
	return page.magic;
}

START_TEST(same_pid)
{
	unsigned char *other;

	name_of(getpid());
	other = map_other(path);
	monitor_start();
	ck_assert_uint_eq(magic_in_file(), TALLY_MAGIC);
	for (int i = 0; i < OTHER_BYTES; i++)
		ck_assert_uint_eq(other[i], 1);
}
END_TEST

/* Monitors a process, gives its name to the file `other`, unless that is NULL, and ends. */
static void monitored(const char *other)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		name_of(getpid());
		monitor_start();
		if (access(path, R_OK) || (other && rename(other, path)))
			_exit(2);
		exit(0);
	}
	name_of(pid);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

START_TEST(removes_its_own)
{
	monitored(NULL);
	ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(leaves_others)
{
	char other[128];

	snprintf(other, sizeof(other), "%s/other", folder);
	map_other(other);
	monitored(other);
	ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

static void let_all_write(void)
{
	ck_assert_int_eq(chmod(folder, 0777), 0);
}

static void let_group_read(void)
{
	ck_assert_int_eq(chmod(folder, 0740), 0);
}

static void give_away(void)
{
	ck_assert_int_eq(chown(folder, geteuid() ? geteuid() : OTHER_USER, (gid_t)-1), 0);
	if (geteuid())
		let_all_write();
}

/* A good folder, behind a link that another user may have made. */
static void link_to_good(void)
{
	snprintf(path, sizeof(path), "%s.link", folder);
	ck_assert_int_eq(symlink(folder, path), 0);
	strcat(path, "/"); /* which the kernel would follow */
	setenv("FI_OFI_HOOK_MONITOR_BASEPATH", path, 1);
	path[strlen(path) - 1] = '\0';
}

static void make_file(void)
{
	ck_assert_int_eq(rmdir(folder), 0);
	snprintf(path, sizeof(path), "%s", folder);
	close(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
}

static void make_pipe(void)
{
	ck_assert_int_eq(rmdir(folder), 0);
	snprintf(path, sizeof(path), "%s", folder);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
}

static void (*const squats[])(void) = {let_all_write, let_group_read, give_away,
				       link_to_good,  make_file,      make_pipe};

START_TEST(squatted)
{
	char own[128];

	snprintf(own, sizeof(own), "%s/%d", folder, (int)getpid());
	squats[_i]();
	monitor_start();
	ck_assert_int_ne(access(own, F_OK), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hook_monitor");
	TCase *tcase = tcase_create("files");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, same_pid);
	tcase_add_test(tcase, removes_its_own);
	tcase_add_test(tcase, leaves_others);
	tcase_add_loop_test(tcase, squatted, 0, (int)(sizeof(squats) / sizeof(squats[0])));
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
