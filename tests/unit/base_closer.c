/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that nobody waits for the close of a socket that lingers: neither who gives it away, nor others that are given
 * away with it or later. Where the kernel offers no table of descriptors for a thread, as many wait as are stated.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/closer.h"
#include "suite.h"

#define LINGER_S 600
#define MANY     50
#define FULL     64 /* descriptors that may wait */
#define LIMIT    20 /* seconds until a hang ends */

/* A socket with unsent bytes, and its other end, which does not read. */
struct slow {
	int sock, reader;
};

static struct slow slow_open(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct linger linger = {1, LINGER_S};
	int listener = socket(AF_INET, SOCK_STREAM, 0), small = 4096;
	struct slow s = {.sock = socket(AF_INET, SOCK_STREAM, 0)};
	static const char bytes[65536];
	socklen_t len = sizeof(at);

	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	setsockopt(s.sock, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	ck_assert_int_eq(connect(s.sock, (struct sockaddr *)&at, sizeof(at)), 0);
	s.reader = accept(listener, NULL, NULL);
	ck_assert_int_ge(s.reader, 0);
	close(listener);
	while (send(s.sock, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		;
	setsockopt(s.sock, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return s;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Reads to the end, which only comes when the socket is closed. */
static void read_out(int reader)
{
	char bytes[4096];

	while (read(reader, bytes, sizeof(bytes)) > 0)
		;
	close(reader);
}

static void give_many(struct slow *all, int count)
{
	for (int i = 0; i < count; i++)
		all[i] = slow_open();
	for (int i = 0; i < count; i++)
		closer_close(all[i].sock);
}

static void wait_closed(const struct slow *all, int count)
{
	for (int i = 0; i < count; i++)
		while (is_open(all[i].sock))
			usleep(1000);
}

START_TEST(nobody_waits)
{
	struct slow all[MANY];
	int other[2];

	for (int round = 0; round < 3; round++) {
		/* Before: no number of a closed one is used again. */
		ck_assert_int_eq(pipe(other), 0);
		give_many(all, MANY);
		wait_closed(all, MANY);
		/* No thread has kept what is not its own. */
		close(other[1]);
		read_out(other[0]);
		for (int i = 0; i < MANY; i++)
			read_out(all[i].reader);
	}
	ck_assert(!closer_full());
}
END_TEST

START_TEST(the_first_descriptor)
{
	struct slow s = slow_open();

	ck_assert_int_eq(dup2(s.sock, 0), 0);
	close(s.sock);
	closer_close(0);
	while (is_open(0))
		usleep(1000);
	read_out(s.reader);
}
END_TEST

START_TEST(forked_child)
{
	struct slow all[MANY];
	int status;
	pid_t pid;

	give_many(all, 1);
	pid = fork();
	if (pid == 0) {
		alarm(LIMIT);
		give_many(all, MANY);
		wait_closed(all, MANY);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	wait_closed(all, 1);
}
END_TEST

static bool refuse_close_range(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 436, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

START_TEST(bounded_where_it_has_to_wait)
{
	struct slow first, all[FULL];

	if (!refuse_close_range())
		return;
	give_many(&first, 1);
	wait_closed(&first, 1); /* its thread waits in the close */
	give_many(all, FULL - 1);
	ck_assert(!closer_full());
	give_many(&all[FULL - 1], 1);
	ck_assert(closer_full());
	read_out(first.reader);
	for (int i = 0; i < FULL; i++)
		read_out(all[i].reader);
	wait_closed(all, FULL);
	ck_assert(!closer_full());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_closer");
	TCase *all = tcase_create("closer");

	tcase_set_timeout(all, LIMIT);
	tcase_add_test(all, nobody_waits);
	tcase_add_test(all, the_first_descriptor);
	tcase_add_test(all, forked_child);
	tcase_add_test(all, bounded_where_it_has_to_wait);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
