/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * While links gather, the thread ticks. Setting a timer costs more than sending a packet on virtual
 * machines, so none is set for what one link has gathered.
 */
#include "hw/tcp/tcp_flusher.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "base/forked.h"
#include "base/log.h"
#include "hw/tcp/tcp.h"

#define TICK_NS    50000 /* ns between two ticks: no gathered packet waits longer */
#define IDLE_TICKS 20u   /* ticks in which nobody gathered; then the thread sleeps */

static struct {
	/* Guarded by FORKED_FLUSHER_OPENING. */
	unsigned int users; /* workers that gather */
	pthread_t thread;
	/* Guarded by FORKED_FLUSHER, which is taken before the lock of a gather. */
	struct list gathers;
	unsigned int added; /* calls of tcp_flusher_add */
	bool asleep;        /* the thread waits for `wake` */
	bool stop;
	sem_t wake;
} flusher = {.gathers = {&flusher.gathers, &flusher.gathers}};

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

/* Sends for all links. Locked. */
static void send_all(void)
{
	LIST_EACH (node, &flusher.gathers) {
		struct tcp_gather *g = LIST_ENTRY(node, struct tcp_gather, in_flusher);

		lock_take(&g->lock);
		tcp_flusher_send(g);
		lock_give(&g->lock);
	}
}

static void wake_thread(void)
{
	if (!flusher.asleep)
		return;
	flusher.asleep = false;
	sem_post(&flusher.wake);
}

/* One tick, or a sleep until somebody gathers. Locked; releases the lock meanwhile. */
static void pause_thread(unsigned int idle)
{
	const struct timespec tick = {.tv_nsec = TICK_NS};

	flusher.asleep = idle >= IDLE_TICKS;
	if (flusher.asleep) {
		forked_give(FORKED_FLUSHER);
		while (sem_wait(&flusher.wake) && errno == EINTR)
			;
	} else {
		forked_give(FORKED_FLUSHER);
		nanosleep(&tick, NULL);
	}
	forked_take(FORKED_FLUSHER);
}

static void *run(void *arg)
{
	unsigned int seen = 0, idle = 0;

	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	forked_take(FORKED_FLUSHER);
	while (!flusher.stop) {
		idle = list_empty(&flusher.gathers) && flusher.added == seen ? idle + 1 : 0;
		seen = flusher.added;
		pause_thread(idle);
		send_all();
	}
	forked_give(FORKED_FLUSHER);
	return arg;
}

void tcp_flusher_add(struct tcp_gather *g)
{
	forked_take(FORKED_FLUSHER);
	list_push(&flusher.gathers, &g->in_flusher);
	flusher.added++;
	wake_thread();
	forked_give(FORKED_FLUSHER);
}

void tcp_flusher_remove(struct tcp_gather *g)
{
	forked_take(FORKED_FLUSHER);
	list_remove(&g->in_flusher);
	forked_give(FORKED_FLUSHER);
}

/* What the parent has gathered is the parent's to send, and its thread is not here. */
static void in_child(void)
{
	flusher.users = 0;
	list_init(&flusher.gathers);
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

	flusher.asleep = flusher.stop = false;
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

int tcp_flusher_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int err = 0;

	pthread_once(&once, install);
	forked_take(FORKED_FLUSHER_OPENING);
	if (!flusher.users)
		err = start();
	flusher.users += !err;
	forked_give(FORKED_FLUSHER_OPENING);
	return -err;
}

void tcp_flusher_close(void)
{
	forked_take(FORKED_FLUSHER_OPENING);
	if (--flusher.users == 0) {
		forked_take(FORKED_FLUSHER);
		flusher.stop = true;
		wake_thread();
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
	send_all();
	forked_give(FORKED_FLUSHER);
}
