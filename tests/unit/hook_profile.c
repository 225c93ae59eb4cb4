/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves the table of the layer "profile": ranges of lengths, groups and their shares, completions. */
#include "hook/layers.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#include "hook_log.h"
#include "suite.h"

static void report(void)
{
	lines[0] = '\0';
	profile_report();
}

static void setup(void)
{
	keep_lines_of("ofi_hook_profile");
	report();
}

static void made(enum call_id id, int64_t result, size_t bytes)
{
	const struct shape shapes[] = {{"ep", SHOW_POINTER, 0}, {"result", SHOW_STATUS, 0}};
	const uint64_t values[] = {1, (uint64_t)result};
	const struct call call = {id, {0, 0}, {0, 0}, bytes, 2, shapes, values};

	profile_call(&call);
}

static void completed(const struct value_entries *entries)
{
	const struct shape shapes[] = {{"entries", SHOW_ENTRIES, 0}, {"result", SHOW_STATUS, 0}};
	const uint64_t values[] = {(uintptr_t)entries, (uint64_t)entries->count};
	const struct call call = {CALL_fi_cq_read, {0, 0}, {0, 0}, 0, 2, shapes, values};

	profile_call(&call);
}

/* Does the table have a line of these words, whatever is between them? */
static bool has(const char *const words[], size_t count)
{
	char copy[sizeof(lines)], *rest = copy;

	strcpy(copy, lines);
	for (char *line; (line = strsep(&rest, "\n"));) {
		size_t i = 0;

		for (; i < count && (line = strstr(line, words[i])); i++)
			line += strlen(words[i]);
		if (i == count)
			return true;
	}
	return false;
}
#define HAS(...)                                                                                   \
	has((const char *const[]){__VA_ARGS__},                                                    \
	    sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

START_TEST(ranges)
{
	made(CALL_fi_tsend, 0, 0);
	made(CALL_fi_tsend, 0, 63);
	made(CALL_fi_tsend, 0, 64);
	made(CALL_fi_tsend, 0, 4194303);
	made(CALL_fi_tsend, 0, 4194304);
	made(CALL_fi_tsend, 0, (size_t)1 << 40);
	made(CALL_fi_tsend, -FI_EAGAIN, 100);
	report();
	ck_assert(HAS("message send ", "fi_tsend ", " 0-64 ", " 2 ", " 63 ", "33.3%"));
	ck_assert(HAS("fi_tsend ", " 64-512 ", " 1 ", " 64 ", "16.7%"));
	ck_assert(HAS("fi_tsend ", " 1M-4M ", " 1 ", " 4194303 "));
	ck_assert(HAS("fi_tsend ", " 4M-UP ", " 2 ", " 1099515822080 ", "33.3%", "100.0%"));
	ck_assert(!HAS("fi_tsend ", " 512-1K "));
	report();
	ck_assert(!HAS("fi_tsend "));
}
END_TEST

/* Shares are of the group: reads do not count for writes. */
START_TEST(of_groups)
{
	made(CALL_fi_write, 0, 30);
	made(CALL_fi_inject_writedata, 0, 10);
	made(CALL_fi_readmsg, 0, 5);
	made(CALL_fi_inject, 0, 1);
	made(CALL_fi_trecvv, 0, 2);
	made(CALL_fi_bind, 0, 0);
	made(CALL_fi_atomic, 0, 8);
	report();
	ck_assert(HAS("rma write ", "fi_write ", " 1 ", " 30 ", " 50.0%", " 75.0%"));
	ck_assert(HAS("rma write ", "fi_inject_writedata ", " 50.0%", " 25.0%"));
	ck_assert(HAS("rma read ", "fi_readmsg ", "100.0%", "100.0%"));
	ck_assert(HAS("message send ", "fi_inject ", "100.0%"));
	ck_assert(HAS("message receive ", "fi_trecvv ", "100.0%"));
	ck_assert(!HAS("fi_bind ") && !HAS("fi_atomic "));
}
END_TEST

START_TEST(completions)
{
	const struct fi_cq_tagged_entry tagged[3] = {{.flags = FI_RECV | FI_TAGGED, .len = 100},
						     {.flags = FI_SEND | FI_TAGGED, .len = 5000},
						     {.flags = FI_RECV | FI_TAGGED, .len = 11}};
	const struct fi_cq_entry bare = {.op_context = NULL};

	completed(&(struct value_entries){tagged, 3, FI_CQ_FORMAT_TAGGED});
	completed(&(struct value_entries){tagged, -FI_EAGAIN, FI_CQ_FORMAT_TAGGED});
	completed(&(struct value_entries){&bare, 1, FI_CQ_FORMAT_CONTEXT});
	report();
	ck_assert(HAS("completions ", "FI_CQ_FORMAT_TAGGED ", " 3 ", " 111"));
	ck_assert(HAS("completions ", "FI_CQ_FORMAT_CONTEXT ", " 1 ", " 0"));
	ck_assert(!HAS("completions ", "FI_CQ_FORMAT_MSG"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hook_profile");
	TCase *tcase = tcase_create("profile");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, ranges);
	tcase_add_test(tcase, of_groups);
	tcase_add_test(tcase, completions);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
