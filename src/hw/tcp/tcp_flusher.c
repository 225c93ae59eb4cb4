/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * While links gather, the thread ticks. Setting a timer costs more than sending a packet on virtual
 * machines, so none is set for what one link has gathered. Rests are looked at less often: a process
 * that sends much leaves one behind at most of its calls, and its next one sends it.
 */
#include "hw/tcp/tcp_flusher.h"

#include <errno.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/forked.h"
#include "base/log.h"
#include "hw/tcp/tcp.h"
#include "hw/tcp/tcp_rest.h"

#define TICK_NS    50000   /* ns between two ticks: no gathered packet waits longer */
#define LOOK_NS    5000000 /* ns between two looks at rests */
#define IDLE_TICKS 20u     /* ticks or looks that found nothing; then there are no more of them */
#define REST_MS    20      /* ms without a call after which a rest is sent */

enum sleep {
	TICKS,
	LOOKS,  /* until somebody gathers, or for the next look */
	ASLEEP, /* until there is something */
};

static struct {
	/* Guarded by FORKED_FLUSHER_OPENING. */
	unsigned int users; /* workers that gather */
	pthread_t thread;
	/* Guarded by FORKED_FLUSHER, which is taken before the lock of a gather. */
	struct list gathers;
	struct list rests;        /* struct tcp_rest.in_flusher */
	unsigned int added;       /* calls of tcp_flusher_add */
	unsigned int added_rests; /* calls of tcp_flusher_add_rest */
	enum sleep sleep;         /* but for TICKS the thread waits for `wake` */
	bool stop;
	sem_t wake;
} flusher = {.gathers = {&flusher.gathers, &flusher.gathers},
	     .rests = {&flusher.rests, &flusher.rests}};

void tcp_flusher_send(struct tcp_gather *g)
{
	ssize_t sent;

	if (g->err || g->sent == g->len)
		return;
	sent = send(g->sock, g->bytes + g->sent, g->len - g->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent > 0)
		g->sent += (size_t)sent;
	else if (sent < 0 && !tcp_passing(errno))
		g->err = errno;
}

/* Sends for all links; rests that have been here for so many ms. Locked. */
static void send_all(unsigned int ms)
{
	uint64_t now = clock_coarse_ms();

	LIST_EACH (node, &flusher.gathers) {
		struct tcp_gather *g = LIST_ENTRY(node, struct tcp_gather, in_flusher);

		lock_take(&g->lock);
		tcp_flusher_send(g);
		lock_give(&g->lock);
	}
	LIST_EACH (node, &flusher.rests) {
		struct tcp_rest *r = LIST_ENTRY(node, struct tcp_rest, in_flusher);

		if (now - r->since_ms >= ms)
			tcp_rest_send(r);
	}
}

/* Wakes the thread from a sleep at least so deep. Locked. */
static void wake_thread(enum sleep depth)
{
	if (flusher.sleep < depth)
		return;
	flusher.sleep = TICKS;
	sem_post(&flusher.wake);
}

static void doze(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	sem_clockwait(&flusher.wake, CLOCK_MONOTONIC, &until);
}

/* One tick, or a sleep. Locked; releases the lock meanwhile. */
static void pause_thread(enum sleep depth)
{
	const struct timespec tick = {.tv_nsec = TICK_NS};

	flusher.sleep = depth;
	forked_give(FORKED_FLUSHER);
	if (depth == TICKS)
		nanosleep(&tick, NULL);
	else if (depth == LOOKS)
		doze();
	else
		while (sem_wait(&flusher.wake) && errno == EINTR)
			;
	forked_take(FORKED_FLUSHER);
	flusher.sleep = TICKS;
}

static void *run(void *arg)
{
	unsigned int added = 0, rests = 0, idle = 0, quiet = 0;

	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	forked_take(FORKED_FLUSHER);
	while (!flusher.stop) {
		idle = list_empty(&flusher.gathers) && flusher.added == added ? idle + 1 : 0;
		quiet = list_empty(&flusher.rests) && flusher.added_rests == rests ? quiet + 1 : 0;
		added = flusher.added;
		rests = flusher.added_rests;
		pause_thread(idle < IDLE_TICKS ? TICKS : quiet < IDLE_TICKS ? LOOKS : ASLEEP);
		send_all(REST_MS);
	}
	forked_give(FORKED_FLUSHER);
	return arg;
}

void tcp_flusher_add(struct tcp_gather *g)
{
	forked_take(FORKED_FLUSHER);
	list_push(&flusher.gathers, &g->in_flusher);
	flusher.added++;
	wake_thread(LOOKS);
	forked_give(FORKED_FLUSHER);
}

void tcp_flusher_remove(struct tcp_gather *g)
{
	forked_take(FORKED_FLUSHER);
	list_remove(&g->in_flusher);
	forked_give(FORKED_FLUSHER);
}

void tcp_flusher_add_rest(struct tcp_rest *r)
{
	forked_take(FORKED_FLUSHER);
	r->since_ms = clock_coarse_ms();
	list_push(&flusher.rests, &r->in_flusher);
	flusher.added_rests++;
	wake_thread(ASLEEP);
	forked_give(FORKED_FLUSHER);
}

void tcp_flusher_remove_rest(struct tcp_rest *r)
{
	forked_take(FORKED_FLUSHER);
	list_remove(&r->in_flusher);
	forked_give(FORKED_FLUSHER);
}

/* What the parent has to send is the parent's, and its thread is not here. */
static void in_child(void)
{
	flusher.users = 0;
	list_init(&flusher.gathers);
	list_init(&flusher.rests);
}

static void install(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* 0 or a positive error. */
static int start(void)
{
	sigset_t all, old;
	int err;

	flusher.sleep = TICKS;
	flusher.stop = false;
	sem_init(&flusher.wake, 0, 0);
	/* The application's own threads take all signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&flusher.thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_setname_np(flusher.thread, "weft-flusher");
	return err;
}

/* 0 or a positive error. */
static int join_users(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int err = 0;

	pthread_once(&once, install);
	forked_take(FORKED_FLUSHER_OPENING);
	if (!flusher.users)
		err = start();
	flusher.users += !err;
	forked_give(FORKED_FLUSHER_OPENING);
	return err;
}

bool tcp_flusher_open(struct tcp *t)
{
	int err;

	if (t->flusher || t->no_flusher)
		return t->flusher;
	err = join_users();
	if (err)
		LOG_WARN(LOG_EP_CTRL,
			 "tcp: what the kernel does not take waits for calls, without a thread: %s",
			 fi_strerror(err));
	t->no_flusher = err != 0;
	t->flusher = !err;
	return t->flusher;
}

void tcp_flusher_close(struct tcp *t)
{
	if (!t->flusher)
		return;
	forked_take(FORKED_FLUSHER_OPENING);
	if (--flusher.users == 0) {
		forked_take(FORKED_FLUSHER);
		flusher.stop = true;
		wake_thread(LOOKS);
		forked_give(FORKED_FLUSHER);
		pthread_join(flusher.thread, NULL);
		sem_destroy(&flusher.wake);
	}
	forked_give(FORKED_FLUSHER_OPENING);
}

/* The process ends by exit() or a return from main: the thread would not send in time. */
static __attribute__((destructor)) void at_exit(void)
{
	forked_take(FORKED_FLUSHER);
	send_all(0);
	forked_give(FORKED_FLUSHER);
}
