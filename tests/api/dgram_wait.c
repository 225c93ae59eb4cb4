/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping until a datagram arrives: in fi_cq_sread, on descriptors, on conditions. Datagrams
 * without a posted receive end no sleep. Threads that share an endpoint; forked children. HW=udp
 */
#include <pthread.h>

#include "obj.h"
#include "lib/dgram.h"

#define LATE_MS 3000 /* maximum sleep for a datagram that was sent */

/* Rank 0's endpoint completes on one queue with the wait object under test. */
struct sleeper {
	struct obj o;
	struct api *a;
	fi_addr_t peer;
};

static void open_sleeper(struct sleeper *s, struct api *a, enum fi_wait_obj wait,
			 enum fi_progress progress)
{
	*s = (struct sleeper){.a = a};
	s->o.hints = obj_hints(FI_MSG | FI_SOURCE);
	dgram_in(s->o.hints);
	s->o.hints->domain_attr->data_progress = progress;
	obj_domain(&s->o);
	s->o.cq = obj_cq(&s->o, wait);
	obj_open(&s->o);
	s->peer = obj_swap(a, s->o.ep, s->o.av);
}

/* Sends after a pause in which the other process falls asleep. */
static void send_late(struct sleeper *s, uint64_t value)
{
	api_meet(s->a);
	obj_sleep_us(20000);
	POST(s->o.cq, fi_inject(s->o.ep, &value, sizeof(value), s->peer));
}

static void asleep_in_sread(struct api *a)
{
	struct fi_cq_tagged_entry e;
	struct sleeper s;
	uint64_t value;

	open_sleeper(&s, a, FI_WAIT_UNSPEC, FI_PROGRESS_UNSPEC);
	for (uint64_t i = 0; i < 20; i++) {
		if (a->rank) {
			send_late(&s, i);
			continue;
		}
		OK(fi_recv(s.o.ep, &value, sizeof(value), NULL, FI_ADDR_UNSPEC, &value));
		api_meet(a);
		CHECK_EQ(fi_cq_sread(s.o.cq, &e, 1, NULL, LATE_MS), 1);
		CHECK(e.op_context == &value && value == i);
	}
	if (!a->rank)
		CHECK_EQ(fi_cq_sread(s.o.cq, &e, 1, NULL, 20), -FI_EAGAIN);
	api_meet(a);
	obj_close(&s.o);
}

/* Sleeping in poll on the queue's descriptor, as applications with an event loop do. */
static void asleep_on_fd(struct api *a)
{
	struct fi_cq_tagged_entry e;
	struct sleeper s;
	uint64_t value;
	struct pollfd p = {.events = POLLIN};

	open_sleeper(&s, a, FI_WAIT_FD, FI_PROGRESS_UNSPEC);
	OK(fi_control(&s.o.cq->fid, FI_GETWAIT, &p.fd));
	for (uint64_t i = 0; i < 20; i++) {
		struct fid *fid = &s.o.cq->fid;
		ssize_t ret;

		if (a->rank) {
			send_late(&s, i);
			continue;
		}
		OK(fi_recv(s.o.ep, &value, sizeof(value), NULL, FI_ADDR_UNSPEC, &value));
		api_meet(a);
		while ((ret = fi_cq_read(s.o.cq, &e, 1)) == -FI_EAGAIN)
			if (fi_trywait(s.o.fabric, &fid, 1) == 0)
				CHECK(poll(&p, 1, LATE_MS) == 1);
		CHECK_EQ(ret, 1);
		CHECK(e.op_context == &value && value == i);
	}
	api_meet(a);
	obj_close(&s.o);
}

