/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves how wait objects of every kind arm, notify and wait. */
#include <poll.h>
#include <unistd.h>

#include "core/wait.h"
#include "suite.h"

#define FOREVER -1 /* ms; the time limit of the test ends a lost wake-up */

static bool readable(int fd, int timeout)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout) == 1;
}

START_TEST(kinds)
{
	static const enum fi_wait_obj asked[] = {FI_WAIT_NONE,  FI_WAIT_UNSPEC,
						 FI_WAIT_FD,    FI_WAIT_MUTEX_COND,
						 FI_WAIT_YIELD, FI_WAIT_POLLFD};
	struct waiter w;

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		enum fi_wait_obj got, want = asked[i] == FI_WAIT_UNSPEC ? FI_WAIT_FD : asked[i];

		ck_assert_int_eq(wait_init(&w, asked[i], NULL), 0);
		ck_assert_int_eq(wait_control(&w, FI_GETWAITOBJ, &got), 0);
		ck_assert_int_eq(got, want);
		wait_signal(&w);
		wait_drain(&w);
		wait_fini(&w);
	}
	ck_assert_int_eq(wait_init(&w, FI_WAIT_SET, NULL), -FI_EINVAL);
	ck_assert_int_eq(wait_init(&w, (enum fi_wait_obj)99, NULL), -FI_EINVAL);
}
END_TEST

START_TEST(exported_objects)
{
	struct fi_mutex_cond pair;
	struct pollfd fds[2];
	struct fi_wait_pollfd arg = {.nfds = 0};
	struct waiter w;
	int fd = -1;

	ck_assert_int_eq(wait_init(&w, FI_WAIT_FD, NULL), 0);
	ck_assert_int_eq(wait_control(&w, FI_GETWAIT, &fd), 0);
	ck_assert_int_eq(fd, w.epfd);
	ck_assert_int_eq(wait_control(&w, FI_GETWAIT, NULL), -FI_EINVAL);
	ck_assert_int_eq(wait_control(&w, FI_ALIAS, &fd), -FI_ENOSYS);
	wait_fini(&w);

	ck_assert_int_eq(wait_init(&w, FI_WAIT_POLLFD, NULL), 0);
	ck_assert_int_eq(wait_control(&w, FI_GETWAIT, &arg), -FI_ETOOSMALL);
	ck_assert_uint_eq(arg.nfds, 1);
	ck_assert_uint_ne(arg.change_index, 0);
	arg.nfds = 2;
	arg.fd = fds;
	ck_assert_int_eq(wait_control(&w, FI_GETWAIT, &arg), 0);
	ck_assert_uint_eq(arg.nfds, 1);
	ck_assert_int_eq(fds[0].events, POLLIN);
	wait_signal(&w);
	ck_assert(readable(fds[0].fd, 0));
	wait_fini(&w);

	ck_assert_int_eq(wait_init(&w, FI_WAIT_MUTEX_COND, NULL), 0);
	ck_assert_int_eq(wait_control(&w, FI_GETWAIT, &pair), 0);
	ck_assert_ptr_eq(pair.mutex, &w.mutex);
	ck_assert_ptr_eq(pair.cond, &w.cond);
	wait_fini(&w);

	ck_assert_int_eq(wait_init(&w, FI_WAIT_NONE, NULL), 0);
	ck_assert_int_eq(wait_control(&w, FI_GETWAIT, &fd), -FI_ENOSYS);
	wait_fini(&w);
}
END_TEST

START_TEST(one_signal_for_one_arming)
{
	struct waiter w;

	ck_assert_int_eq(wait_init(&w, FI_WAIT_FD, NULL), 0);
	wait_notify(&w); /* not armed: no effect */
	ck_assert(!readable(w.epfd, 0));
	wait_arm(&w);
	wait_notify(&w);
	ck_assert(readable(w.epfd, 0));
	ck_assert_int_eq(w.sleeping, 0);
	wait_drain(&w);
	ck_assert(!readable(w.epfd, 0));
	wait_notify(&w);
	ck_assert(!readable(w.epfd, 0));
	wait_fini(&w);
}
END_TEST

START_TEST(descriptors_wake)
{
	struct waiter w;
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(wait_init(&w, FI_WAIT_FD, NULL), 0);
	ck_assert_int_eq(wait_add_fd(&w, ends[0]), 0);
	ck_assert_int_eq(wait_sleep_since(&w, wait_arm(&w), 1), -FI_EAGAIN);
	ck_assert_int_eq(write(ends[1], "x", 1), 1);
	ck_assert_int_eq(wait_sleep_since(&w, wait_arm(&w), FOREVER), 0);
	wait_del_fd(&w, ends[0]);
	ck_assert_int_eq(wait_sleep_since(&w, wait_arm(&w), 1), -FI_EAGAIN);
	ck_assert_int_eq(wait_add_fd(&w, 12345), -FI_EBADF);
	wait_fini(&w);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_wait");
	TCase *tcase = tcase_create("wait");

	tcase_add_test(tcase, kinds);
	tcase_add_test(tcase, exported_objects);
	tcase_add_test(tcase, one_signal_for_one_arming);
	tcase_add_test(tcase, descriptors_wake);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
