/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting and progress: event queues with all wait objects, processes that read only one queue or
 * none, threads that sleep while others send. fi_eq(3), fi_domain(3).
 * TIMEOUT=120
 */
#include <pthread.h>

#include "../valgrind.h"
#include "obj.h"
#include "lib/cm.h"

#define PAUSE_US 30000 /* time for the peer to fall asleep */

/* ---- Asleep until an event comes ------------------------------------------------------------- */

enum sleep { IN_SREAD, IN_POLL };

static const struct {
	enum fi_wait_obj obj;
	enum sleep how;
} kinds[] = {
	{FI_WAIT_UNSPEC, IN_SREAD},     {FI_WAIT_FD, IN_SREAD},    {FI_WAIT_FD, IN_POLL},
	{FI_WAIT_MUTEX_COND, IN_SREAD}, {FI_WAIT_YIELD, IN_SREAD},
};

/* Sleeps until the next event, which must be `wanted`. Returns its info. */
static struct fi_info *sleep_for(struct cm *c, struct fid_eq *eq, enum sleep how, uint32_t wanted)
{
	struct fi_eq_cm_entry entry = {0};
	struct fid *fid = &eq->fid;
	struct pollfd p = {.events = POLLIN};
	uint32_t event = 0;
	ssize_t ret;

	if (how == IN_SREAD) {
		ret = fi_eq_sread(eq, &event, &entry, sizeof(entry), OBJ_PATIENCE_MS, 0);
	} else {
		OK(fi_control(fid, FI_GETWAIT, &p.fd));
		while ((ret = fi_eq_read(eq, &event, &entry, sizeof(entry), 0)) == -FI_EAGAIN)
			if (fi_trywait(c->o.fabric, &fid, 1) == 0)
				CHECK(poll(&p, 1, OBJ_PATIENCE_MS) == 1);
	}
	api_check_eq(ret, sizeof(entry), "what was read");
	api_check_eq(event, wanted, "the event");
	return entry.info;
}

#define SLEEP_FOR(...) (api_at(__FILE__, __LINE__), sleep_for(__VA_ARGS__))

/* Opens an end whose event queue has wait object `obj`. */
static void end_of_kind(struct cm *c, struct cm_end *e, struct fi_info *info, enum fi_wait_obj obj)
{
	e->domain = c->o.domain;
	e->info = c->o.info;
	e->eq = cm_eq(c, obj);
	e->cq = obj_cq(&c->o, FI_WAIT_NONE);
	OK(fi_endpoint(c->o.domain, info, &e->ep, e));
	OK(fi_ep_bind(e->ep, &e->eq->fid, 0));
	OK(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV));
	cm_enable(e);
}

/* Each process sleeps until the other's next step. */
static void listening_sleeper(struct cm *c, struct api *a, int kind)
{
	struct obj_name name, all[2];
	struct fi_info *request;
	struct cm_end e;

	c->eq = cm_eq(c, kinds[kind].obj);
	c->pep = cm_pep(c, c->eq);
	OK(fi_listen(c->pep));
	name = obj_name(&c->pep->fid);
	api_swap(a, &name, all, sizeof(name));
	request = SLEEP_FOR(c, c->eq, kinds[kind].how, FI_CONNREQ);
	end_of_kind(c, &e, request, kinds[kind].obj);
	obj_sleep_us(PAUSE_US);
	OK(fi_accept(e.ep, NULL, 0));
	fi_freeinfo(request);
	SLEEP_FOR(c, e.eq, kinds[kind].how, FI_CONNECTED);
	SLEEP_FOR(c, e.eq, kinds[kind].how, FI_SHUTDOWN);
	cm_close_end(c, &e);
	CLOSE(c->pep);
	c->pep = NULL;
	cm_close_eq(c, c->eq);
	c->eq = NULL;
}

static void connecting_sleeper(struct cm *c, struct api *a, int kind)
{
	struct obj_name name = {0}, all[2];
	struct cm_end e;

	api_swap(a, &name, all, sizeof(name));
	end_of_kind(c, &e, c->o.info, kinds[kind].obj);
	obj_sleep_us(PAUSE_US);
	OK(fi_connect(e.ep, all[0].bytes, NULL, 0));
	SLEEP_FOR(c, e.eq, kinds[kind].how, FI_CONNECTED);
	obj_sleep_us(PAUSE_US);
	cm_close_end(c, &e);
}

static void asleep(struct api *a)
{
	struct cm c;

	cm_domain(&c, 0, NULL);
	for (int kind = 0; kind < (int)API_COUNT(kinds); kind++) {
		if (a->rank)
			connecting_sleeper(&c, a, kind);
		else
			listening_sleeper(&c, a, kind);
	}
	cm_close(&c);
}

