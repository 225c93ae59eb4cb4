/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic progress: one thread per domain. While progress calls find something, the thread repeats them. While the
 * application makes progress itself, the thread naps for POLL_IN_MS. Otherwise the thread sleeps until a worker's
 * descriptor becomes readable, so an idle process uses no processor time.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "core/domain.h"
#include "core/workers.h"

#define POLL_IN_MS 10 /* interval of progress calls while the application polls */
#define NAP_MS     1  /* limit of a sleep while sends wait for space at a peer */

struct progress {
	struct domain *dom;
	pthread_t thread;
	int epfd;      /* epoll set of workersfd and wakefd */
	int workersfd; /* epoll set of the workers' descriptors */
	int wakefd;
	int stop; /* atomic */
	/* Atomic: the application goes to sleep, so its earlier progress calls do not count. */
	int alone;
	bool armed; /* asleep until a worker wakes the thread; domain's lock */
};

/* Makes a progress call, and returns how long to sleep (ms); -1: until an event; 0: not at all. Domain locked. */
static int progress_plan(struct progress *p, unsigned int *seen)
{
	struct domain *dom = p->dom;

	p->armed = false;
	if (__atomic_exchange_n(&p->alone, 0, __ATOMIC_RELAXED))
		*seen = shard_calls(dom->main_shard);
	if (driven_progress_all(dom, dom->main_shard))
		return 0;
	if (shard_calls(dom->main_shard) != *seen) {
		*seen = shard_calls(dom->main_shard);
		return POLL_IN_MS;
	}
	if (!driven_arm_all(dom))
		return 0;
	p->armed = true;
	return driven_must_nap_any(dom) || domain_due(dom) ? NAP_MS : -1;
}

static void *progress_run(void *arg)
{
	struct progress *p = arg;
	struct epoll_event ev;
	struct pollfd wake = {.fd = p->wakefd, .events = POLLIN};
	unsigned int seen = 0;
	eventfd_t wakes;

	while (!__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE)) {
		int timeout;

		domain_lock(p->dom);
		timeout = progress_plan(p, &seen);
		domain_unlock(p->dom);
		if (timeout == 0)
			sched_yield();
		else if (timeout == POLL_IN_MS)
			poll(&wake, 1, POLL_IN_MS);
		else
			epoll_wait(p->epfd, &ev, 1, timeout);
		eventfd_read(p->wakefd, &wakes);
	}
	return NULL;
}

static int start_thread(struct progress *p)
{
	sigset_t all, old;
	int err;

	/* The application's own threads take all signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&p->thread, NULL, progress_run, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_setname_np(p->thread, "weft-progress");
	return -err;
}

static void progress_destroy(struct progress *p)
{
	if (p->epfd >= 0)
		close(p->epfd);
	if (p->workersfd >= 0)
		close(p->workersfd);
	if (p->wakefd >= 0)
		close(p->wakefd);
	free(p);
}

/* NULL: `*err` says why. */
static struct progress *progress_create(struct domain *dom, int *err)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct progress *p = calloc(1, sizeof(*p));

	if (!p) {
		*err = -FI_ENOMEM;
		return NULL;
	}
	p->dom = dom;
	p->epfd = epoll_create1(EPOLL_CLOEXEC);
	p->workersfd = epoll_create1(EPOLL_CLOEXEC);
	p->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->epfd < 0 || p->workersfd < 0 || p->wakefd < 0 ||
	    epoll_ctl(p->epfd, EPOLL_CTL_ADD, p->wakefd, &ev) ||
	    epoll_ctl(p->epfd, EPOLL_CTL_ADD, p->workersfd, &ev)) {
		*err = -errno;
		progress_destroy(p);
		return NULL;
	}
	return p;
}

/* Domain locked, so the thread begins when all is set. */
static int progress_start_thread(struct domain *dom, struct progress *p)
{
	int err = start_thread(p);

	if (err)
		return LOG_REFUSE(err, LOG_DOMAIN,
				  "cannot create the thread of automatic progress: %s",
				  fi_strerror(-err));
	domain_use_locks(dom);
	shard_unite(dom);
	__atomic_store_n(&dom->thread, p, __ATOMIC_RELEASE); /* pairs with progress_start */
	driven_watch_all(dom);
	return 0;
}

int progress_start(struct domain *dom)
{
	struct progress *p;
	int err = 0;

	if (__atomic_load_n(&dom->thread, __ATOMIC_ACQUIRE))
		return 0;
	p = progress_create(dom, &err);
	if (!p)
		return err;
	domain_lock(dom);
	if (!dom->thread) { /* else another thread of the application was faster */
		err = progress_start_thread(dom, p);
		if (!err)
			p = NULL;
	}
	domain_unlock(dom);
	if (p)
		progress_destroy(p);
	return err;
}

void progress_watch(struct domain *dom, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	if (dom->thread && epoll_ctl(dom->thread->workersfd, EPOLL_CTL_ADD, fd, &ev))
		LOG_WARN(LOG_DOMAIN, "a worker cannot wake the progress thread: %s",
			 fi_strerror(errno));
	if (dom->thread && dom->workers.next != dom->workers.prev)
		dom->rarely = WORKERS_RARELY_AUTO;
	/* The thread, or the sleeper that covers all workers, may sleep without having armed this worker. */
	if (dom->cover)
		wait_notify(dom->cover);
	progress_wake(dom);
}

void progress_wake(struct domain *dom)
{
	if (dom->thread)
		eventfd_write(dom->thread->wakefd, 1);
}

void progress_rearm(struct domain *dom)
{
	if (dom->thread && dom->thread->armed) {
		dom->thread->armed = false; /* one wakeup is enough */
		progress_wake(dom);
	}
}

int progress_fd(const struct domain *dom)
{
	return dom->thread->workersfd;
}

void progress_take_over(struct domain *dom)
{
	if (!dom->thread)
		return;
	__atomic_store_n(&dom->thread->alone, 1, __ATOMIC_RELAXED);
	progress_wake(dom);
}

void progress_stop(struct domain *dom)
{
	struct progress *p = dom->thread;

	if (!p)
		return;
	__atomic_store_n(&p->stop, 1, __ATOMIC_RELEASE);
	progress_wake(dom);
	pthread_join(p->thread, NULL);
	progress_destroy(p);
	dom->thread = NULL;
}
