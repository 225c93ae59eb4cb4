/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fid.h"
#include "base/forked.h"
#include "base/log.h"
#include "core/fabric.h"
#include "core/wait.h"

/* ---- Wait sets, fi_poll(3) ---- */

static struct wait_set *wait_set_of(struct fid_wait *fid)
{
	return (struct wait_set *)fid;
}

/* Adds a waiter to a set: for wait_init. 0 or -errno. */
static int wait_set_join(struct wait_set *set, struct waiter *w)
{
	int ret = wait_add_fd(&set->wait, w->epfd);

	if (ret)
		return ret;
	w->set = set;
	ref_get(&set->ref);
	lock_take(&set->lock);
	list_push(&set->members, &w->in_set);
	lock_give(&set->lock);
	return 0;
}

static void wait_set_leave(struct wait_set *set, struct waiter *w)
{
	lock_take(&set->lock);
	list_remove(&w->in_set);
	lock_give(&set->lock);
	wait_del_fd(&set->wait, w->epfd);
	w->set = NULL;
	ref_put(&set->ref);
}

/* Returns true if a member has something, or (`arm`) cannot promise to wake us. */
static bool any_ready(struct wait_set *set, bool arm)
{
	bool found = false;

	lock_take(&set->lock);
	LIST_EACH (node, &set->members) {
		struct waiter *w = LIST_ENTRY(node, struct waiter, in_set);
		struct waitable *owner = __atomic_load_n(&w->owner, __ATOMIC_ACQUIRE);

		if (!owner)
			continue;
		found = arm ? owner->waits->arm(owner) != 0 : owner->waits->ready(owner);
		if (!found)
			continue;
		list_remove(node); /* the others come first at the next call */
		list_push(&set->members, node);
		break;
	}
	lock_give(&set->lock);
	return found;
}

static int wait_set_arm_members(struct waitable *self)
{
	struct wait_set *set = (struct wait_set *)self;

	wait_arm(&set->wait);
	wait_drain(&set->wait);
	return any_ready(set, true) ? -FI_EAGAIN : 0;
}

struct set_sleep {
	struct wait_for what;
	struct wait_set *set;
};

static bool set_ready(struct wait_for *what, bool arm)
{
	return any_ready(((struct set_sleep *)what)->set, arm);
}

static int wait_set_wait(struct fid_wait *fid, int timeout)
{
	struct wait_set *set = wait_set_of(fid);
	struct set_sleep sleep = {.what.ready = set_ready, .set = set};

	return wait_until(&set->wait, &sleep.what, wait_end(timeout));
}

static int wait_set_close(struct fid *fid)
{
	struct wait_set *set = wait_set_of((struct fid_wait *)fid);

	if (set->forks != forked_count())
		return 0;
	if (ref_busy(&set->ref))
		return LOG_REFUSE(-FI_EBUSY, LOG_FABRIC,
				  "a wait set with %d members cannot be closed: close these first",
				  set->ref);
	wait_fini(&set->wait);
	ref_put(&set->fabric->ref);
	fid_free(fid);
	return 0;
}

static int wait_set_control(struct fid *fid, int command, void *arg)
{
	return wait_control(&wait_set_of((struct fid_wait *)fid)->wait, command, arg);
}

static struct fi_ops fid_ops = FID_OPS(wait_set_close, fid_no_bind, wait_set_control);

static struct fi_ops_wait set_ops = {
	.size = sizeof(struct fi_ops_wait),
	.wait = wait_set_wait,
};

static int wait_set_check_attr(const struct fi_wait_attr *attr)
{
	if (attr && !attr->flags && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_SET)
		return 0;
	if (attr)
		LOG_WARN(LOG_FABRIC, "fi_wait_open: wait_obj %d with flags %#llx is not supported",
			 (int)attr->wait_obj, (unsigned long long)attr->flags);
	return -FI_EINVAL;
}

static const struct waitable_ops waitable_ops = {.arm = wait_set_arm_members};

int wait_set_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **fid)
{
	struct wait_set *set;
	int ret = fid ? wait_set_check_attr(attr) : -FI_EINVAL;

	if (ret)
		return ret;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	ret = wait_init(&set->wait, attr->wait_obj, NULL);
	if (ret)
		goto free_set;
	lock_init(&set->lock);
	list_init(&set->members);
	set->fabric = fabric_of(fabric);
	set->forks = forked_count();
	ref_get(&set->fabric->ref);
	set->fid.fid = (struct fid){.fclass = FI_CLASS_WAIT, .ops = &fid_ops};
	set->fid.ops = &set_ops;
	set->waitable.waits = &waitable_ops;
	*fid = &set->fid;
	return 0;
free_set:
	free(set);
	return ret;
}

/* ---- Waiters ---- */

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
