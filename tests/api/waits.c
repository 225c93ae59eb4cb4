/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocking reads of completion queues with each wait object. fi_cq(3). */
#include <pthread.h>
#include <sched.h>

#include "obj.h"

#define BUSY_US (10000 * obj_slower()) /* more than falling asleep and waking takes */

static const struct {
	enum fi_wait_obj obj;
	const char *name;
} kinds[] = {
	{FI_WAIT_UNSPEC, "UNSPEC"}, {FI_WAIT_FD, "FD"},         {FI_WAIT_MUTEX_COND, "MUTEX_COND"},
	{FI_WAIT_YIELD, "YIELD"},   {FI_WAIT_POLLFD, "POLLFD"},
};

/* Opens `o` with a queue of this kind. Returns false if another library has none. */
static bool open_kind(struct obj *o, enum fi_wait_obj wait, enum fi_cq_wait_cond cond)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = wait, .wait_cond = cond};
	int ret;

	o->hints = obj_hints(FI_MSG | FI_TAGGED | FI_SOURCE);
	obj_domain(o);
	ret = fi_cq_open(o->domain, &attr, &o->cq, NULL);
	if (ret && api_other())
		return false;
	OK(ret);
	o->av = obj_av(o, FI_AV_UNSPEC, 0);
	o->ep = obj_ready_ep(o, o->cq);
	return true;
}

/*
 * Without completions the call returns at its timeout, not before and not much later. A busy host
 * may delay some of the calls, not all.
 */
static void times_out(struct obj *o, int ms)
{
	uint64_t late = (uint64_t)ms * 1000 + 1000000 * obj_slower(), took = late;
	struct fi_cq_tagged_entry e;

	for (int tries = 0; tries < 4 && took >= late; tries++) {
		uint64_t start = obj_now_us();

		CHECK_EQ(fi_cq_sread(o->cq, &e, 1, NULL, ms), -FI_EAGAIN);
		took = obj_now_us() - start;
		CHECK(took + 1000 >= (uint64_t)ms * 1000);
	}
	CHECK(took < late);
}

