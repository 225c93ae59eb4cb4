/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that guarded descriptors are closed in a forked child, and that no lock of the process is held there. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/forked.h"
#include "suite.h"

#define MANY  200
#define FORKS 50
#define LIMIT 20 /* seconds a child may take */

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int guarded(void)
{
	int fd = dup(STDERR_FILENO);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(forked_guard(fd), 0);
	return fd;
}

/* Runs `says` in a child. Returns the child's exit status. */
static int in_child(int (*says)(const int *fds), const int *fds)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		alarm(LIMIT);
		_exit(says(fds));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int count_open(const int *fds)
{
	int count = 0;

	for (int i = 0; fds[i] >= 0; i++)
		count += is_open(fds[i]);
	return count;
}

START_TEST(child_has_none)
{
	int fds[MANY + 1];

	for (int i = 0; i < MANY; i++)
		fds[i] = guarded();
	fds[MANY] = -1;
	ck_assert_int_eq(in_child(count_open, fds), 0);
	ck_assert_int_eq(count_open(fds), MANY);
	ck_assert_int_eq(in_child(count_open, fds), 0); /* in a second child too */
	for (int i = 0; i < MANY; i++)
		forked_close(fds[i]);
	ck_assert_int_eq(count_open(fds), 0);
}
END_TEST

/* A closed descriptor is forgotten: its number, used again, stays open in the child. */
START_TEST(closed_ones_are_forgotten)
{
	int fds[3] = {guarded(), -1, -1}, other;

	forked_close(fds[0]);
	ck_assert(!is_open(fds[0]));
	other = dup(STDERR_FILENO);
	ck_assert_int_eq(other, fds[0]); /* the lowest free number */
	ck_assert_int_eq(in_child(count_open, fds), 1);
	close(other);
	fds[0] = guarded(); /* uses the freed place in the list */
	ck_assert_int_eq(in_child(count_open, fds), 0);
	forked_close(fds[0]);
}
END_TEST

/* Peers see the parent's end although a child lives on. */
START_TEST(peers_see_the_end)
{
	int pair[2], hold[2], status;
	struct pollfd end;
	pid_t parent;
	char byte;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ck_assert_int_eq(pipe(hold), 0);
	parent = fork();
	ck_assert_int_ge(parent, 0);
	if (parent == 0) {
		if (forked_guard(pair[1]))
			_exit(1);
		if (fork() == 0) { /* the child lives until the pipe ends */
			close(hold[1]);
			alarm(LIMIT);
			_exit(read(hold[0], &byte, 1) != 0);
		}
		_exit(0);
	}
	close(pair[1]);
	close(hold[0]);
	ck_assert_int_eq(waitpid(parent, &status, 0), parent);
	ck_assert_int_eq(status, 0);
	end = (struct pollfd){.fd = pair[0], .events = POLLIN};
	ck_assert_int_eq(poll(&end, 1, 2000), 1);
	ck_assert_int_eq(recv(pair[0], &byte, 1, 0), 0);
	close(pair[0]);
	close(hold[1]);
}
END_TEST

/* A child's list begins empty; descriptors that the child guards are closed in its own children. */
static int guards_its_own(const int *fds)
{
	int own[2] = {dup(STDERR_FILENO), -1};

	if (own[0] != fds[0]) /* lowest free number: the guarded one was closed */
		return 1;
	if (forked_guard(own[0]))
		return 2;
	return in_child(count_open, own) ? 3 : !is_open(own[0]);
}

/* A child's own descriptor under a once guarded number stays open in the child's children. */
static int takes_the_number(const int *fds)
{
	int own[2] = {dup(STDERR_FILENO), -1};

	return own[0] != fds[0] || in_child(count_open, own) != 1;
}

START_TEST(children_of_children)
{
	int fds[2] = {guarded(), -1};

	ck_assert_int_eq(in_child(takes_the_number, fds), 0);
	ck_assert_int_eq(in_child(guards_its_own, fds), 0);
	ck_assert(is_open(fds[0]));
	forked_close(fds[0]);
}
END_TEST

static int stop; /* atomic */