/* Only the thread of automatic progress can wake a sleeper on a condition. */
static void asleep_on_cond(struct api *a)
{
	struct fi_mutex_cond pair;
	struct fi_cq_tagged_entry e;
	struct sleeper s;
	uint64_t value;

	open_sleeper(&s, a, FI_WAIT_MUTEX_COND, FI_PROGRESS_AUTO);
	OK(fi_control(&s.o.cq->fid, FI_GETWAIT, &pair));
	for (uint64_t i = 0; i < 10; i++) {
		struct fid *fid = &s.o.cq->fid;
		struct timespec at;
		ssize_t ret;

		if (a->rank) {
			send_late(&s, i);
			continue;
		}
		OK(fi_recv(s.o.ep, &value, sizeof(value), NULL, FI_ADDR_UNSPEC, &value));
		api_meet(a);
		while ((ret = fi_cq_read(s.o.cq, &e, 1)) == -FI_EAGAIN) {
			clock_gettime(CLOCK_REALTIME, &at);
			at.tv_sec += LATE_MS / 1000;
			pthread_mutex_lock(pair.mutex);
			if (fi_trywait(s.o.fabric, &fid, 1) == 0)
				OK(pthread_cond_timedwait(pair.cond, pair.mutex, &at));
			pthread_mutex_unlock(pair.mutex);
		}
		CHECK_EQ(ret, 1);
		CHECK(e.op_context == &value && value == i);
	}
	api_meet(a);
	obj_close(&s.o);
}

static void *post_later(void *arg)
{
	static uint64_t value;
	struct sleeper *s = arg;

	obj_sleep_us(100000);
	OK(fi_recv(s->o.ep, &value, sizeof(value), NULL, FI_ADDR_UNSPEC, &value));
	return NULL;
}

/* A datagram arrived and no receive is posted: the reader sleeps without CPU time until one is. */
static void undisturbed(struct api *a, enum fi_progress progress)
{
	struct fi_cq_tagged_entry e;
	struct sleeper s;
	pthread_t thread;
	uint64_t cpu;

	open_sleeper(&s, a, FI_WAIT_UNSPEC, progress);
	for (uint64_t i = 0; i < 3; i++) {
		if (a->rank) {
			POST(s.o.cq, fi_inject(s.o.ep, &i, sizeof(i), s.peer));
			api_meet(a);
			api_meet(a);
			continue;
		}
		api_meet(a);
		cpu = obj_cpu_us();
		CHECK_EQ(fi_cq_sread(s.o.cq, &e, 1, NULL, 200), -FI_EAGAIN);
		CHECK(obj_cpu_us() - cpu < 100000);
		CHECK(pthread_create(&thread, NULL, post_later, &s) == 0);
		CHECK_EQ(fi_cq_sread(s.o.cq, &e, 1, NULL, LATE_MS), 1);
		CHECK_EQ(*(uint64_t *)e.op_context, i);
		CHECK(pthread_join(thread, NULL) == 0);
		api_meet(a);
	}
	obj_close(&s.o);
}

static void undisturbed_manual(struct api *a)
{
	undisturbed(a, FI_PROGRESS_MANUAL);
}

static void undisturbed_auto(struct api *a)
{
	undisturbed(a, FI_PROGRESS_AUTO);
}

enum { THREADS = 4, EACH = 500 };

struct worker {
	struct sleeper *s;
	unsigned int id;
	unsigned char words[EACH]; /* received data */
};

/* Sends with few messages in flight; shared memory counts the messages taken. */
static void *ask(void *arg)
{
	struct worker *w = arg;
	struct sleeper *s = w->s;
	unsigned int *taken = (unsigned int *)s->a->shared + w->id;
	unsigned char word = (unsigned char)w->id;

	for (unsigned int i = 0; i < EACH; i++) {
		while (i > __atomic_load_n(taken, __ATOMIC_ACQUIRE) + 8)
			sched_yield();
		POST(s->o.cq, fi_send(s->o.ep, &word, 1, NULL, s->peer, w));
	}
	return NULL;
}

