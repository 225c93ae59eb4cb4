/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "core/wait.h"

static int wait_open_fds(struct waiter *w)
{
	struct epoll_event event = {.events = EPOLLIN};
	int err;

	w->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (w->epfd < 0)
		goto fail;
	w->evfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->evfd < 0)
		goto close_epfd;
	event.data.fd = w->evfd;
	if (epoll_ctl(w->epfd, EPOLL_CTL_ADD, w->evfd, &event) == 0)
		return 0;
	err = errno;
	close(w->evfd);
	errno = err;
close_epfd:
	err = errno;
	close(w->epfd);
	errno = err;
fail:
	err = errno;
	LOG_WARN(LOG_CORE, "cannot create the descriptors of a wait object: %s", strerror(err));
	w->epfd = w->evfd = -1;
	return -err;
}

static int open_kind(struct waiter *w, struct fid_wait *set)
{
	switch (w->obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_YIELD:
		return 0;
	case FI_WAIT_MUTEX_COND:
		pthread_mutex_init(&w->mutex, NULL);
		pthread_cond_init(&w->cond, NULL);
		return 0;
	case FI_WAIT_SET:
		if (set && set->fid.fclass == FI_CLASS_WAIT)
			break;
		return LOG_REFUSE(
			-FI_EINVAL, LOG_CORE,
			"FI_WAIT_SET without a wait set: set attr->wait_set to one of fi_wait_open");
	case FI_WAIT_FD:
	case FI_WAIT_POLLFD:
		break;
	default:
		return LOG_REFUSE(-FI_EINVAL, LOG_CORE, "unknown kind of wait object %d",
				  (int)w->obj);
	}
	return wait_open_fds(w);
}

int wait_init(struct waiter *w, enum fi_wait_obj obj, struct fid_wait *set)
{
	pthread_condattr_t attr;
	int ret;

	memset(w, 0, sizeof(*w));
	w->obj = obj == FI_WAIT_UNSPEC ? FI_WAIT_FD : obj;
	w->epfd = w->evfd = w->also = -1;
	w->polls.most = WAIT_POLLS_ALONE;
	list_init(&w->in_set);
	ret = open_kind(w, set);
	if (ret)
		return ret;
	pthread_mutex_init(&w->gate, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->woken, &attr);
	pthread_condattr_destroy(&attr);
	if (w->obj == FI_WAIT_SET)
		ret = wait_set_join(wait_set_of(set), w);
	if (ret)
		wait_fini(w);
	return ret;
}

void wait_fini(struct waiter *w)
{
	if (w->set)
		wait_set_leave(w->set, w);
	if (w->evfd >= 0) {
		close(w->evfd);
		close(w->epfd);
		w->epfd = w->evfd = -1;
	}
	while (__atomic_load_n(&w->signalling, __ATOMIC_ACQUIRE)) /* pairs with the end of pay */
		sched_yield();
	if (w->obj == FI_WAIT_MUTEX_COND) {
		pthread_cond_destroy(&w->cond);
		pthread_mutex_destroy(&w->mutex);
	}
	pthread_cond_destroy(&w->woken);
	pthread_mutex_destroy(&w->gate);
}

void wait_own(struct waiter *w, struct waitable *owner, const struct waitable_ops *waits)
{
	owner->waits = waits;
	__atomic_store_n(&w->owner, owner, __ATOMIC_RELEASE); /* pairs with any_ready */
	if (w->set)
		wait_notify(&w->set->wait); /* sleepers on the set have not armed this waiter */
}

int wait_watch_fd(struct waiter *w, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.fd = fd};
	int err;

	if (w->epfd < 0 || fd < 0 || epoll_ctl(w->epfd, EPOLL_CTL_ADD, fd, &event) == 0)
		return 0;
	err = errno;
	LOG_WARN(LOG_CORE, "descriptor %d cannot wake a sleeper: %s", fd, strerror(err));
	return -err;
}

int wait_add_fd(struct waiter *w, int fd)
{
	return wait_watch_fd(w, fd, EPOLLIN);
}

void wait_del_fd(struct waiter *w, int fd)
{
	if (w->epfd >= 0 && fd >= 0)
		epoll_ctl(w->epfd, EPOLL_CTL_DEL, fd, NULL);
}

bool wait_must_poll(const struct waiter *w)
{
	return w->obj == FI_WAIT_MUTEX_COND || (w->set && w->set->wait.obj == FI_WAIT_MUTEX_COND);
}

static int get_pollfd(struct waiter *w, struct fi_wait_pollfd *arg)
{
	size_t room = arg->nfds;

	/* The first descriptor never changes. */
	arg->change_index = 1;
	arg->nfds = 1;
	if (room < 1)
		return -FI_ETOOSMALL;
	if (!arg->fd)
		return -FI_EINVAL;
	arg->fd[0] = (struct pollfd){.fd = w->epfd, .events = POLLIN};
	return 0;
}

/*
 * From now on somebody else may sleep. The gate: a leader that wakes looks at this (`disarm`). One that woke before
 * may have disarmed what the caller's fi_trywait had armed, and events since then have not signalled.
 */
static void wait_expose(struct waiter *w)
{
	bool slept;

	pthread_mutex_lock(&w->gate);
	slept = w->wakes && !w->exported;
	__atomic_store_n(&w->exported, 1, __ATOMIC_SEQ_CST); /* pairs with wait_cond_signal */
	pthread_mutex_unlock(&w->gate);
	if (slept)
		wait_signal(w);
}

static int get_wait(struct waiter *w, void *arg)
{
	struct fi_mutex_cond *pair = arg;

	switch (w->obj) {
	case FI_WAIT_FD:
		*(int *)arg = w->epfd;
		break;
	case FI_WAIT_MUTEX_COND:
		pair->mutex = &w->mutex;
		pair->cond = &w->cond;
		break;
	case FI_WAIT_SET:
		return wait_control(&w->set->wait, FI_GETWAIT, arg);
	case FI_WAIT_POLLFD:
		wait_expose(w);
		return get_pollfd(w, arg);
	default:
		return LOG_REFUSE(-FI_ENOSYS, LOG_CORE,
				  "FI_GETWAIT: wait_obj %d has no object to return", (int)w->obj);
	}
	wait_expose(w);
	return 0;
}

int wait_control(struct waiter *w, int command, void *arg)
{
	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAIT)
		return get_wait(w, arg);
	*(enum fi_wait_obj *)arg = w->obj;
	return 0;
}

static int wait_try(struct fid *fid)
{
	struct waitable *what = (struct waitable *)fid;

	if (!fid)
		return -FI_EINVAL;
	switch (fid->fclass) {
	case FI_CLASS_CQ:
	case FI_CLASS_EQ:
	case FI_CLASS_CNTR:
	case FI_CLASS_WAIT:
	case FI_CLASS_POLL:
		return what->waits->arm(what);
	default:
		return LOG_REFUSE(-FI_EINVAL, LOG_FABRIC,
				  "an object of class %zu has nothing to wait for", fid->fclass);
	}
}

int wait_try_all(struct fid_fabric *fabric, struct fid **fids, int count)
{
	(void)fabric;
	if (count < 0 || (count > 0 && !fids))
		return -FI_EINVAL;
	for (int i = 0; i < count; i++) {
		int ret = wait_try(fids[i]);

		if (ret)
			return ret;
	}
	return 0;
}