static void *guard_and_close(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		int fd = dup(STDERR_FILENO);

		if (fd < 0 || forked_guard(fd))
			return &stop;
		forked_close(fd);
	}
	return NULL;
}

/* A fork while another thread changes the list: the child must not find the list's lock held. */
START_TEST(fork_beside_a_busy_thread)
{
	int fds[2] = {guarded(), -1};
	pthread_t thread;
	void *failed;

	ck_assert_int_eq(pthread_create(&thread, NULL, guard_and_close, NULL), 0);
	for (int i = 0; i < FORKS; i++)
		ck_assert_int_eq(in_child(guards_its_own, fds), 0);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, &failed);
	ck_assert_ptr_null(failed);
	forked_close(fds[0]);
}
END_TEST

/* A lock that another thread holds while this one forks. */
struct held {
	unsigned int which;
	bool waited_for; /* fork takes the lock: it must have come to wait before the holder gives it */
	int taken,
		child; /* pipes' ends: written once the lock is held, and once there is a child */
};

static void *hold(void *arg)
{
	struct held *h = arg;
	struct lock *lock = &forked_locks[h->which].lock;
	char byte = 0;

	forked_take(h->which);
	if (write(h->taken, &byte, 1) != 1)
		return NULL;
	if (h->waited_for)
		while (!(__atomic_load_n(&lock->state, __ATOMIC_RELAXED) & LOCK_SLEEPERS))
			sched_yield();
	else if (read(h->child, &byte, 1) != 1)
		return NULL;
	forked_give(h->which);
	return h;
}

static int takes_all(const int *fds)
{
	(void)fds;
	for (unsigned int i = 0; i < FORKED_LOCKS; i++)
		forked_take(i);
	for (unsigned int i = 0; i < FORKED_LOCKS; i++)
		forked_give(i);
	return 0;
}

/* Whichever lock of the process another thread holds: all are free in the child, and work in the parent. */
START_TEST(fork_beside_a_holder)
{
	int taken[2], child[2];
	struct held h = {.which = (unsigned int)_i, .waited_for = _i < FORKED_RENEWED};
	pthread_t thread;
	void *ended;
	char byte = 0;

	ck_assert_int_eq(pipe(taken), 0);
	ck_assert_int_eq(pipe(child), 0);
	h.taken = taken[1];
	h.child = child[0];
	ck_assert_int_eq(pthread_create(&thread, NULL, hold, &h), 0);
	ck_assert_int_eq(read(taken[0], &byte, 1), 1);
	ck_assert_int_eq(in_child(takes_all, NULL), 0);
	ck_assert_int_eq(write(child[1], &byte, 1), 1);
	pthread_join(thread, &ended);
	ck_assert_ptr_eq(ended, &h);
	takes_all(NULL);
}
END_TEST

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int begun[2], runs;

static void slow_first_time(void)
{
	char byte = 0;

	if (runs++ == 0 && (write(begun[1], &byte, 1) != 1 || pause()))
		return;
}

static void *pass_once(void *arg)
{
	pthread_once(&once, slow_first_time);
	return arg;
}

static int calls_once(const int *fds)
{
	(void)fds;
	pass_once(NULL);
	return runs != 2;
}

/* The C library's promise on which each pthread_once of src leans: a child runs anew what its parent has not ended. */
START_TEST(fork_within_once)
{
	pthread_t thread;
	char byte;

	ck_assert_int_eq(pipe(begun), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, pass_once, NULL), 0);
	ck_assert_int_eq(read(begun[0], &byte, 1), 1);
	ck_assert_int_eq(in_child(calls_once, NULL), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_forked");
	TCase *all = tcase_create("forked");

	tcase_set_timeout(all, 2 * LIMIT);
	tcase_add_test(all, child_has_none);
	tcase_add_test(all, closed_ones_are_forgotten);
	tcase_add_test(all, peers_see_the_end);
	tcase_add_test(all, children_of_children);
	tcase_add_test(all, fork_beside_a_busy_thread);
	tcase_add_loop_test(all, fork_beside_a_holder, 0, FORKED_LOCKS);
	tcase_add_test(all, fork_within_once);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
