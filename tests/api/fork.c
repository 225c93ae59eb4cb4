/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork(2) in a program that uses the library: the parent's endpoints work whatever the child does.
 * Peers notice the death of a process even if its child lives.
 */
#include <pthread.h>
#include <rdma/providers/fi_prov.h>

#include "obj.h"
#include "lib/rma.h"

#define ROUNDS   40
#define LONG_LEN (300u << 10)

struct half {
	struct obj o;
	fi_addr_t peer;
	char *in, *out;
};

static void open_half(struct half *h, struct api *a, enum fi_progress progress)
{
	h->o.hints = obj_hints(FI_MSG | FI_TAGGED);
	h->o.hints->domain_attr->data_progress = progress;
	obj_open(&h->o);
	obj_progress(a, h->o.cq);
	h->peer = obj_swap(a, h->o.ep, h->o.av);
	h->in = malloc(LONG_LEN);
	h->out = malloc(LONG_LEN);
}

static void close_half(struct half *h, struct api *a)
{
	api_meet(a);
	obj_close(&h->o);
	free(h->in);
	free(h->out);
}

/* Both processes send and receive, short and long messages in turns. */
static void exchange(struct half *h, unsigned int rounds)
{
	for (unsigned int n = 0; n < rounds; n++) {
		size_t len = n % 3 ? 100 : LONG_LEN;

		data_fill(h->out, len, n);
		OK(fi_trecv(h->o.ep, h->in, len, NULL, FI_ADDR_UNSPEC, n, 0, h->in));
		POST(h->o.cq, fi_tsend(h->o.ep, h->out, len, NULL, h->peer, n, h->out));
		obj_next(h->o.cq, NULL);
		obj_next(h->o.cq, NULL);
		data_check(h->in, len, n);
	}
}

static void reap(pid_t pid)
{
	int status = 0;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
}

/* Children that end at once, by exit, or by exec, while the parent communicates. */
static void children(struct api *a, enum fi_progress progress)
{
	struct half h = {0};

	open_half(&h, a, progress);
	exchange(&h, 5);
	for (int n = 0; n < 6; n++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0 && n % 3 == 0)
			_exit(0);
		if (pid == 0 && n % 3 == 1)
			exit(0);
		if (pid == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		exchange(&h, 5);
		reap(pid);
		exchange(&h, ROUNDS);
	}
	close_half(&h, a);
}

static void children_end(struct api *a)
{
	children(a, FI_PROGRESS_MANUAL);
}

static void children_end_auto(struct api *a)
{
	children(a, FI_PROGRESS_AUTO);
}

/* A child that lives on and overwrites its private memory. */
static void child_lives(struct api *a, enum fi_progress progress)
{
	struct half h = {0};
	pid_t pid;

	open_half(&h, a, progress);
	exchange(&h, 5);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memset(h.in, 0xff, LONG_LEN);
		memset(h.out, 0xff, LONG_LEN);
		for (;;)
			pause();
	}
	exchange(&h, 5 * ROUNDS);
	close_half(&h, a);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static void child_stays(struct api *a)
{
	child_lives(a, FI_PROGRESS_MANUAL);
}

static void child_stays_auto(struct api *a)
{
	child_lives(a, FI_PROGRESS_AUTO);
}

/* After exec the child has none of the library's descriptors, so peers notice the parent's end. */
static void child_execs(struct api *a)
{
	struct half h = {0};
	pid_t pid;

	open_half(&h, a, FI_PROGRESS_MANUAL);
	exchange(&h, 5);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		execl("/bin/sleep", "sleep", "8", (char *)NULL);
		_exit(1);
	}
	exchange(&h, 5 * ROUNDS);
	close_half(&h, a);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

/* A child opens and uses its own objects; the parent's work on. */
static void child_uses_it(struct api *a)
{
	struct half h = {0};
	pid_t pid;

	open_half(&h, a, FI_PROGRESS_MANUAL);
	exchange(&h, 5);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct obj o = {0};
		fi_addr_t self;
		int word = 5, got = 0;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		obj_open(&o);
		self = obj_insert_ep(o.av, o.ep);
		OK(fi_recv(o.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
		POST(o.cq, fi_inject(o.ep, &word, sizeof(word), self));
		obj_done(o.cq, &got);
		CHECK_EQ(got, 5);
		obj_close(&o);
		_exit(0);
	}
	exchange(&h, 2 * ROUNDS);
	reap(pid);
	exchange(&h, ROUNDS);
	close_half(&h, a);
}

/* Returns the result of a message to a dead process; 0: no completion yet. */
static int outcome(struct half *h)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = {0};
	ssize_t ret = fi_tsend(h->o.ep, h->out, 100, NULL, h->peer, 1, h->out);

	if (ret && ret != -FI_EAGAIN)
		return (int)ret;
	ret = fi_cq_read(h->o.cq, &e, 1);
	if (ret != -FI_EAVAIL)
		return 0;
	CHECK_EQ(fi_cq_readerr(h->o.cq, &err, 0), 1);
	return -err.err;
}

