/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that a copy from another process's memory ends with an error where a peer's list leads nowhere, and says how far it got. */
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <unistd.h>

#include "hw/shm/shm.h"
#include "suite.h"

enum { LEN = 8192 };

static unsigned char from[LEN], to[2 * LEN];

/* The list's first segment ends in the middle of ours; its second one begins at the peer's address `at`. */
static int copy_until(uintptr_t at, size_t *moved)
{
	int ends[2];
	struct shm_link s = {.pid = getpid()};
	struct iovec local = {to, sizeof(to)}, remote[2] = {{from, LEN}, {(void *)at, LEN}};
	struct shm_cma c = {.local = &local, .remote = remote, .local_count = 1, .remote_count = 2};
	int ret;

	ck_assert_int_eq(pipe(ends), 0);
	s.sock = ends[0];
	memset(from, 7, LEN);
	memset(to, 0, sizeof(to));
	ret = shm_cma_copy(&s, &c);
	*moved = c.moved;
	ck_assert_int_eq(memcmp(to, from, LEN), 0);
	close(ends[0]);
	close(ends[1]);
	return ret;
}

START_TEST(lists_that_lead_nowhere)
{
	size_t moved;

	ck_assert_int_eq(copy_until(0, &moved), -FI_EFAULT);
	ck_assert_uint_eq(moved, LEN);
	ck_assert_int_eq(copy_until(UINTPTR_MAX - LEN, &moved), -FI_EFAULT);
	ck_assert_uint_eq(moved, LEN);
	ck_assert_int_eq(copy_until((uintptr_t)from, &moved), 0);
	ck_assert_uint_eq(moved, 2 * LEN);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_shm_cma");
	TCase *tcase = tcase_create("cma");

	tcase_add_test(tcase, lists_that_lead_nowhere);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
