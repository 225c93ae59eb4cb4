/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * While links gather, the thread ticks. Setting a timer costs more than sending a packet on virtual
 * machines, so none is set for what one link has gathered. Rests are looked at less often: a process
 * that sends much leaves one behind at most of its calls, and its next one sends it.
 */
#include "hw/tcp/tcp_output.h"

#include <errno.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/forked.h"
#include "base/log.h"

#define TICK_NS    50000   /* ns between two ticks: no gathered packet waits longer */
#define LOOK_NS    5000000 /* ns between two looks at rests */
#define IDLE_TICKS 20u     /* ticks or looks that found nothing; then there are no more of them */
#define REST_MS    20      /* ms without a call after which a rest is sent */

static struct {
	/* Guarded by FORKED_FLUSHER_OPENING. */
	unsigned int users; /* workers that have opened it */
	pthread_t thread;
	/* Guarded by FORKED_FLUSHER. */
	struct list links[TCP_PACES];  /* struct tcp_output.in_flusher; none of TCP_NEVER */
	unsigned int added[TCP_PACES]; /* links that have entered the list */
	enum tcp_pace pace;            /* of the thread; but for TCP_TICKS it waits for `wake` */
	bool stop;
	sem_t wake;
} flusher = {.links = {[TCP_LOOKS] = {&flusher.links[TCP_LOOKS], &flusher.links[TCP_LOOKS]},
		       [TCP_TICKS] = {&flusher.links[TCP_TICKS], &flusher.links[TCP_TICKS]}}};

/* Sends for links whose owner has not called for `ms`. One that calls now sends by itself. Locked. */
static void send_list(enum tcp_pace pace, unsigned int ms)
{
	uint64_t now = clock_coarse_ms();

	LIST_EACH_OF (struct tcp_link, l, &flusher.links[pace], output.in_flusher) {
		if (!lock_try(&l->output.lock))
			continue;
		if (now >= l->output.since_ms + ms)
			l->stream->push(l);
		lock_give(&l->output.lock);
	}
}

/* Wakes the thread from a slower pace. Locked. */
static void wake_thread(enum tcp_pace pace)
{
	if (flusher.pace >= pace)
		return;
	flusher.pace = TCP_TICKS;
	sem_post(&flusher.wake);
}

/* One tick, one look, or a sleep until there is something. Locked; releases the lock meanwhile. */
static void pause_thread(enum tcp_pace pace)
{
	const struct timespec tick = {.tv_nsec = TICK_NS};
	struct timespec until;

	flusher.pace = pace;
	forked_give(FORKED_FLUSHER);
	if (pace == TCP_TICKS) {
		nanosleep(&tick, NULL);
	} else if (pace == TCP_LOOKS) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += LOOK_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		sem_clockwait(&flusher.wake, CLOCK_MONOTONIC, &until);
	} else {
		while (sem_wait(&flusher.wake) && errno == EINTR)
			;
	}
	forked_take(FORKED_FLUSHER);
	flusher.pace = TCP_TICKS;
}

static void *tcp_flusher_run(void *arg)
{
	unsigned int added[TCP_PACES] = {0}, idle[TCP_PACES] = {0};

	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	forked_take(FORKED_FLUSHER);
	while (!flusher.stop) {
		enum tcp_pace next = TCP_NEVER;

		for (enum tcp_pace p = TCP_LOOKS; p <= TCP_TICKS; p++) {
			bool any = !list_empty(&flusher.links[p]) || flusher.added[p] != added[p];

			idle[p] = any ? 0 : idle[p] + 1;
			added[p] = flusher.added[p];
			next = idle[p] < IDLE_TICKS ? p : next;
		}
		pause_thread(next);
		send_list(TCP_TICKS, 0);
		send_list(TCP_LOOKS, REST_MS);
	}
	forked_give(FORKED_FLUSHER);
	return arg;
}

/* A call that has failed may end here: errno stays, though a lock that the thread holds is waited for by a system call. */
void tcp_flusher_set(struct tcp_link *l, enum tcp_pace pace)
{
	struct tcp_output *out = &l->output;
	int err = errno;

	out->since_ms = pace == TCP_LOOKS ? clock_coarse_ms() : 0;
	if (pace && !tcp_flusher_open(l->own))
		pace = TCP_NEVER;
	if (out->pace != pace) {
		out->pace = pace;
		forked_take(FORKED_FLUSHER);
		list_remove(&out->in_flusher);
		if (pace) {
			list_push(&flusher.links[pace], &out->in_flusher);
			flusher.added[pace]++;
			wake_thread(pace);
		}
		forked_give(FORKED_FLUSHER);
	}
	errno = err;
}

/* What the parent has to send is the parent's, and its thread is not here. */
static void tcp_flusher_in_child(void)
{
	flusher.users = 0;
	list_init(&flusher.links[TCP_LOOKS]);
	list_init(&flusher.links[TCP_TICKS]);
}

static void tcp_flusher_install(void)
{
	pthread_atfork(NULL, NULL, tcp_flusher_in_child);
}

/* 0 or a positive error. */
static int tcp_flusher_start(void)
{
	sigset_t all, old;
	int err;

	flusher.pace = TCP_TICKS;
	flusher.stop = false;
	sem_init(&flusher.wake, 0, 0);
	/* The application's own threads take all signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&flusher.thread, NULL, tcp_flusher_run, NULL);
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

	pthread_once(&once, tcp_flusher_install);
	forked_take(FORKED_FLUSHER_OPENING);
	if (!flusher.users)
		err = tcp_flusher_start();
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
		wake_thread(TCP_TICKS);
		forked_give(FORKED_FLUSHER);
		pthread_join(flusher.thread, NULL);
		sem_destroy(&flusher.wake);
	}
	forked_give(FORKED_FLUSHER_OPENING);
}

/* The process ends by exit() or a return from main: the thread would not send in time. */
static __attribute__((destructor)) void tcp_flusher_at_exit(void)
{
	forked_take(FORKED_FLUSHER);
	send_list(TCP_TICKS, 0);
	send_list(TCP_LOOKS, 0);
	forked_give(FORKED_FLUSHER);
}