/* Each thread may read completions of the other threads' receives. */
static void *answer(void *arg)
{
	struct worker *w = arg;
	struct sleeper *s = w->s;
	unsigned int *taken = s->a->shared;

	for (unsigned int i = 0; i < EACH; i++) {
		struct fi_cq_tagged_entry e;
		unsigned char *word = &w->words[i];
		ssize_t ret;

		OK(fi_recv(s->o.ep, word, 1, NULL, FI_ADDR_UNSPEC, word));
		/* Another thread may have read the completion. */
		OBJ_UNTIL((ret = fi_cq_sread(s->o.cq, &e, 1, NULL, LATE_MS)) != -FI_EAGAIN, );
		CHECK_EQ(ret, 1);
		CHECK_EQ(e.len, 1);
		CHECK(*(unsigned char *)e.op_context < THREADS);
		__atomic_fetch_add(taken + *(unsigned char *)e.op_context, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void threads(struct api *a)
{
	static struct worker w[THREADS];
	pthread_t thread[THREADS];
	unsigned int *taken = a->shared, sent = 0;
	struct fi_cq_tagged_entry e;
	struct sleeper s;

	open_sleeper(&s, a, FI_WAIT_UNSPEC, FI_PROGRESS_UNSPEC);
	for (unsigned int i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.s = &s, .id = i};
		CHECK(pthread_create(&thread[i], NULL, a->rank ? ask : answer, &w[i]) == 0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	while (a->rank && fi_cq_read(s.o.cq, &e, 1) == 1)
		sent++;
	CHECK_EQ(sent, a->rank ? THREADS * EACH : 0);
	api_meet(a);
	for (unsigned int i = 0; i < THREADS; i++)
		CHECK_EQ(taken[i], EACH);
	obj_close(&s.o);
}

/* An alias has its own flags; its completions go to the endpoint's queue. */
static void alias(struct api *a)
{
	struct fi_cq_tagged_entry e;
	struct fid_ep *other;
	struct sleeper s;
	uint64_t value = 0;

	open_sleeper(&s, a, FI_WAIT_NONE, FI_PROGRESS_UNSPEC);
	if (a->rank) {
		OK(fi_ep_alias(s.o.ep, &other, FI_TRANSMIT | FI_MORE));
		value = 3;
		OK(fi_send(other, &value, sizeof(value), NULL, s.peer, &value));
		OK(fi_close(&other->fid)); /* ends its series of FI_MORE */
		obj_done(s.o.cq, &value);
	} else {
		OK(fi_recv(s.o.ep, &value, sizeof(value), NULL, FI_ADDR_UNSPEC, &value));
		e = obj_done(s.o.cq, &value);
		CHECK_EQ(e.len, sizeof(value));
		CHECK_EQ(value, 3);
	}
	api_meet(a);
	obj_close(&s.o);
}

/* A forked child that lives on does not keep its parent's address in use. */
static void child(struct api *a)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);
	struct fi_info *info;
	struct fid_ep *again;
	struct sleeper s = {.a = a};
	int status, ends[2], ready[2];
	char byte;
	pid_t pid;

	if (dgram_device())
		api_skip("its address is not the application's to choose");
	s.o.hints = obj_hints(FI_MSG);
	dgram_in(s.o.hints);
	obj_open(&s.o);
	OK(fi_getname(&s.o.ep->fid, &name, &len));
	CHECK(pipe(ends) == 0 && pipe(ready) == 0);
	pid = fork();
	if (!pid) {
		close(ends[1]);
		close(ready[1]);
		_exit(read(ends[0], &byte, 1) != 0);
	}
	close(ready[1]);
	CHECK(read(ready[0], &byte, 1) == 0); /* the child has finished its setup */
	close(ready[0]);
	CLOSE(s.o.ep);
	info = fi_dupinfo(s.o.info);
	memcpy(info->src_addr, &name, sizeof(name));
	OK(fi_endpoint(s.o.domain, info, &again, NULL));
	OK(fi_ep_bind(again, &s.o.av->fid, 0));
	OK(fi_ep_bind(again, &s.o.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(again));
	s.o.ep = again;
	close(ends[1]);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	fi_freeinfo(info);
	obj_close(&s.o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"sread", asleep_in_sread, 2, {0}},
		{"fd", asleep_on_fd, 2, {0}},
		{"cond", asleep_on_cond, 2, {0}},
		{"undisturbed", undisturbed_manual, 2, {0}},
		{"undisturbed-auto", undisturbed_auto, 2, {0}},
		{"threads", threads, 2, {0}},
		{"alias", alias, 2, {0}},
		{"child", child, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