/* Without events the wait lasts its full time, and uses hardly any CPU time. */
static void idle(struct api *a)
{
	struct fi_eq_cm_entry entry;
	struct cm_end active, passive;
	uint64_t start, cpu;
	uint32_t event;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	cm_both(&c, &active, &passive);
	start = obj_now_us();
	cpu = obj_cpu_us();
	CHECK_EQ(fi_eq_sread(passive.eq, &event, &entry, sizeof(entry), 300, 0), -FI_EAGAIN);
	CHECK_EQ(fi_eq_sread(c.eq, &event, &entry, sizeof(entry), 300, 0), -FI_EAGAIN);
	CHECK(obj_now_us() - start >= 590000);
	CHECK(obj_cpu_us() - cpu < 200000);
	cm_close_both(&c, &active, &passive);
}

/* ---- One queue alone ------------------------------------------------------------------------- */

/* Reading completions alone drives the connection setup and its end; the events are queued. */
static void completions_only(struct api *a)
{
	struct obj_name to;
	uint64_t word = 5, heard = 0;
	struct cm_end e;
	struct cm c;

	cm_domain(&c, 0, NULL);
	to = cm_meet(&c, a);
	if (a->rank) {
		cm_end(&c, &e, c.o.info);
		cm_enable(&e);
		OK(fi_recv(e.ep, &heard, 8, NULL, 0, &heard));
		OK(fi_connect(e.ep, to.bytes, NULL, 0));
		obj_done(e.cq, &heard);
		CHECK_EQ(heard, 5);
		OK(fi_recv(e.ep, &heard, 8, NULL, 0, &heard));
		CHECK_EQ(obj_error(e.cq).err, FI_ECANCELED);
		EVENT(&c, e.eq, FI_CONNECTED, &e.ep->fid);
		EVENT(&c, e.eq, FI_SHUTDOWN, &e.ep->fid);
	} else {
		cm_accept(&c, &e, cm_request(&c));
		POST(e.cq, fi_send(e.ep, &word, 8, NULL, 0, &word));
		obj_done(e.cq, &word);
	}
	if (a->rank == 0)
		obj_sleep_us(PAUSE_US);
	cm_close_end(&c, &e);
	cm_close(&c);
}