/* The processes answer each other from blocking reads, with pauses long enough to fall asleep. */
static void answer(struct api *a, struct obj *o, fi_addr_t peer)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t src;
	int got;

	for (int n = 0; n < 20; n++) {
		OK(fi_recv(o->ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
		if (a->rank == n % 2) {
			obj_sleep_us(n < 10 ? 3000 : 0);
			POST(o->cq, fi_inject(o->ep, &n, sizeof(n), peer));
			n++;
			if (n == 20)
				break;
		}
		CHECK_EQ(fi_cq_sreadfrom(o->cq, &e, 1, &src, NULL, OBJ_PATIENCE_MS), 1);
		CHECK(e.op_context == &got);
		CHECK_EQ(src, peer);
		CHECK_EQ(got, n);
	}
}

static void sread_kind(struct api *a, enum fi_wait_obj wait)
{
	enum fi_wait_obj obj = FI_WAIT_NONE;
	struct obj o = {0};
	fi_addr_t peer;

	if (!open_kind(&o, wait, FI_CQ_COND_NONE))
		return;
	if (!api_other() && wait != FI_WAIT_UNSPEC) {
		OK(fi_control(&o.cq->fid, FI_GETWAITOBJ, &obj));
		CHECK_EQ(obj, wait);
	}
	times_out(&o, 0);
	times_out(&o, 60);
	obj_progress(a, o.cq);
	peer = obj_swap(a, o.ep, o.av);
	answer(a, &o, peer);
	api_meet(a);
	a->progress = NULL;
	obj_close(&o);
}

static void sread_all(struct api *a)
{
	for (size_t i = 0; i < API_COUNT(kinds); i++)
		sread_kind(a, kinds[i].obj);
}

/* Sleeps in poll(2) on the descriptors of FI_WAIT_POLLFD, read anew before each sleep. */
static void sleep_on_pollfds(struct obj *o)
{
	struct fi_wait_pollfd set = {.nfds = 0};
	struct fid *fid = &o->cq->fid;
	struct pollfd fds[64];
	uint64_t index;

	CHECK_EQ(fi_control(fid, FI_GETWAIT, &set), -FI_ETOOSMALL);
	CHECK(set.nfds >= 1 && set.nfds <= API_COUNT(fds));
	index = set.change_index;
	set.fd = fds;
	OK(fi_control(fid, FI_GETWAIT, &set));
	CHECK_EQ(set.change_index, index);
	if (fi_trywait(o->fabric, &fid, 1) == 0)
		CHECK(poll(fds, set.nfds, 1000 * (int)obj_slower()) >= 1);
}

static void pollfd(struct api *a)
{
	struct fi_cq_tagged_entry e;
	struct obj o = {0};
	fi_addr_t peer;

	if (!open_kind(&o, FI_WAIT_POLLFD, FI_CQ_COND_NONE))
		api_skip("no FI_WAIT_POLLFD");
	obj_progress(a, o.cq);
	peer = obj_swap(a, o.ep, o.av);
	for (int n = 0; n < 50; n++) {
		int got = -1;

		if (a->rank == 0) {
			obj_sleep_us(2000);
			POST(o.cq, fi_inject(o.ep, &n, sizeof(n), peer));
		} else {
			OK(fi_recv(o.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
			while (fi_cq_read(o.cq, &e, 1) != 1)
				sleep_on_pollfds(&o);
			CHECK_EQ(got, n);
		}
		api_meet(a);
	}
	a->progress = NULL;
	obj_close(&o);
}

/* Without wait object, blocking reads are refused. */
static void none(struct api *a)
{
	struct fi_cq_tagged_entry e;
	struct obj o = {0};

	(void)a;
	obj_open(&o);
	FAILS(fi_cq_sread(o.cq, &e, 1, NULL, 0));
	if (!api_other())
		CHECK(fi_cq_sread(o.cq, &e, 1, NULL, 0) != -FI_EAGAIN);
	obj_close(&o);
}

/* With a threshold a reader sleeps through the first completions and loses none. */
static void threshold(struct api *a)
{
	struct fi_cq_tagged_entry e[8];
	struct obj o = {0};
	int got[8], have = 0;
	fi_addr_t peer;

	if (!open_kind(&o, FI_WAIT_UNSPEC, FI_CQ_COND_THRESHOLD))
		api_skip("no wait conditions");
	obj_progress(a, o.cq);
	peer = obj_swap(a, o.ep, o.av);
	for (int n = 0; n < 8; n++) {
		if (a->rank == 0) {
			obj_sleep_us(5000);
			POST(o.cq, fi_inject(o.ep, &n, sizeof(n), peer));
		} else {
			OK(fi_recv(o.ep, &got[n], sizeof(int), NULL, FI_ADDR_UNSPEC, &got[n]));
		}
	}
	while (a->rank == 1 && have < 8) {
		ssize_t n =
			fi_cq_sread(o.cq, e, 8, (void *)(uintptr_t)(have ? 1 : 6), OBJ_PATIENCE_MS);

		CHECK(n > 0);
		if (!have && !api_other())
			CHECK(n >= 6);
		for (int i = 0; i < n; i++)
			CHECK(e[i].op_context == &got[have + i]);
		have += (int)n;
	}
	/* At the timeout fewer than the threshold are returned. */
	if (a->rank == 0)
		POST(o.cq, fi_inject(o.ep, &have, sizeof(have), peer));
	else
		OK(fi_recv(o.ep, got, sizeof(int), NULL, FI_ADDR_UNSPEC, got));
	api_meet(a);
	if (a->rank == 1 && !api_other())
		CHECK_EQ(fi_cq_sread(o.cq, e, 8, (void *)(uintptr_t)5, 100), 1);
	api_meet(a);
	obj_close(&o);
}

struct signaller {
	struct fid_cq *cq;
	unsigned int after_ms;
};

static void *signal_later(void *arg)
{
	struct signaller *s = arg;

	obj_sleep_us(s->after_ms * 1000ULL);
	OK(fi_cq_signal(s->cq));
	return NULL;
}

/* fi_cq_signal ends a wait without limit, with each wait object. */
static void signal_kind(enum fi_wait_obj wait)
{
	struct obj o = {0};
	struct signaller s = {.after_ms = 50};
	struct fi_cq_tagged_entry e;
	pthread_t thread;

	if (!open_kind(&o, wait, FI_CQ_COND_NONE))
		return;
	s.cq = o.cq;
	CHECK(pthread_create(&thread, NULL, signal_later, &s) == 0);
	CHECK_EQ(fi_cq_sread(o.cq, &e, 1, NULL, -1), -FI_EAGAIN);
	pthread_join(thread, NULL);
	/* A signal ends one wait only. */
	times_out(&o, 30);
	obj_close(&o);
}

static void signals(struct api *a)
{
	(void)a;
	for (size_t i = 0; i < API_COUNT(kinds); i++)
		signal_kind(kinds[i].obj);
}

/* An error ends a wait. */
static void error_wakes(struct api *a)
{
	struct fi_cq_tagged_entry e;
	struct obj o = {0};
	char big[32] = "", little[4];
	fi_addr_t peer;

	if (!open_kind(&o, FI_WAIT_UNSPEC, FI_CQ_COND_NONE))
		api_skip("no blocking reads");
	obj_progress(a, o.cq);
	peer = obj_swap(a, o.ep, o.av);
	if (a->rank == 0) {
		obj_sleep_us(50000);
		POST(o.cq, fi_inject(o.ep, big, sizeof(big), peer));
	} else {
		OK(fi_recv(o.ep, little, sizeof(little), NULL, FI_ADDR_UNSPEC, little));
		CHECK_EQ(fi_cq_sread(o.cq, &e, 1, NULL, OBJ_PATIENCE_MS), -FI_EAVAIL);
		CHECK_EQ(obj_error(o.cq).err, FI_ETRUNC);
	}
	api_meet(a);
	obj_close(&o);
}

/* One second in fi_cq_sread uses almost no CPU time. */
static void asleep_is_free(struct api *a)
{
	static const enum fi_wait_obj sleeping[] = {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_POLLFD,
						    FI_WAIT_MUTEX_COND};

	(void)a;
	for (size_t i = 0; i < API_COUNT(sleeping); i++) {
		struct obj o = {0};
		uint64_t before, used;

		if (!open_kind(&o, sleeping[i], FI_CQ_COND_NONE))
			continue;
		before = obj_cpu_us();
		times_out(&o, 1000);
		used = obj_cpu_us() - before;
		if (used > BUSY_US) {
			fprintf(stderr, "kind %d: %" PRIu64 " us\n", (int)sleeping[i], used);
			api_fail("a sleeping reader is busy");
		}
		obj_close(&o);
	}
}

/* The same with other sleepers on the same core. */
static void asleep_beside(struct api *a)
{
	cpu_set_t all, one;

	CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	for (size_t cpu = 0; !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	api_meet(a);
	asleep_is_free(a);
}

/*
 * ---- POSIX signals -----------------------------------------------------------------------------
 */

/* Stops and continues this process repeatedly, as a debugger or a container freezer does. */
static void stop_and_go(pid_t pid)
{
	for (int i = 0; i < 5; i++) {
		obj_sleep_us(50000);
		CHECK(kill(pid, SIGSTOP) == 0);
		obj_sleep_us(10000);
		CHECK(kill(pid, SIGCONT) == 0);
	}
}

static struct fid_eq *open_eq(struct obj *o)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD};
	struct fid_eq *eq;

	OK(fi_eq_open(o->fabric, &attr, &eq, NULL));
	return eq;
}

/* A stopped and continued process sleeps until its timeout. */
static void stopped(struct api *a)
{
	pid_t own = getpid(), all[2];
	struct obj o = {0};
	struct fid_eq *eq;
	uint32_t event;
	uint64_t start;
	char entry[64];

	api_swap(a, &own, all, sizeof(own));
	if (!a->rank) {
		stop_and_go(all[1]);
		stop_and_go(all[1]);
		api_meet(a);
		return;
	}
	open_kind(&o, FI_WAIT_FD, FI_CQ_COND_NONE);
	eq = open_eq(&o);
	times_out(&o, 300);
	start = obj_now_us();
	CHECK_EQ(fi_eq_sread(eq, &event, entry, sizeof(entry), 300, 0), -FI_EAGAIN);
	CHECK(obj_now_us() - start + 1000 >= 300000);
	CLOSE(eq);
	obj_close(&o);
	api_meet(a);
}

static void handler(int sig)
{
	(void)sig;
}

/* A handled signal ends the sleep, whatever the timeout. */
static void handled(struct api *a)
{
	pid_t own = getpid(), all[2];
	struct fi_cq_tagged_entry e;
	struct obj o = {0};
	struct fid_eq *eq;
	uint32_t event;
	char entry[64];

	signal(SIGUSR1, handler);
	api_swap(a, &own, all, sizeof(own));
	if (!a->rank) {
		while (!api_heard(a, 1)) {
			CHECK(kill(all[1], SIGUSR1) == 0);
			obj_sleep_us(10000);
		}
		api_meet(a);
		return;
	}
	open_kind(&o, FI_WAIT_FD, FI_CQ_COND_NONE);
	eq = open_eq(&o);
	CHECK_EQ(fi_cq_sread(o.cq, &e, 1, NULL, -1), -FI_EINTR);
	CHECK_EQ(fi_eq_sread(eq, &event, entry, sizeof(entry), -1, 0), -FI_EAGAIN);
	CLOSE(eq);
	obj_close(&o);
	api_meet(a);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"sread", sread_all, 2, {0}},
		{"pollfd", pollfd, 2, {0}},
		{"none", none, 1, {0}},
		{"threshold", threshold, 2, {0}},
		{"signals", signals, 1, {0}},
		{"error_wakes", error_wakes, 2, {0}},
		{"asleep_is_free", asleep_is_free, 1, {0}},
		{"asleep_beside", asleep_beside, 3, {0}},
		{"stopped", stopped, 2, {0}},
		{"handled", handled, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
