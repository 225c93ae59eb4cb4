/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals of FI_WAIT_MUTEX_COND. The application holds the mutex from fi_trywait until
 * pthread_cond_wait releases it, so a signal sent without the mutex could come between the two and
 * be lost. But the signaller may hold the domain's lock, which the application takes while it holds
 * the mutex: the signaller must not block. If the mutex is not free, a new thread waits for it and
 * signals.
 */
#include <signal.h>

#include "base/lock.h"
#include "base/log.h"
#include "core/wait.h"

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

void wait_cond_signal(struct waiter *w)
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
