/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that whatever lies where libraries of providers are looked for neither holds up nor ends the process, and that none is
 * loaded which all users may have put there: pipes, sockets, devices, folders, links, cut-off files, files of other users.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "info/external.h"
#include "suite.h"

#define OTHER_USER 65534
#define STEP       61 /* bytes between two lengths of a cut-off file */

static char folder[] = "/tmp/external_check_XXXXXX", library[256];
static char path[64], elsewhere[64];
static char bytes[1 << 20]; /* of a good library */
static size_t len;

static void copy_to(const char *name, size_t count, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_eq(write(fd, bytes, count), (ssize_t)count);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

/* A small library that is on each system. */
static void find_library(void)
{
	void *handle = dlopen("libdl.so.2", RTLD_NOW);
	struct link_map *map;
	FILE *file;

	ck_assert_ptr_nonnull(handle);
	ck_assert_int_eq(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
	snprintf(library, sizeof(library), "%s", map->l_name);
	file = fopen(library, "re");
	ck_assert_ptr_nonnull(file);
	len = fread(bytes, 1, sizeof(bytes), file);
	ck_assert_uint_lt(len, sizeof(bytes));
	fclose(file);
}

static void setup(void)
{
	find_library();
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/lib-fi.so", folder);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", folder);
}

static void teardown(void)
{
	if (rmdir(path))
		unlink(path);
	unlink(elsewhere);
	rmdir(folder);
}

static void refused(const char *why)
{
	const char *got = external_check(path);

	ck_assert_ptr_nonnull(got);
	ck_assert_str_eq(got, why);
}

/* The library asks all that is in the folder for providers, and ends with none. */
static void passed_by(void)
{
	size_t count = 1;

	setenv("FI_PROVIDER_PATH", folder, 1);
	external_all(&count);
	ck_assert_uint_eq(count, 0);
}

static void make_pipe(void)
{
	ck_assert_int_eq(mkfifo(path, 0600), 0);
}

static void make_folder(void)
{
	ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void make_socket(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	strcpy(un.sun_path, path);
	ck_assert_int_eq(bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&un, sizeof(un)),
			 0);
}

static void link_to_device(void)
{
	ck_assert_int_eq(symlink("/dev/zero", path), 0);
}

static void link_to_pipe(void)
{
	ck_assert_int_eq(mkfifo(elsewhere, 0600), 0);
	ck_assert_int_eq(symlink(elsewhere, path), 0);
}

static void (*const no_files[])(void) = {make_pipe, make_folder, make_socket, link_to_device,
					 link_to_pipe};

START_TEST(no_file)
{
	no_files[_i]();
	refused("not a regular file");
	passed_by();
}
END_TEST

static void link_to_nothing(void)
{
	ck_assert_int_eq(symlink("nothing", path), 0);
}

static void link_to_itself(void)
{
	ck_assert_int_eq(symlink(path, path), 0);
}

static void make_empty(void)
{
	copy_to(path, 0, 0600);
}

static void make_text(void)
{
	memset(bytes, 'x', len);
	copy_to(path, len, 0600);
}

static void make_unreadable(void)
{
	copy_to(path, len, 0);
	ck_assert(geteuid() || seteuid(OTHER_USER) == 0);
}

static void (*const no_libraries[])(void) = {link_to_nothing, link_to_itself, make_empty, make_text,
					     make_unreadable};

/* What the dynamic linker refuses by itself. */
START_TEST(no_library)
{
	ck_assert_int_eq(chmod(folder, 0711), 0);
	no_libraries[_i]();
	ck_assert_ptr_null(external_check(path));
	passed_by();
	ck_assert_int_eq(seteuid(getuid()), 0);
}
END_TEST

/* Each is refused, or read without a signal. */
START_TEST(cut_off)
{
	for (size_t count = 0; count < len; count += STEP) {
		void *handle;

		copy_to(path, count, 0600);
		handle = external_check(path) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (handle)
			dlclose(handle);
	}
	copy_to(path, len / 2, 0600);
	refused("the file is cut off");
}
END_TEST

#define ANYBODY "all users can write it, or put something else in its place"

/* The modes and owners of a folder and a file in it. */
static const struct {
	mode_t folder, file;
	bool other_users; /* is the file */
	const char *why;
} modes[] = {
	{0755, 0755, false, NULL},    {0755, 0644, true, NULL},      {0775, 0664, false, NULL},
	{01777, 0644, false, NULL},   {01777, 0644, true, ANYBODY},  {0777, 0644, false, ANYBODY},
	{0755, 0666, false, ANYBODY}, {01777, 0646, false, ANYBODY},
};

static void may_load(const char *why)
{
	if (why)
		refused(why);
	else
		ck_assert_ptr_null(external_check(path));
}

START_TEST(writable)
{
	if (modes[_i].other_users && geteuid())
		return;
	copy_to(path, len, modes[_i].file);
	ck_assert_int_eq(chmod(folder, modes[_i].folder), 0);
	ck_assert(!modes[_i].other_users || !chown(path, OTHER_USER, OTHER_USER));
	may_load(modes[_i].why);
}
END_TEST

/* A link leads to where all users can write. */
START_TEST(link_to_writable)
{
	copy_to(elsewhere, len, modes[_i].file);
	ck_assert(!modes[_i].other_users || geteuid() || !chown(elsewhere, OTHER_USER, OTHER_USER));
	ck_assert_int_eq(chmod(folder, modes[_i].folder), 0);
	snprintf(path, sizeof(path), "/tmp/external_check_%d-fi.so", (int)getpid());
	ck_assert_int_eq(symlink(elsewhere, path), 0);
	may_load(modes[_i].other_users && geteuid() ? NULL : modes[_i].why);
}
END_TEST

/* Another user's link in /tmp, to a library that is as it should be. */
START_TEST(link_of_another)
{
	if (geteuid())
		return;
	ck_assert_int_eq(chmod(folder, 01777), 0);
	ck_assert_int_eq(symlink(library, path), 0);
	ck_assert_ptr_null(external_check(path));
	ck_assert_int_eq(lchown(path, OTHER_USER, OTHER_USER), 0);
	refused(ANYBODY);
}
END_TEST

/* The dynamic linker looks for a name without a slash, not in the folder that the process is in. */
START_TEST(bare_name)
{
	copy_to(path, len / 2, 0600);
	ck_assert_int_eq(chdir(folder), 0);
	ck_assert_ptr_null(external_check("lib-fi.so"));
	ck_assert_ptr_nonnull(external_check("./lib-fi.so"));
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

int main(void)
{
	Suite *suite = suite_create("info_external_check");
	TCase *tc = tcase_create("files");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, no_file, 0, COUNT(no_files));
	tcase_add_loop_test(tc, no_library, 0, COUNT(no_libraries));
	tcase_add_test(tc, cut_off);
	tcase_add_loop_test(tc, writable, 0, COUNT(modes));
	tcase_add_loop_test(tc, link_to_writable, 0, COUNT(modes));
	tcase_add_test(tc, link_of_another);
	tcase_add_test(tc, bare_name);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
