/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All events that an endpoint can count, in operations and in bytes, without a queue. Errors are
 * counted apart. What ends a wait. fi_cntr(3), fi_endpoint(3).
 */
#include <pthread.h>

#include "obj.h"
#include "lib/rma.h"

#define LEN 70000

/* In the order of `bits`. */
enum { SENDS, RECVS, READS, WRITES, REMOTE_READS, REMOTE_WRITES, EVENTS };

static const uint64_t bits[EVENTS] = {FI_SEND,  FI_RECV,        FI_READ,
				      FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};

/* An endpoint with one counter per event, and the peer's region and address. */
struct counts {
	struct api *a;
	struct obj o; /* o.cq: errors only, if opened */
	struct fid_cntr *cntr[EVENTS];
	uint64_t want[EVENTS], fail[EVENTS];
	struct fid_mr *mr;
	struct rma_key key; /* of the peer */
	fi_addr_t peer;
};

static unsigned char memory[LEN], local[LEN];

static struct fid_cntr *counter(struct obj *o, enum fi_cntr_events events, enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = {.events = events, .wait_obj = wait};
	struct fid_cntr *cntr;

	OK(fi_cntr_open(o->domain, &attr, &cntr, NULL));
	return cntr;
}

static void counts_progress(void *arg)
{
	struct counts *c = arg;

	fi_cntr_read(c->cntr[SENDS]);
	sched_yield();
}

static void counts_domain(struct counts *c)
{
	c->o.hints = obj_hints(FI_MSG | FI_TAGGED | FI_RMA | FI_RMA_EVENT);
	c->o.hints->domain_attr->mr_mode = 0;
	obj_domain(&c->o);
	c->o.av = obj_av(&c->o, FI_AV_UNSPEC, 0);
	c->o.ep = obj_ep(&c->o);
	OK(fi_ep_bind(c->o.ep, &c->o.av->fid, 0));
}

static void counts_meet(struct counts *c)
{
	struct api *a = c->a;

	OK(fi_mr_reg(c->o.domain, memory, LEN, RMA_REMOTE, 0, 9, 0, &c->mr, NULL));
	c->key = (struct rma_key){
		rma_mode(&(struct rma){.o = c->o}, FI_MR_VIRT_ADDR) ? (uintptr_t)memory : 0, 9,
		LEN};
	c->peer = a->ranks > 1 ? obj_swap(a, c->o.ep, c->o.av) : obj_insert_ep(c->o.av, c->o.ep);
	a->progress = counts_progress;
	a->progress_arg = c;
}

static void counts_open(struct counts *c, struct api *a, enum fi_cntr_events events,
			enum fi_wait_obj wait, bool errors)
{
	*c = (struct counts){.a = a};
	counts_domain(c);
	if (errors || api_other()) {
		uint64_t flags = FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION;

		c->o.cq = obj_cq(&c->o, FI_WAIT_NONE);
		OK(fi_ep_bind(c->o.ep, &c->o.cq->fid, flags));
	}
	for (int i = 0; i < EVENTS; i++) {
		c->cntr[i] = counter(&c->o, events, wait);
		OK(fi_ep_bind(c->o.ep, &c->cntr[i]->fid, bits[i]));
	}
	OK(fi_enable(c->o.ep));
	counts_meet(c);
}

static void counts_close(struct counts *c)
{
	api_meet(c->a);
	c->a->progress = NULL;
	for (int i = 0; i < EVENTS; i++)
		CHECK_EQ(fi_close(&c->cntr[i]->fid), -FI_EBUSY);
	CLOSE(c->o.ep);
	c->o.ep = NULL;
	for (int i = 0; i < EVENTS; i++)
		CLOSE(c->cntr[i]);
	CLOSE(c->mr);
	obj_close(&c->o);
}

