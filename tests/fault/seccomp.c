/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that long messages work without CMA: a seccomp filter refuses process_vm_readv and
 * process_vm_writev, as containers do, before the endpoint opens or while messages flow. The engine
 * changes to another protocol by itself.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "talk.h"

#define ROUNDS 12

/* The round before which each side loses the calls; ROUNDS: never; -1: before it opens. */
struct plan {
	int loses[2];
};

static int ends[2];

static bool refused(void)
{
	char from = 1, to = 0;
	struct iovec a = {&to, 1}, b = {&from, 1};

	return process_vm_readv(getpid(), &a, 1, &b, 1, 0) < 0 && errno == EPERM;
}

static void lose_the_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (refused())
		return;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		printf("no seccomp filters here: %s\n", strerror(errno));
		exit(77);
	}
	if (!refused())
		fail("the filter does not refuse process_vm_readv");
}

static void side(const struct plan *plan, int which)
{
	fi_addr_t peer;
	struct node n;

	if (plan->loses[which] < 0)
		lose_the_calls();
	node_open(&n, NULL);
	peer = node_meet(&n, ends[which]);
	for (int i = 0; i < ROUNDS; i++) {
		if (i == plan->loses[which])
			lose_the_calls();
		talk(&n, peer, (unsigned int)i, which);
	}
	/* Neither side closes while the other still waits for an answer. */
	tell(ends[which], "", 1);
	hear(ends[which], &(char){0}, 1);
	node_close(&n);
}

static void first(void *arg)
{
	side(arg, 0);
}

static void second(void *arg)
{
	side(arg, 1);
}

static int status_of(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void run(struct plan plan)
{
	pid_t pids[2];
	int a, b;

	wire(ends);
	pids[0] = start("first", first, &plan);
	pids[1] = start("second", second, &plan);
	close(ends[0]);
	close(ends[1]);
	a = status_of(pids[0]);
	b = status_of(pids[1]);
	if (a == 77 || b == 77)
		exit(77);
	if (a || b)
		fail("calls lost before rounds %d and %d: it failed", plan.loses[0], plan.loses[1]);
}

int main(void)
{
	static const struct plan plans[] = {
		{{ROUNDS, ROUNDS}}, {{-1, -1}}, {{-1, ROUNDS}}, {{ROUNDS, -1}},
		{{3, ROUNDS}},      {{4, 6}},   {{-1, 5}},
	};

	alarm(LIMIT);
	need_provider();
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		run(plans[i]);
	return EXIT_SUCCESS;
}
