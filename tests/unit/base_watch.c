/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that changes of watched mappings are reported before the memory can be mistaken for the
 * old one.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <rdma/fi_errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/watch.h"

#define PAGE  ((size_t)4096)
#define PAGES 8
#define LEN   (PAGES * PAGE)
#define LIMIT 20 /* seconds */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watch w;
static uintptr_t from, to; /* range reported last; under the lock */
static int tellings;

static void changed(void *arg, uintptr_t first, uintptr_t end)
{
	ck_assert_ptr_eq(arg, &w);
	from = first;
	to = end;
	tellings++;
}

static void setup(void)
{
	tellings = 0;
	w = (struct watch){.lock = &lock, .changed = changed, .arg = &w};
	ck_assert_int_eq(watch_open(&w), 0);
}

static void teardown(void)
{
	watch_close(&w);
}

static char *map(int prot)
{
	char *mem = mmap(NULL, LEN, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(mem, MAP_FAILED);
	return mem;
}

/* Maps memory and watches all of it but the first and last page. */
static char *watched(void)
{
	char *mem = map(PROT_READ | PROT_WRITE);

	memset(mem, 1, LEN);
	/* Watches are rounded to pages. */
	ck_assert(watch_arm(&w, (uintptr_t)mem + PAGE + 1, (uintptr_t)mem + LEN - PAGE - 1));
	return mem;
}

/* Returns whether the range was reported. The report holds the lock from before the change. */
static bool reported(const char *first, const char *end)
{
	bool was;

	pthread_mutex_lock(&lock);
	was = from <= (uintptr_t)first && to >= (uintptr_t)end;
	pthread_mutex_unlock(&lock);
	return was;
}

START_TEST(what_is_done_is_heard)
{
	char *mem = watched();

	ck_assert_int_eq(munmap(mem + PAGE, PAGE), 0);
	ck_assert(reported(mem + PAGE, mem + 2 * PAGE));
	ck_assert_int_eq(madvise(mem + 2 * PAGE, PAGE, MADV_DONTNEED), 0);
	ck_assert(reported(mem + 2 * PAGE, mem + 3 * PAGE));
	ck_assert_int_eq(madvise(mem + 3 * PAGE, PAGE, MADV_FREE), 0);
	ck_assert(reported(mem + 3 * PAGE, mem + 4 * PAGE));
	ck_assert_ptr_eq(mmap(mem + 4 * PAGE, PAGE, PROT_READ,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 mem + 4 * PAGE);
	ck_assert(reported(mem + 4 * PAGE, mem + 5 * PAGE));
	ck_assert_int_eq(tellings, 4);
	munmap(mem, LEN);
}
END_TEST

START_TEST(a_move_is_heard)
{
	char *mem = watched(), *new = mremap(mem + PAGE, 2 * PAGE, 4 * PAGE, MREMAP_MAYMOVE);

	ck_assert_ptr_ne(new, MAP_FAILED);
	ck_assert_ptr_ne(new, mem + PAGE);
	ck_assert(reported(mem + PAGE, mem + 3 * PAGE));
	munmap(mem, LEN);
	munmap(new, 4 * PAGE);
}
END_TEST

START_TEST(a_heap_that_shrinks_is_heard)
{
	/* No allocation may come in between; an assertion allocates. */
	char *heap = sbrk(LEN);
	bool armed = watch_arm(&w, (uintptr_t)heap, (uintptr_t)heap + LEN);
	char *shrunk = sbrk(-(intptr_t)LEN);

	ck_assert_ptr_ne(heap, (void *)-1);
	ck_assert(armed);
	ck_assert_ptr_eq(shrunk, heap + LEN);
	ck_assert(reported((char *)watch_ceil((uintptr_t)heap),
			   (char *)watch_floor((uintptr_t)heap + LEN)));
}
END_TEST

START_TEST(what_is_not_watched_is_not_heard)
{
	char *mem = watched();

	ck_assert_int_eq(munmap(mem, PAGE), 0);
	ck_assert_int_eq(munmap(mem + LEN - PAGE, PAGE), 0);
	watch_disarm(&w, (uintptr_t)mem + PAGE, (uintptr_t)mem + LEN - PAGE);
	ck_assert_int_eq(munmap(mem, LEN), 0);
	ck_assert_int_eq(tellings, 0);
}
END_TEST

/* Reading, writing, system calls, protecting and a child's changes of its copy are not delayed. */
START_TEST(accesses_are_not_paused)
{
	char *mem = watched(), more[PAGE];
	int pipes[2], status;
	pid_t pid;

	alarm(LIMIT);
	memset(mem, 2, LEN);
	ck_assert_int_eq(pipe(pipes), 0);
	ck_assert_int_eq(write(pipes[1], mem + PAGE, PAGE), PAGE);
	ck_assert_int_eq(read(pipes[0], mem + 2 * PAGE, PAGE), PAGE);
	ck_assert_int_eq(memcmp(mem + 2 * PAGE, memset(more, 2, PAGE), PAGE), 0);
	ck_assert_int_eq(madvise(mem + PAGE, PAGE, MADV_DONTNEED), 0);
	ck_assert_int_eq(mem[PAGE], 0);
	ck_assert_int_eq(write(pipes[1], more, PAGE), PAGE);
	ck_assert_int_eq(madvise(mem + PAGE, PAGE, MADV_DONTNEED), 0);
	ck_assert_int_eq(read(pipes[0], mem + PAGE, PAGE), PAGE);
	ck_assert_int_eq(mprotect(mem, LEN, PROT_READ), 0);
	pid = fork();
	if (!pid) {
		alarm(LIMIT);
		_exit(mem[PAGE] != 2 || munmap(mem, LEN));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(munmap(mem, LEN), 0);
	close(pipes[0]);
	close(pipes[1]);
}
END_TEST

static atomic_bool done;

static void *unmap(void *mem)
{
	munmap(mem, LEN);
	done = true;
	return NULL;
}

static bool is_mapped(void *mem)
{
	unsigned char page;

	return !mincore(mem, PAGE, &page);
}

/*
 * Until a change is reported, the memory may be another mapping already: watch knows that a report
 * is due.
 */
START_TEST(it_is_known_that_something_was_not_heard)
{
	char *mem = watched();
	pthread_t thread;

	alarm(LIMIT);
	done = false;
	pthread_mutex_lock(&lock);
	ck_assert(watch_quiet(&w));
	ck_assert_int_eq(pthread_create(&thread, NULL, unmap, mem), 0);
	while (is_mapped(mem + PAGE))
		;
	ck_assert(!watch_quiet(&w));
	ck_assert_ptr_eq(mmap(mem, LEN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 mem);
	usleep(50000);
	ck_assert(!watch_quiet(&w));
	ck_assert(!done);
	ck_assert_int_eq(tellings, 0);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	ck_assert(reported(mem + PAGE, mem + LEN - PAGE));
	pthread_mutex_lock(&lock);
	ck_assert(watch_quiet(&w));
	pthread_mutex_unlock(&lock);
	munmap(mem, LEN);
}
END_TEST

/* Closing the watch releases memory that is still watched, also if a child lives on. */
START_TEST(the_end_lets_go)
{
	char *mem = watched();
	pid_t pid;

	alarm(LIMIT);
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	watch_close(&w);
	ck_assert_int_eq(munmap(mem, LEN), 0);
	ck_assert_int_eq(tellings, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	setup();
}
END_TEST

/* Makes the system call fail in this process, as filters of containers do. */
static void forbid_userfaultfd(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
	ck_assert_int_eq(syscall(SYS_userfaultfd, O_CLOEXEC), -1);
	ck_assert_int_eq(errno, EPERM);
}

/* Where the call is forbidden, the device serves those who may open it. */
START_TEST(the_device_serves_as_well)
{
	bool there = access("/dev/userfaultfd", R_OK | W_OK) == 0;
	char *mem;

	forbid_userfaultfd();
	w = (struct watch){.lock = &lock, .changed = changed, .arg = &w};
	ck_assert_int_eq(watch_open(&w), there ? 0 : -EPERM);
	if (!there)
		return;
	mem = watched();
	ck_assert_int_eq(munmap(mem + PAGE, PAGE), 0);
	ck_assert(reported(mem + PAGE, mem + 2 * PAGE));
	watch_close(&w);
	munmap(mem, LEN);
}
END_TEST

/* ---- Private and shared mappings ------------------------------------------------------------- */

static bool own(const void *mem, size_t len)
{
	return maps_private((uintptr_t)mem, (uintptr_t)mem + len);
}

START_TEST(own_memory_is_known)
{
	char *mem = map(PROT_READ), *heap = malloc(1), here;

	ck_assert(own(mem, LEN));
	ck_assert(own(mem + 5, LEN - 10));
	ck_assert_int_eq(mprotect(mem + PAGE, PAGE, PROT_NONE), 0); /* three mappings */
	ck_assert(own(mem, LEN));
	ck_assert(own(heap, 1));
	ck_assert(own(&here, 1));
	free(heap);
	munmap(mem, LEN);
}
END_TEST

START_TEST(memory_of_others_is_known)
{
	int fd = memfd_create("memory", MFD_CLOEXEC), flags = MAP_PRIVATE | MAP_FIXED;
	char *mem = map(PROT_READ | PROT_WRITE), *shared;

	ck_assert_int_eq(ftruncate(fd, LEN), 0);
	ck_assert(!own("text", 5));
	shared = mmap(NULL, LEN, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(!own(shared, LEN));
	ck_assert_int_eq(munmap(mem + PAGE, PAGE), 0);
	ck_assert(own(mem, PAGE));
	ck_assert(!own(mem, 2 * PAGE + 1));
	ck_assert(!own(mem + PAGE, 1));
	ck_assert_ptr_eq(mmap(mem + PAGE, PAGE, PROT_READ | PROT_WRITE, flags, fd, 0), mem + PAGE);
	memset(mem + PAGE, 1, PAGE);
	ck_assert(!own(mem + PAGE, 1));
	ck_assert(!own(mem, LEN));
	ck_assert(own(mem + 2 * PAGE, LEN - 2 * PAGE));
	munmap(mem, LEN);
	munmap(shared, LEN);
	close(fd);
}
END_TEST

/* Returns 77 where the kernel does not permit userfaultfd. */
static int try_open(void)
{
	int err;

	w = (struct watch){.lock = &lock, .changed = changed, .arg = &w};
	err = watch_open(&w);
	if (!err)
		watch_close(&w);
	return err;
}

static TCase *watch_tests(void)
{
	TCase *tc = tcase_create("watch");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_is_done_is_heard);
	tcase_add_test(tc, a_move_is_heard);
	tcase_add_test(tc, a_heap_that_shrinks_is_heard);
	tcase_add_test(tc, what_is_not_watched_is_not_heard);
	tcase_add_test(tc, accesses_are_not_paused);
	tcase_add_test(tc, it_is_known_that_something_was_not_heard);
	tcase_add_test(tc, the_end_lets_go);
	return tc;
}

static TCase *device_tests(void)
{
	TCase *tc = tcase_create("device");

	tcase_add_test(tc, the_device_serves_as_well);
	return tc;
}

static TCase *maps_tests(void)
{
	TCase *tc = tcase_create("maps");

	tcase_add_test(tc, own_memory_is_known);
	tcase_add_test(tc, memory_of_others_is_known);
	return tc;
}

int main(void)
{
	Suite *suite = suite_create("base_watch");
	SRunner *runner = srunner_create(suite);
	int failed, err = try_open();

	suite_add_tcase(suite, maps_tests());
	if (!err) {
		suite_add_tcase(suite, watch_tests());
		suite_add_tcase(suite, device_tests());
	}
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	if (err && !failed)
		printf("no userfaultfd here: %s\n", fi_strerror(-err));
	return failed ? 1 : err ? 77 : 0;
}