/* Checks that all six counters have exactly the expected values. */
static void check(struct counts *c)
{
	for (int i = 0; i < EVENTS; i++)
		OBJ_UNTIL(fi_cntr_read(c->cntr[i]) >= c->want[i] &&
				  fi_cntr_readerr(c->cntr[i]) >= c->fail[i],
			  counts_progress(c));
	for (int i = 0; i < EVENTS; i++) {
		api_check_eq((int64_t)fi_cntr_read(c->cntr[i]), (int64_t)c->want[i], "counted");
		api_check_eq((int64_t)fi_cntr_readerr(c->cntr[i]), (int64_t)c->fail[i], "errors");
	}
}

#define COUNTED(c) (api_at(__FILE__, __LINE__), check(c))

#define RETRY(c, call)                                                                             \
	do {                                                                                       \
		ssize_t retry_ret;                                                                 \
                                                                                                   \
		api_at(__FILE__, __LINE__);                                                        \
		OBJ_UNTIL((retry_ret = (call)) != -FI_EAGAIN, counts_progress(c));                 \
		api_check_eq(retry_ret, 0, #call);                                                 \
	} while (0)

/* ---- Counts ---------------------------------------------------------------------------------- */

/* Posts one operation from rank 0 to the last rank. `form` picks the call. */
static void transfer(struct counts *c, int event, size_t len, unsigned int form)
{
	struct fid_ep *ep = c->o.ep;
	uint64_t at = c->key.base, key = c->key.key;

	switch (event) {
	case SENDS:
		if (form % 3 == 0)
			RETRY(c, fi_send(ep, local, len, NULL, c->peer, NULL));
		else if (form % 3 == 1 || len > c->o.info->tx_attr->inject_size)
			RETRY(c, fi_tsend(ep, local, len, NULL, c->peer, 1, NULL));
		else
			RETRY(c, fi_inject(ep, local, len, c->peer));
		break;
	case READS:
		RETRY(c, fi_read(ep, local, len, NULL, c->peer, at, key, NULL));
		break;
	default:
		if (form % 2 || len > c->o.info->tx_attr->inject_size)
			RETRY(c, fi_write(ep, local, len, NULL, c->peer, at, key, NULL));
		else
			RETRY(c, fi_inject_write(ep, local, len, c->peer, at, key));
	}
}

static void receive(struct counts *c, size_t len, unsigned int form)
{
	bool tagged = form % 3 == 1 || (form % 3 == 2 && len > c->o.info->tx_attr->inject_size);

	if (tagged)
		RETRY(c, fi_trecv(c->o.ep, memory, LEN, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	else
		RETRY(c, fi_recv(c->o.ep, memory, LEN, NULL, FI_ADDR_UNSPEC, NULL));
}

/* Returns the event at the target for an event at the initiator. */
static int remote_of(int event)
{
	return event == SENDS ? RECVS : event == READS ? REMOTE_READS : REMOTE_WRITES;
}

static void every_event(struct api *a, enum fi_cntr_events unit)
{
	static const int kinds[] = {SENDS, READS, WRITES};
	static const size_t lens[] = {8, 100, 4096, 5000, LEN};
	struct counts c;

	counts_open(&c, a, unit, FI_WAIT_NONE, false);
	for (unsigned int n = 0; n < 6 * API_COUNT(kinds) * API_COUNT(lens); n++) {
		int event = kinds[n % API_COUNT(kinds)];
		size_t len = lens[n / API_COUNT(kinds) % API_COUNT(lens)];
		unsigned int form = n / API_COUNT(kinds) / API_COUNT(lens);
		uint64_t add = unit == FI_CNTR_EVENTS_BYTES ? len : 1;

		if (a->rank == a->ranks - 1 && event == SENDS)
			receive(&c, len, form);
		if (a->rank == 0) {
			transfer(&c, event, len, form);
			c.want[event] += add;
		}
		if (a->rank == a->ranks - 1)
			c.want[remote_of(event)] += add;
		COUNTED(&c);
		api_meet(a); /* the next operation must not count before this check */
	}
	counts_close(&c);
}

static void operations(struct api *a)
{
	every_event(a, FI_CNTR_EVENTS_COMP);
}

static void bytes(struct api *a)
{
	if (api_other())
		api_skip("it counts no bytes");
	every_event(a, FI_CNTR_EVENTS_BYTES);
}

/* One counter bound to all six events counts their sum. */
static void all_in_one(struct api *a)
{
	uint64_t all = 0;
	struct counts c = {.a = a};
	int got;

	if (api_other())
		api_skip("the manual asks for queues");
	counts_domain(&c);
	c.cntr[SENDS] = counter(&c.o, FI_CNTR_EVENTS_COMP, FI_WAIT_NONE);
	for (int i = 0; i < EVENTS; i++)
		all |= bits[i];
	OK(fi_ep_bind(c.o.ep, &c.cntr[SENDS]->fid, all));
	OK(fi_enable(c.o.ep));
	counts_meet(&c);
	OK(fi_recv(c.o.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, NULL));
	transfer(&c, SENDS, sizeof(got), 0);
	transfer(&c, WRITES, 8, 0);
	transfer(&c, READS, LEN, 0);
	OBJ_UNTIL(fi_cntr_read(c.cntr[SENDS]) == 6, counts_progress(&c));
	obj_sleep_us(1000);
	CHECK_EQ(fi_cntr_read(c.cntr[SENDS]), 6);
	a->progress = NULL;
	CLOSE(c.o.ep);
	c.o.ep = NULL;
	CLOSE(c.cntr[SENDS]);
	CLOSE(c.mr);
	obj_close(&c.o);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Operations that the target refuses count as errors at the initiator only. */
static void refused(struct api *a, enum fi_cntr_events unit)
{
	static const size_t lens[] = {8, LEN};
	struct counts c;

	counts_open(&c, a, unit, FI_WAIT_UNSPEC, true);
	for (unsigned int n = 0; a->rank == 0 && n < 8; n++) {
		size_t len = lens[n / 4];
		int event = n % 2 ? READS : WRITES;

		c.key.key = 10 + n;
		transfer(&c, event, len, n / 2);
		c.fail[event]++;
		CHECK_EQ(obj_error(c.o.cq).err, FI_EACCES);
		COUNTED(&c);
		c.key.key = 9;
		transfer(&c, event, len, n / 2);
		c.want[event] += unit == FI_CNTR_EVENTS_BYTES ? len : 1;
		COUNTED(&c);
		OK(fi_cntr_wait(c.cntr[event], c.want[event], 0));
	}
	api_meet(a);
	if (a->rank == 1)
		for (int i = 0; i < EVENTS; i++)
			CHECK_EQ(fi_cntr_readerr(c.cntr[i]), 0);
	counts_close(&c);
}

static void errors(struct api *a)
{
	if (api_other())
		api_skip("not all that is wrong is found there");
	refused(a, FI_CNTR_EVENTS_COMP);
	refused(a, FI_CNTR_EVENTS_BYTES);
}

/* Each new error ends a wait for a value that is not reached. */
static void error_wakes(struct api *a)
{
	static const enum fi_wait_obj objects[] = {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_MUTEX_COND,
						   FI_WAIT_YIELD};

	if (api_other())
		api_skip("not all that is wrong is found there");
	for (size_t i = 0; i < API_COUNT(objects); i++) {
		struct counts c;

		counts_open(&c, a, FI_CNTR_EVENTS_COMP, objects[i], true);
		for (unsigned int n = 0; a->rank == 0 && n < 6; n++) {
			int event = n % 2 ? READS : WRITES;

			c.key.key = 77;
			transfer(&c, event, n / 2 == 1 ? LEN : 8, n / 2 + 1);
			CHECK_EQ(fi_cntr_wait(c.cntr[event], 5, OBJ_PATIENCE_MS), -FI_EAVAIL);
			c.fail[event]++;
			CHECK_EQ(fi_cntr_readerr(c.cntr[event]), c.fail[event]);
			CHECK_EQ(fi_cntr_wait(c.cntr[event], 5, 10), -FI_ETIMEDOUT);
			CHECK_EQ(obj_error(c.o.cq).err, FI_EACCES);
			COUNTED(&c);
		}
		counts_close(&c);
	}
}

/* ---- Waits ----------------------------------------------------------------------------------- */

/* Each event wakes its waiter: rank 1 sleeps for remote events, rank 0 for its own. */
static void events_wake(struct api *a)
{
	static const int kinds[] = {SENDS, READS, WRITES};
	static const size_t lens[] = {8, LEN};
	struct counts c;

	counts_open(&c, a, FI_CNTR_EVENTS_COMP, FI_WAIT_UNSPEC, false);
	for (unsigned int n = 0; n < 12; n++) {
		int event = kinds[n % 3];

		if (a->rank == 1 && event == SENDS)
			receive(&c, lens[n / 3 % 2], 0);
		api_meet(a);
		if (a->rank == 0) {
			obj_sleep_us(5000);
			transfer(&c, event, lens[n / 3 % 2], 0);
		}
		event = a->rank == 0 ? event : remote_of(event);
		c.want[event]++;
		OK(fi_cntr_wait(c.cntr[event], c.want[event], OBJ_PATIENCE_MS));
		COUNTED(&c);
	}
	counts_close(&c);
}

/* A wait times out; a value already reached returns at once. */
static void time_passes(struct api *a)
{
	static const int times[] = {0, 1, 30};
	struct counts c;

	if (api_other())
		api_skip("no time at all is too short for it");
	counts_open(&c, a, FI_CNTR_EVENTS_COMP, FI_WAIT_UNSPEC, false);
	for (size_t i = 0; i < API_COUNT(times); i++)
		for (int event = 0; event < EVENTS; event++) {
			uint64_t start = obj_now_us();

			CHECK_EQ(fi_cntr_wait(c.cntr[event], 1, times[i]), -FI_ETIMEDOUT);
			CHECK(obj_now_us() - start >= (uint64_t)times[i] * 1000 * 9 / 10);
			OK(fi_cntr_wait(c.cntr[event], 0, 1000));
		}
	OK(fi_cntr_add(c.cntr[WRITES], 3));
	OK(fi_cntr_wait(c.cntr[WRITES], 3, 1000));
	CHECK_EQ(fi_cntr_wait(c.cntr[WRITES], 4, 1), -FI_ETIMEDOUT);
	counts_close(&c);
}

static void *add_later(void *cntr)
{
	obj_sleep_us(50000);
	OK(fi_cntr_add(cntr, 1));
	return NULL;
}

/* A counter of a wait set can be waited for by itself, too. */
static void waits_in_set(struct api *a)
{
	struct fi_wait_attr set_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_SET};
	struct fid_cntr *in_set;
	struct fid_wait *set;
	struct obj o = {0};
	pthread_t thread;

	(void)a;
	if (api_other())
		api_skip("what the manual forbids works in ours");
	obj_domain(&o);
	OK(fi_wait_open(o.fabric, &set_attr, &set));
	attr.wait_set = set;
	OK(fi_cntr_open(o.domain, &attr, &in_set, NULL));
	CHECK_EQ(fi_cntr_wait(in_set, 1, 10), -FI_ETIMEDOUT);
	CHECK(pthread_create(&thread, NULL, add_later, in_set) == 0);
	OK(fi_cntr_wait(in_set, 1, -1));
	pthread_join(thread, NULL);
	CLOSE(in_set);
	CLOSE(set);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"operations", operations, 2, {0}},
		{"operations_self", operations, 1, {0}},
		{"bytes", bytes, 2, {0}},
		{"bytes_self", bytes, 1, {0}},
		{"all_in_one", all_in_one, 1, {0}},
		{"errors", errors, 2, {0}},
		{"error_wakes", error_wakes, 2, {0}},
		{"events_wake", events_wake, 2, {0}},
		{"time_passes", time_passes, 1, {0}},
		{"waits_in_set", waits_in_set, 1, {0}},
		{"operations_no_cma", operations, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"bytes_no_cma", bytes, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
