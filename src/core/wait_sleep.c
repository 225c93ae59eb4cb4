/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeping and waking. The protocol is at the head of wait.h. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "core/wait.h"

/*
 * ---- Signals of FI_WAIT_MUTEX_COND ----
 *
 * The application holds the mutex from fi_trywait until pthread_cond_wait releases it, so a signal sent without the mutex
 * could come between the two and be lost. But the signaller may hold the domain's lock, which the application takes while
 * it holds the mutex: the signaller must not block. If the mutex is not free, a new thread waits for it and signals.
 */
#define TRIES 100 /* attempts before a thread is created */

static void *wait_cond_pay(void *arg)
{
	struct waiter *w = arg;

	pthread_mutex_lock(&w->mutex);
	pthread_cond_broadcast(&w->cond);
	pthread_mutex_unlock(&w->mutex);
	__atomic_fetch_sub(&w->signalling, 1, __ATOMIC_RELEASE); /* pairs with wait_fini */
	return NULL;
}

static int start_payer(struct waiter *w)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all,
			&before); /* the application's threads take all signals */
	err = pthread_create(&thread, &attr, wait_cond_pay, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

static bool signal_if_free(struct waiter *w)
{
	for (int i = 0; i < TRIES; i++) {
		if (pthread_mutex_trylock(&w->mutex) == 0) {
			pthread_cond_broadcast(&w->cond);
			pthread_mutex_unlock(&w->mutex);
			return true;
		}
		cpu_relax();
	}
	return false;
}

static void wait_cond_signal(struct waiter *w)
{
	/* Pairs with get_wait, which the application calls before it can hold the mutex. */
	if (!__atomic_load_n(&w->exported, __ATOMIC_SEQ_CST) || signal_if_free(w))
		return;
	__atomic_fetch_add(&w->signalling, 1, __ATOMIC_RELAXED);
	if (start_payer(w) == 0)
		return;
	__atomic_fetch_sub(&w->signalling, 1, __ATOMIC_RELEASE);
	LOG_WARN(
		LOG_CORE,
		"cannot create a thread to signal: a waiter on a condition may wake late (ulimit -u "
		"limits threads)");
	pthread_cond_broadcast(&w->cond);
}

/* ---- Sleeping and waking ---- */

/* Wakes all sleepers, to check what they wait for. Gate held. */
static void wake_all(struct waiter *w)
{
	__atomic_store_n(&w->wakes, w->wakes + 1, __ATOMIC_RELEASE); /* pairs with wait_arm */
	pthread_cond_broadcast(&w->woken);
}

/* Makes evfd readable. Sets the flag last: a flag without a token costs a read, a token without a flag would stay. */
static void wait_sleep_ring(struct waiter *w)
{
	uint64_t one = 1;

	/* Fails only if the counter would overflow; evfd is readable then. */
	if (write(w->evfd, &one, sizeof(one)) < 0)
		return;
	__atomic_store_n(&w->rung, 1, __ATOMIC_RELEASE);
}

/* Empties evfd. Returns true if it was readable. */
static bool wait_sleep_unring(struct waiter *w)
{
	uint64_t tokens;

	return read(w->evfd, &tokens, sizeof(tokens)) == sizeof(tokens);
}

void wait_signal(struct waiter *w)
{
	/* Before the wakeup: a thread that arms after this store sees what was published, or is signalled again. */
	__atomic_store_n(&w->sleeping, 0, __ATOMIC_SEQ_CST);
	if (w->evfd >= 0) {
		wait_sleep_ring(w);
	} else if (w->obj == FI_WAIT_MUTEX_COND) {
		pthread_mutex_lock(&w->gate);
		wake_all(w);
		pthread_mutex_unlock(&w->gate);
		wait_cond_signal(w);
	}
	/* A set's descriptor, if it has one, watches ours. */
	if (w->set && w->set->wait.evfd < 0)
		wait_signal(&w->set->wait);
}

/* Wakes sleepers on `w` after a token was taken that may have been for them. */
static void wait_sleep_nudge(struct waiter *w)
{
	pthread_mutex_lock(&w->gate);
	wake_all(w);
	if (w->leader)
		wait_sleep_ring(w);
	pthread_mutex_unlock(&w->gate);
}

void wait_drain(struct waiter *w)
{
	bool took = false;

	if (w->evfd < 0 || !__atomic_load_n(&w->rung, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&w->gate);
	if (!w->leader) { /* the leader has to see the token, and takes it */
		__atomic_store_n(&w->rung, 0, __ATOMIC_RELAXED);
		took = wait_sleep_unring(w);
		if (took)
			wake_all(w);
	}
	pthread_mutex_unlock(&w->gate);
	if (took && w->set)
		wait_sleep_nudge(&w->set->wait);
}

unsigned int wait_arm(struct waiter *w)
{
	unsigned int armed = __atomic_load_n(&w->wakes, __ATOMIC_ACQUIRE); /* pairs with wake_all */

	__atomic_store_n(&w->sleeping, 1, __ATOMIC_SEQ_CST); /* pairs with wait_notify */
	return armed;
}

/*
 * All that slept here are awake, so events need not signal until one of them arms again. An application
 * that polls the descriptor itself, or a set, may have armed, too, and remains armed. Gate held.
 */
static void wait_sleep_disarm(struct waiter *w)
{
	if (!w->set && !__atomic_load_n(&w->exported, __ATOMIC_SEQ_CST))
		__atomic_store_n(&w->sleeping, 0, __ATOMIC_SEQ_CST);
}

/*
 * Sleeps as leader. Gate held, released while asleep. Uses poll, which only a handled signal
 * interrupts; epoll_wait also returns in a process that was stopped and continued.
 */
static int wait_sleep_lead(struct waiter *w, int timeout)
{
	struct pollfd sleep[2] = {
		{.fd = w->epfd, .events = POLLIN},
		{.fd = __atomic_load_n(&w->also, __ATOMIC_RELAXED), .events = POLLIN}};
	struct epoll_event event;
	int n, err;

	w->leader = true;
	pthread_mutex_unlock(&w->gate);
	n = poll(sleep, 2, timeout); /* poll ignores negative descriptors */
	err = errno;
	pthread_mutex_lock(&w->gate);
	w->leader = false;
	wait_sleep_disarm(w);
	if (n > 0 && __atomic_load_n(&w->rung, __ATOMIC_ACQUIRE) &&
	    epoll_wait(w->epfd, &event, 1, 0) > 0 && event.data.fd == w->evfd) {
		__atomic_store_n(&w->rung, 0, __ATOMIC_RELAXED);
		wait_sleep_unring(w);
	}
	wake_all(w);
	if (n < 0)
		return err == EINTR ? -FI_EINTR : -err;
	return n > 0 ? 0 : -FI_EAGAIN;
}

/* Sleeps as follower. Gate held, released while asleep. */
static int wait_sleep_follow(struct waiter *w, unsigned int armed, int timeout)
{
	uint64_t end = clock_us() + (uint64_t)timeout * 1000;
	struct timespec at = {.tv_sec = (time_t)(end / 1000000),
			      .tv_nsec = (long)(end % 1000000) * 1000};
	int err = 0;

	while (w->wakes == armed && err == 0) {
		if (timeout < 0)
			err = pthread_cond_wait(&w->woken, &w->gate);
		else
			err = pthread_cond_timedwait(&w->woken, &w->gate, &at);
	}
	return err ? -FI_EAGAIN : 0;
}

int wait_sleep_since(struct waiter *w, unsigned int armed, int timeout)
{
	int ret = 0;

	if (w->obj == FI_WAIT_NONE)
		return -FI_EAGAIN;
	if (w->obj == FI_WAIT_YIELD) {
		sched_yield();
		return 0;
	}
	pthread_mutex_lock(&w->gate);
	if (w->wakes == armed)
		ret = w->evfd >= 0 && !w->leader ? wait_sleep_lead(w, timeout)
						 : wait_sleep_follow(w, armed, timeout);
	pthread_mutex_unlock(&w->gate);
	return ret;
}

int wait_sleep(struct waiter *w, int timeout)
{
	unsigned int armed = __atomic_load_n(&w->wakes, __ATOMIC_ACQUIRE);
	int ret = 0;

	/* `sleeping` cleared: a signal came before us. wait_signal clears it before it wakes. */
	if (__atomic_load_n(&w->sleeping, __ATOMIC_SEQ_CST) || w->obj == FI_WAIT_NONE)
		ret = wait_sleep_since(w, armed, timeout);
	wait_arm(w);
	return ret == -FI_EINTR ? -FI_EAGAIN : ret;
}

/* Returns the ms until `end`, rounded up, at most `nap` unless that is 0; -1: no limit. */
static int time_left(uint64_t end, int nap)
{
	uint64_t now = clock_us(), ms;

	if (now >= end)
		return 0;
	ms = end == UINT64_MAX ? UINT64_MAX : (end - now + 999) / 1000;
	if (nap && ms > (uint64_t)nap)
		return nap;
	if (ms > INT_MAX)
		return end == UINT64_MAX ? -1 : INT_MAX;
	return (int)ms;
}

/* Arms, checks and sleeps once. 1: ready; 0: woken; -FI_EAGAIN: sleep timed out; or an error. */
static int wait_sleep_round_of(struct waiter *w, struct wait_for *what, uint64_t end)
{
	unsigned int armed = wait_arm(w);
	int left;

	if (what->ready(what, true))
		return 1;
	left = time_left(end, what->nap);
	if (left == 0)
		return -FI_ETIMEDOUT;
	return wait_sleep_since(w, armed, left);
}

/* Sleeps until ready (1), or until `parts` changes (0); or an error. */
static int sleep_on(struct waiter *w, struct wait_for *what, uint64_t end)
{
	unsigned int parts = what->parts;
	int ret;

	do {
		ret = wait_sleep_round_of(w, what, end);
		if (ret == 0 && what->ready(what, false))
			return 1;
	} while ((ret == 0 || ret == -FI_EAGAIN) && what->parts == parts);
	return ret == -FI_EAGAIN ? 0 : ret;
}

int wait_until(struct waiter *w, struct wait_for *what, uint64_t end)
{
	int ret = 0;

	if (wait_spin(w, what, end))
		return 0;
	if (wait_only_polls(w) || clock_us() >= end)
		return -FI_ETIMEDOUT;
	do
		ret = sleep_on(w, what, end);
	while (ret == 0 && !wait_spin(w, what, end));
	/* We may have taken the token of an application thread that polls the descriptor, or of one that sleeps on the set. */
	if (w->evfd >= 0 && (w->set || __atomic_load_n(&w->exported, __ATOMIC_RELAXED)))
		wait_sleep_ring(w);
	return ret > 0 ? 0 : ret;
}
