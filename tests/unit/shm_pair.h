/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared-memory links from child processes to the test's worker (the owner), without the engine.
 * Each packet is passed to the test's `arrived`. For the tests of one-sided access.
 */
#ifndef UNIT_SHM_PAIR_H
#define UNIT_SHM_PAIR_H

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/mr_share.h"
#include "hw/shm/shm.h"
#include "hw/shm/shm_guard.h"
#include "hw/transports.h"
#include "suite.h"

#define LIMIT 40 /* seconds */
#define BOTH  (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define FIRST 0x100001u /* the owner's id of the first child; ids count up from there */

/* Assertion for a child process, where a failed assertion of check would be lost. */
#define EXPECT(what)                                                                               \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "%s:%d: child: %s\n", __FILE__, __LINE__, #what);          \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* The process's own worker: the owner's, in a child the child's. */
static struct domain dom;
static struct idle idle;
static struct opener opener;
static struct shm *own;
static uint64_t cma_word;
static struct region regions[4];
static int *step; /* shared by all processes */

/* For children: the contents of the owner's hello. */
static int owner_fds[WIRE_FDS];
static pid_t owner_pid;
static int pairs[8][2]; /* [0] is the owner's end */

/*
 * Memory that children still own when they end by _exit; the leak checker finds it referenced here.
 * Volatile, so that the compiler keeps stores that nothing reads.
 */
static const void *volatile left_behind[32];
static unsigned int left_behind_count;

static inline void leave_behind(const void *memory)
{
	EXPECT(left_behind_count < sizeof(left_behind) / sizeof(left_behind[0]));
	left_behind[left_behind_count++] = memory;
}

static void (*arrived)(uint32_t src, const struct packet *p);

/* As fast as the engine's: an assertion that holds makes a system call, too. */
static void engine_deliver(struct opener *to, uint32_t src, const struct packet *p)
{
	if (to != &opener)
		ck_abort_msg("a packet for another worker");
	arrived(src, p);
}

static struct link_events events = {.deliver = engine_deliver};

static void side_open(void)
{
	memset(&dom, 0, sizeof(dom));
	memset(&idle, 0, sizeof(idle));
	opener = (struct opener){.events = &events, .dom = &dom, .idle = &idle};
	ck_assert_int_eq(shard_open_main(&dom), 0);
	list_init(&dom.workers);
	ck_assert_int_eq(mr_table_open(&dom), 0);
	ck_assert_int_eq(shm_transport.open(&opener, (void **)&own), 0);
}

static void setup(void)
{
	alarm(LIMIT);
	side_open();
	memset(regions, 0, sizeof(regions));
	cma_word = 0x1122334455667788;
	step = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(step, MAP_FAILED);
	owner_pid = getpid();
	shm_transport.hello_fds(own, owner_fds);
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pairs[i]), 0);
}

static void teardown(void)
{
	shm_transport.close(own);
	mr_table_close(&dom);
	shard_close_all(&dom);
}

static inline struct region *expose(int number, void *at, size_t len, uint64_t access)
{
	struct region *r = &regions[number];

	*r = (struct region){.mr = {.access = access, .length = len, .enabled = true}};
	r->one = (struct iovec){at, len};
	r->mr.iov = &r->one;
	r->mr.iov_count = 1;
	r->mr.dom = &dom;
	ck_assert_int_eq(mr_table_add(dom.mrs, r, true, &r->mr.fid.key), 0);
	mr_share_update(&dom, r);
	return r;
}

static inline struct fi_rma_iov range(int number, uint64_t addr, size_t len)
{
	return (struct fi_rma_iov){.addr = addr, .len = len, .key = regions[number].mr.fid.key};
}

/* Connects child `number` to the owner; the link takes `pid` for the owner's process. */
static inline struct shm_link *join_as(int number, pid_t pid)
{
	struct wire_hello hello = {.cma_addr = (uintptr_t)&cma_word, .cma_value = cma_word};
	struct link_peer peer = {.hello = &hello,
				 .id = FIRST + (uint32_t)number,
				 .fds = {dup(owner_fds[0]), dup(owner_fds[1])},
				 .sock = pairs[number][1],
				 .pid = pid};
	struct link *link;

	EXPECT(shm_transport.connect(own, &peer, &link) == 0);
	leave_behind(link);
	return (struct shm_link *)link;
}

static inline struct shm_link *join(int number)
{
	struct shm_link *s = join_as(number, owner_pid);

	EXPECT(s->pid == owner_pid);
	return s;
}

static inline void leave(struct shm_link *s)
{
	s->link.ops->close(&s->link);
}

/* Forks a child that opens a worker of its own and calls `run`. Returns the child's pid. */
static inline pid_t child(int (*run)(int number), int number)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid) {
		close(pairs[number][1]);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT);
	for (int i = 0; i < 8; i++)
		close(pairs[i][0]);
	leave_behind(own);
	leave_behind(dom.mrs);
	side_open();
	_exit(run(number));
}

static inline int status_of(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline void await_step(int number)
{
	while (__atomic_load_n(step, __ATOMIC_ACQUIRE) < number)
		sched_yield();
}

static inline void next_step(void)
{
	__atomic_add_fetch(step, 1, __ATOMIC_ACQ_REL);
}

#endif