/* A child that lives until rank 0 has ended, with or without exec. */
static void linger(struct api *a, bool exec)
{
	char byte;

	a->progress = NULL; /* the endpoint belongs to the parent */
	api_meet(a);
	if (exec && dup2(a->socks[0], 0) == 0)
		execl("/bin/cat", "cat", (char *)NULL);
	while (!exec && recv(a->socks[0], &byte, 1, 0) > 0)
		;
	_exit(0);
}

/* Rank 1 forks a child that keeps all it inherited, and dies. */
static void dies_with_child(struct api *a, bool exec)
{
	struct half h = {0};
	pid_t pid;

	open_half(&h, a, FI_PROGRESS_MANUAL);
	exchange(&h, 5);
	if (a->rank == 1) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			linger(a, exec);
		obj_sleep_us(200000);
		_exit(0);
	}
	api_meet(a); /* with the child of rank 1 */
	OBJ_UNTIL(outcome(&h) < 0, obj_sleep_us(1000));
	a->progress = NULL;
	obj_close(&h.o);
	free(h.in);
	free(h.out);
}

static void death_is_seen(struct api *a)
{
	dies_with_child(a, false);
}

static void death_is_seen_exec(struct api *a)
{
	dies_with_child(a, true);
}

/* The child closes its copy of a region while the parent's progress thread serves that region. */
static void child_closes_region(struct api *a)
{
	static uint64_t words[4];
	struct fid_mr *mr;
	struct rma_key key;
	struct rma r;

	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED, .progress = FI_PROGRESS_AUTO});
	mr = rma_reg(&r, words, sizeof(words), RMA_REMOTE);
	key = rma_key(&r, mr, words, sizeof(words));
	for (unsigned int n = api_times(10 * ROUNDS); n > 0; n--) {
		uint64_t word = 1;
		pid_t pid;

		for (int i = 0; i < 20; i++)
			POST(r.o.cq, fi_inject_write(r.o.ep, &word, sizeof(word), r.addr[0],
						     key.base, key.key));
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			alarm(api_limit() / 2); /* limit, in case fi_close hangs */
			_exit(fi_close(&mr->fid) != 0);
		}
		reap(pid);
		r.done[0] += 20;
	}
	rma_counted(&r);
	CLOSE(mr);
	rma_close(&r);
}

/* Calls that take locks of the process, whichever objects they are for. */
static void take_locks(struct fi_info *info, const char *name)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .name = (char *)(uintptr_t)name};
	struct fi_provider prov = {.name = "fork"};
	struct fi_info *again;
	struct fi_param *params;
	struct obj o = {.info = fi_dupinfo(info)};
	int count;

	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, info, &again));
	fi_freeinfo(again);
	fi_param_define(&prov, "test", FI_PARAM_INT, "a test's");
	OK(fi_getparams(&params, &count));
	fi_freeparams(params);
	obj_domain(&o);
	OK(fi_av_open(o.domain, &attr, &o.av, NULL));
	obj_close(&o);
}

static bool over; /* atomic */

static void *take_locks_often(void *arg)
{
	char name[64];

	/* A new name each time: one that a child has not let go of yet is still in use. */
	for (unsigned int n = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); n++) {
		snprintf(name, sizeof(name), "fork-%d-%u", (int)gettid(), n);
		take_locks(arg, name);
	}
	return NULL;
}

/* Whatever other threads of the parent do, a child may begin anew. */
static void child_begins(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_MSG)};
	pthread_t thread[2];
	char name[64];

	(void)a;
	CHECK(obj_find(&o, FI_VERSION(1, 17)));
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&thread[i], NULL, take_locks_often, o.info) == 0);
	for (unsigned int n = api_times(10 * ROUNDS); n > 0; n--) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0) {
			alarm(api_limit() / 2); /* limit, in case a call hangs */
			snprintf(name, sizeof(name), "fork-%d", (int)getpid());
			take_locks(o.info, name);
			_exit(0);
		}
		reap(pid);
	}
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"children_end", children_end, 2, {0}},
		{"children_end_auto", children_end_auto, 2, {0}},
		{"child_stays", child_stays, 2, {0}},
		{"child_stays_auto", child_stays_auto, 2, {0}},
		{"child_execs", child_execs, 2, {0}},
		{"child_uses_it", child_uses_it, 2, {0}},
		{"child_begins", child_begins, 1, {0}},
		{"child_closes_region", child_closes_region, 1, {0}},
		{"death_is_seen", death_is_seen, 2, {0}},
		{"death_is_seen_exec", death_is_seen_exec, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
