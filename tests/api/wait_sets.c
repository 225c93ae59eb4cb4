/* SPDX-License-Identifier: BSD-2-Clause */
/* Wait sets: sleeping on several queues and counters at once. fi_poll(3). */
#include <pthread.h>

#include "obj.h"

#define LATE_MS (1000 * (int)obj_slower()) /* limit; the first message makes the connection */

static struct fid_cq *cq_in_set(struct obj *o, struct fid_wait *set)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_SET, .wait_set = set};
	struct fid_cq *cq;
	int ret = fi_cq_open(o->domain, &attr, &cq, NULL);

	if (ret && api_other())
		api_skip("no wait sets");
	OK(ret);
	return cq;
}

/* fi_wait sleeps on queues and counters together; news of any member ends it. */
static void sleep_on(struct api *a, enum fi_wait_obj wait)
{
	struct fi_wait_attr attr = {.wait_obj = wait};
	struct fi_cntr_attr cntr_attr = {.wait_obj = FI_WAIT_SET};
	struct obj o = {0};
	struct fid_cntr *cntr;
	struct fid_wait *set;
	fi_addr_t peer;
	int got[8];

	obj_domain(&o);
	OK(fi_wait_open(o.fabric, &attr, &set));
	o.cq = cq_in_set(&o, set);
	cntr_attr.wait_set = set;
	OK(fi_cntr_open(o.domain, &cntr_attr, &cntr, NULL));
	obj_open(&o);
	obj_progress(a, o.cq);
	CHECK_EQ(fi_wait(set, 30), -FI_ETIMEDOUT);
	OK(fi_cntr_add(cntr, 1));
	if (!api_other())
		OK(fi_wait(set, LATE_MS));
	peer = obj_swap(a, o.ep, o.av);
	for (int n = 0; n < 8; n++) {
		struct fi_cq_tagged_entry e;

		OK(fi_recv(o.ep, &got[n], sizeof(int), NULL, FI_ADDR_UNSPEC, &got[n]));
		if (a->rank == n % 2) {
			obj_sleep_us(3000);
			POST(o.cq, fi_inject(o.ep, &n, sizeof(n), peer));
			OK(fi_cancel(&o.ep->fid, &got[n]));
			CHECK_EQ(obj_error(o.cq).err, FI_ECANCELED);
			continue;
		}
		OBJ_UNTIL(fi_cq_read(o.cq, &e, 1) == 1, CHECK(fi_wait(set, LATE_MS) == 0));
		CHECK_EQ(got[n], n);
	}
	api_meet(a);
	CLOSE(o.ep);
	CLOSE(o.cq);
	CLOSE(cntr);
	CLOSE(set);
	o.ep = NULL;
	o.cq = NULL;
	obj_close(&o);
}

static void fd(struct api *a)
{
	sleep_on(a, FI_WAIT_FD);
}

static void unspec(struct api *a)
{
	sleep_on(a, FI_WAIT_UNSPEC);
}

static void cond(struct api *a)
{
	sleep_on(a, FI_WAIT_MUTEX_COND);
}

static void yield(struct api *a)
{
	sleep_on(a, FI_WAIT_YIELD);
}

/* Polling the descriptor of the set covers all its members. */
static void exported(struct api *a)
{
	struct fi_wait_attr attr = {.wait_obj = FI_WAIT_FD};
	struct pollfd p = {.events = POLLIN};
	struct obj o = {0};
	struct fid_wait *set;
	struct fid_cq *quiet;
	struct fid *fid;
	fi_addr_t peer;

	obj_domain(&o);
	OK(fi_wait_open(o.fabric, &attr, &set));
	quiet = cq_in_set(&o, set);
	o.cq = cq_in_set(&o, set);
	obj_open(&o);
	fid = &set->fid;
	OK(fi_control(fid, FI_GETWAIT, &p.fd));
	obj_progress(a, o.cq);
	peer = obj_swap(a, o.ep, o.av);
	for (int n = 0; n < 100; n++) {
		struct fi_cq_tagged_entry e;
		int got = -1;

		if (a->rank == 0) {
			obj_sleep_us((uint64_t)(n % 5) * 500);
			POST(o.cq, fi_inject(o.ep, &n, sizeof(n), peer));
			api_meet(a);
			continue;
		}
		OK(fi_recv(o.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
		while (fi_cq_read(o.cq, &e, 1) != 1)
			if (fi_trywait(o.fabric, &fid, 1) == 0)
				CHECK_EQ(poll(&p, 1, LATE_MS), 1);
		CHECK_EQ(got, n);
		api_meet(a);
	}
	CLOSE(o.ep);
	CLOSE(o.cq);
	CLOSE(quiet);
	CLOSE(set);
	o.ep = NULL;
	o.cq = NULL;
	obj_close(&o);
}

struct sleeper {
	struct fid_wait *set;
	int over; /* atomic */
};

static void *sleep_in_set(void *arg)
{
	struct sleeper *s = arg;

	while (!__atomic_load_n(&s->over, __ATOMIC_RELAXED))
		fi_wait(s->set, 5);
	return NULL;
}

/*
 * A thread that sleeps on the set does not take the news from one in the queue's own blocking call,
 * which has no time limit. Elsewhere fi_cq_sread may refuse a queue that is in a set.
 */
static void both(struct api *a, enum fi_wait_obj wait)
{
	struct fi_wait_attr attr = {.wait_obj = wait};
	struct fi_cq_tagged_entry e;
	struct sleeper s = {0};
	struct obj o = {0};
	pthread_t thread;
	fi_addr_t peer;

	if (api_other())
		api_skip("what the manual forbids works in ours");
	obj_domain(&o);
	OK(fi_wait_open(o.fabric, &attr, &s.set));
	o.cq = cq_in_set(&o, s.set);
	obj_open(&o);
	obj_progress(a, o.cq);
	peer = obj_swap(a, o.ep, o.av);
	CHECK_EQ(fi_cq_sread(o.cq, &e, 1, NULL, 10), -FI_EAGAIN);
	CHECK(pthread_create(&thread, NULL, sleep_in_set, &s) == 0);
	for (int n = 0; n < 40; n++) {
		int got = -1;

		if (a->rank == n % 2) {
			obj_sleep_us(3000);
			POST(o.cq, fi_inject(o.ep, &n, sizeof(n), peer));
			continue;
		}
		OK(fi_recv(o.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
		OBJ_UNTIL(fi_cq_sread(o.cq, &e, 1, NULL, -1) == 1, (void)0);
		CHECK_EQ(got, n);
	}
	api_meet(a);
	__atomic_store_n(&s.over, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	CLOSE(o.ep);
	CLOSE(o.cq);
	CLOSE(s.set);
	o.ep = NULL;
	o.cq = NULL;
	obj_close(&o);
}

static void both_fd(struct api *a)
{
	both(a, FI_WAIT_FD);
}

static void both_cond(struct api *a)
{
	both(a, FI_WAIT_MUTEX_COND);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"fd", fd, 2, {0}},
		{"unspec", unspec, 2, {0}},
		{"cond", cond, 2, {0}},
		{"yield", yield, 2, {0}},
		{"native", exported, 2, {0}},
		{"both_fd", both_fd, 2, {0}},
		{"both_cond", both_cond, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
