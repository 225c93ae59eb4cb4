/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves where the libraries of providers are looked for, and in which order. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "info/external.h"
#include "info/providers.h"
#include "suite.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static char root[] = "/tmp/external_files_XXXXXX";
static char found[1024]; /* names of the files, with a + if preferred */

static const char *const files[] = {
	"a/libz-fi.so", "a/libb-fi.so", "a/libB-fi.so", "a/libc-fi.so.1", "a/libd.so",
	"a/fi.so",      "a/-fi.so",     "b/liba-fi.so", "b/other.so",
};

static void make_files(void)
{
	char path[128];

	ck_assert_ptr_nonnull(mkdtemp(root));
	ck_assert_int_eq(chdir(root), 0);
	ck_assert_int_eq(system("mkdir a b empty"), 0);
	for (int i = 0; i < COUNT(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, files[i]);
		ck_assert_int_eq(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
	}
}

static void remove_files(void)
{
	for (int i = 0; i < COUNT(files); i++)
		unlink(files[i]);
	rmdir("a");
	rmdir("b");
	rmdir("empty");
	rmdir(root);
}

static void take(const char *path, bool preferred)
{
	size_t len = strlen(found);

	snprintf(found + len, sizeof(found) - len, "%s%s%s", len ? " " : "", preferred ? "+" : "",
		 path);
}

static const struct {
	const char *path, *order;
	bool first_stays;
} paths[] = {
	{"a", "a/-fi.so a/libB-fi.so a/libb-fi.so a/libz-fi.so", false},
	{"b:a", "b/liba-fi.so a/-fi.so a/libB-fi.so a/libb-fi.so a/libz-fi.so", false},
	{"b:b", "b/liba-fi.so b/liba-fi.so", false},
	{":b:", "b/liba-fi.so", false},
	{"@b", "b/liba-fi.so", true},
	{"@", "", true},
	{"", "", false},
	{"+b/other.so", "+b/other.so", false},
	{"empty:+x:b", "+x b/liba-fi.so", false},
	{"b/other.so", "b/other.so", false},
	{"none:b", "b/liba-fi.so", false},
};

/* The environment is read once in a process: each case has its own. */
START_TEST(order)
{
	setenv("FI_PROVIDER_PATH", paths[_i].path, 1);
	external_files_each(take);
	ck_assert_str_eq(found, paths[_i].order);
	ck_assert_int_eq(external_files_first_stays(), paths[_i].first_stays);
}
END_TEST

/* Is the external provider "loop" offered? */
static const struct {
	const char *hints, *user;
	bool offered;
} names[] = {
	{NULL, NULL, true},         {"", NULL, true},           {"loop", NULL, true},
	{"Loop", NULL, true},       {"loo", NULL, false},       {"loops", NULL, false},
	{"^loop", NULL, false},     {"^tcp", NULL, true},       {"tcp, loop", NULL, true},
	{"tcp;loop", NULL, true},   {"loop;tcp", NULL, false},  {NULL, "tcp,loop", true},
	{NULL, "tcp", false},       {NULL, "^loop,tcp", false}, {"loop", "tcp", false},
	{"loop", "^tcp", true},     {"tcp", "loop", false},     {"loop", "^tcp;loop", false},
	{"^udp,tcp", "loop", true},
};

START_TEST(offered)
{
	if (names[_i].user)
		setenv("FI_PROVIDER", names[_i].user, 1);
	else
		unsetenv("FI_PROVIDER");
	ck_assert_int_eq(provider_name_offered("loop", names[_i].hints), names[_i].offered);
}
END_TEST

START_TEST(own_layers)
{
	ck_assert(provider_is_layer("weft"));
	ck_assert(provider_is_layer("TCP"));
	ck_assert(provider_is_layer("ofi_rxm"));
	ck_assert(!provider_is_layer("ofi"));
	ck_assert(!provider_is_layer("loop"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("info_external_files");
	TCase *tc = tcase_create("files");

	tcase_add_unchecked_fixture(tc, make_files, remove_files);
	tcase_add_loop_test(tc, order, 0, COUNT(paths));
	tcase_add_loop_test(tc, offered, 0, COUNT(names));
	tcase_add_test(tc, own_layers);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