/* Reading the event queue alone delivers a message. */
static void events_only(struct api *a)
{
	uint64_t word = 5, heard = 0;
	struct iovec iov = {&word, sizeof(word)};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = &word};
	struct cm_end e;
	struct cm c;
	char done = 0;

	cm_domain(&c, 0, NULL);
	cm_pair(&c, a, &e);
	if (a->rank) {
		OK(fi_recv(e.ep, &heard, 8, NULL, 0, &heard));
		while (!api_heard(a, 0))
			cm_progress(&c);
		api_hear(a, 0, &done, 1);
		CHECK_EQ(heard, 5);
	} else {
		POST(e.cq, fi_sendmsg(e.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
		obj_done(e.cq, &word);
		api_tell(a, 1, &done, 1);
	}
	api_meet(a);
	cm_close_end(&c, &e);
	cm_close(&c);
}

/* Sleeping on the completion queue, from before the connection until after its end. */
static void asleep_for_completions(struct api *a)
{
	struct obj_name to;
	struct fi_cq_tagged_entry entry;
	uint64_t word = 5, heard = 0;
	struct cm_end e;
	struct cm c;

	cm_domain(&c, 0, NULL);
	to = cm_meet(&c, a);
	if (a->rank) {
		e.domain = c.o.domain;
		e.info = c.o.info;
		e.eq = cm_eq(&c, FI_WAIT_NONE);
		e.cq = obj_cq(&c.o, FI_WAIT_UNSPEC);
		OK(fi_endpoint(c.o.domain, c.o.info, &e.ep, NULL));
		OK(fi_ep_bind(e.ep, &e.eq->fid, 0));
		OK(fi_ep_bind(e.ep, &e.cq->fid, FI_TRANSMIT | FI_RECV));
		cm_enable(&e);
		for (int i = 0; i < 2; i++)
			OK(fi_recv(e.ep, &heard, 8, NULL, 0, &heard));
		OK(fi_connect(e.ep, to.bytes, NULL, 0));
		CHECK_EQ(fi_cq_sread(e.cq, &entry, 1, NULL, OBJ_PATIENCE_MS), 1);
		CHECK_EQ(heard, 5);
		CHECK_EQ(fi_cq_sread(e.cq, &entry, 1, NULL, OBJ_PATIENCE_MS), -FI_EAVAIL);
		EVENT(&c, e.eq, FI_CONNECTED, &e.ep->fid);
		EVENT(&c, e.eq, FI_SHUTDOWN, &e.ep->fid);
	} else {
		obj_sleep_us(PAUSE_US);
		cm_accept(&c, &e, cm_request(&c));
		obj_sleep_us(PAUSE_US);
		POST(e.cq, fi_send(e.ep, &word, 8, NULL, 0, &word));
		obj_done(e.cq, &word);
		obj_sleep_us(PAUSE_US);
	}
	cm_close_end(&c, &e);
	cm_close(&c);
}

static void ask_auto(struct fi_info *hints)
{
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
}

/* With automatic progress the connecting side connects and receives without any call. */
static void nothing_read(struct api *a)
{
	struct obj_name to;
	uint64_t word = 5, heard = 0;
	struct iovec iov = {&word, sizeof(word)};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = &word};
	struct cm_end e;
	struct cm c;

	cm_domain(&c, 0, ask_auto);
	to = cm_meet(&c, a);
	if (a->rank) {
		cm_end(&c, &e, c.o.info);
		cm_enable(&e);
		OK(fi_recv(e.ep, &heard, 8, NULL, 0, &heard));
		OK(fi_connect(e.ep, to.bytes, NULL, 0));
		api_meet(a);
		EVENT(&c, e.eq, FI_CONNECTED, &e.ep->fid);
		obj_done(e.cq, &heard);
	} else {
		cm_accept(&c, &e, cm_request(&c));
		POST(e.cq, fi_sendmsg(e.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
		obj_done(e.cq, &word);
		api_meet(a);
	}
	api_meet(a);
	cm_close_end(&c, &e);
	cm_close(&c);
}

/* ---- A thread for events, another for messages ----------------------------------------------- */

#define ROUNDS      1000
#define ROUNDS_BARE 200 /* emulated devices are slow */

static unsigned int rounds(void)
{
	return cm_bare() ? ROUNDS_BARE : ROUNDS;
}

struct watcher {
	struct cm_end *e;
	uint32_t event;
	ssize_t ret;
	long sleeps;
	struct fi_eq_cm_entry entry;
};

static void *watch(void *arg)
{
	struct watcher *w = arg;
	struct rusage use;

	w->ret = fi_eq_sread(w->e->eq, &w->event, &w->entry, sizeof(w->entry), 30000, 0);
	getrusage(RUSAGE_THREAD, &use);
	w->sleeps = use.ru_nvcsw;
	return NULL;
}

static void play(struct api *a, struct cm_end *e)
{
	for (uint64_t i = 0; i < rounds(); i++) {
		uint64_t ball = i, back = 0;

		OK(fi_recv(e->ep, &back, 8, NULL, 0, &back));
		if (a->rank)
			POST(e->cq, fi_inject(e->ep, &ball, 8, 0));
		obj_done(e->cq, &back);
		CHECK_EQ(back, i);
		if (!a->rank)
			POST(e->cq, fi_inject(e->ep, &ball, 8, 0));
	}
}

/* Messages do not wake a thread that sleeps on the event queue; the end of the connection does. */
static void watched(struct api *a, void (*tune)(struct fi_info *hints))
{
	struct watcher w;
	pthread_t thread;
	struct cm_end e;
	struct cm c;

	obj_time_limit(30); /* other busy processes may run in each round */
	cm_domain(&c, 0, tune);
	cm_pair(&c, a, &e);
	w = (struct watcher){.e = &e};
	CHECK(pthread_create(&thread, NULL, watch, &w) == 0);
	obj_sleep_us(PAUSE_US);
	play(a, &e);
	obj_sleep_us(PAUSE_US);
	api_meet(a);
	if (a->rank)
		OK(fi_shutdown(e.ep, 0));
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK_EQ(w.ret, sizeof(w.entry));
	CHECK_EQ(w.event, FI_SHUTDOWN);
	if (w.sleeps > 10 && !in_valgrind()) {
		fprintf(stderr, "woken %ld times by %u messages\n", w.sleeps, rounds());
		api_fail("the sleeper was woken by messages");
	}
	cm_close_end(&c, &e);
	cm_close(&c);
}

static void thread_safe(struct api *a)
{
	watched(a, NULL);
}

static void ask_domain(struct fi_info *hints)
{
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
}

/* An event queue belongs to no domain, so another thread may read it. */
static void thread_domain(struct api *a)
{
	watched(a, ask_domain);
}

static void thread_auto(struct api *a)
{
	watched(a, ask_auto);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"asleep", asleep, 2, {0}},
		{"idle", idle, 1, {0}},
		{"completions-only", completions_only, 2, {0}},
		{"completions-asleep", asleep_for_completions, 2, {0}},
		{"events-only", events_only, 2, {0}},
		{"nothing-read", nothing_read, 2, {0}},
		{"threads", thread_safe, 2, {0}},
		{"threads-domain", thread_domain, 2, {0}},
		{"threads-auto", thread_auto, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
