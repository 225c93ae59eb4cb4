/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that builds with debug checks (make asan) end a program that breaks its promise of FI_THREAD_DOMAIN, whatever it calls. */
#include <pthread.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/ep.h"
#include "suite.h"

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_cntr *cntr;
static struct fid_ep *ep;
static fi_addr_t self;
static char bytes[64];

static void open_objects(uint64_t caps, enum fi_ep_type type, const char *provider)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
	struct fi_info *hints = fi_allocinfo();
	char name[256];
	size_t len = sizeof(name);

	hints->fabric_attr->prov_name = strdup(provider);
	hints->caps = caps;
	hints->ep_attr->type = type;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	ck_assert_int_eq(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(hints);
	ck_assert_int_eq(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	ck_assert_int_eq(fi_domain(fabric, info, &domain, NULL), 0);
	ck_assert_int_eq(fi_av_open(domain, &(struct fi_av_attr){.type = FI_AV_TABLE}, &av, NULL),
			 0);
	ck_assert_int_eq(fi_cq_open(domain, &attr, &cq, NULL), 0);
	ck_assert_int_eq(fi_cntr_open(domain, NULL, &cntr, NULL), 0);
	ck_assert_int_eq(fi_endpoint(domain, info, &ep, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &cntr->fid, FI_SEND), 0);
	ck_assert_int_eq(fi_enable(ep), 0);
	ck_assert_int_eq(fi_getname(&ep->fid, name, &len), 0);
	ck_assert_int_eq(fi_av_insert(av, name, 1, &self, 0, NULL), 1);
}

static void close_objects(void)
{
	struct fid *const all[] = {&ep->fid, &cntr->fid,   &cq->fid,
				   &av->fid, &domain->fid, &fabric->fid};

	for (unsigned int i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		ck_assert_int_eq(fi_close(all[i]), 0);
	fi_freeinfo(info);
}

static void make_call(int which)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t src;

	switch (which) {
	case 0:
		fi_send(ep, bytes, 8, NULL, self, NULL);
		return;
	case 1:
		fi_recv(ep, bytes, 8, NULL, FI_ADDR_UNSPEC, NULL);
		return;
	case 2:
		fi_cq_read(cq, &entry, 1);
		return;
	case 3:
		fi_cq_readfrom(cq, &entry, 1, &src);
		return;
	case 4:
		fi_cntr_read(cntr);
		return;
	case 5:
		fi_tinject(ep, bytes, 8, self, 1);
		return;
	case 6:
		fi_trecv(ep, bytes, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL);
		return;
	case 7:
		fi_write(ep, bytes, 8, NULL, self, 0, 1, NULL);
		return;
	case 8:
		fi_read(ep, bytes, 8, NULL, self, 0, 1, NULL);
		return;
	default:
		fi_atomic(ep, bytes, 1, NULL, self, 0, 1, FI_UINT64, FI_SUM, NULL);
	}
}

#define CALLS       10
#define DGRAM_CALLS 5
#if ENABLE_DEBUG
#define CHECKED(calls) (calls)
#else /* nothing is checked */
#define CHECKED(calls) 0
#endif

static void *call_too(void *arg)
{
	make_call(*(int *)arg);
	return NULL;
}

/* A thread stays inside; another one makes the call. */
static void two_threads(int which)
{
	pthread_t thread;

	shard_enter_alone(&ep_of(ep)->shard, "a call that goes on");
	ck_assert_int_eq(pthread_create(&thread, NULL, call_too, &which), 0);
	pthread_join(thread, NULL);
}

START_TEST(second_thread)
{
	open_objects(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, FI_EP_RDM, "shm");
	two_threads(_i);
}
END_TEST

START_TEST(second_thread_dgram)
{
	open_objects(FI_MSG, FI_EP_DGRAM, "udp");
	two_threads(_i);
}
END_TEST

/* Threads that take turns, and control calls between: nothing is broken. */
START_TEST(one_after_another)
{
	pthread_t thread;

	open_objects(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, FI_EP_RDM, "shm");
	for (int i = 0; i < 4 * CALLS; i++) {
		int which = i % CALLS;

		make_call(which);
		ck_assert_int_eq(pthread_create(&thread, NULL, call_too, &which), 0);
		pthread_join(thread, NULL);
	}
	close_objects();
}
END_TEST

/* A scalable endpoint ends the promise: from then on the second thread waits for the lock. */
START_TEST(no_promise)
{
	struct fid_ep *sep;
	struct shard *shard;

	open_objects(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, FI_EP_RDM, "shm");
	ck_assert_int_eq(fi_scalable_ep(domain, info, &sep, NULL), 0);
	shard = ep_of(ep)->shard.shard;
	for (int i = 0; i < CALLS; i++) {
		pthread_t thread;

		lock_take(&shard->lock);
		ck_assert_int_eq(pthread_create(&thread, NULL, call_too, &i), 0);
		while (!(__atomic_load_n(&shard->lock.state, __ATOMIC_RELAXED) & LOCK_SLEEPERS))
			sched_yield();
		lock_give(&shard->lock);
		pthread_join(thread, NULL);
	}
	ck_assert_int_eq(fi_close(&sep->fid), 0);
	close_objects();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_alone");
	TCase *all = tcase_create("alone");

	tcase_add_loop_test_raise_signal(all, second_thread, SIGABRT, 0, CHECKED(CALLS));
	tcase_add_loop_test_raise_signal(all, second_thread_dgram, SIGABRT, 0,
					 CHECKED(DGRAM_CALLS));
	tcase_add_test(all, one_after_another);
	tcase_add_test(all, no_promise);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
