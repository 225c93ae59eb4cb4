/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening, closing and filling event queues; reading them is eq_read.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/forked.h"
#include "base/log.h"
#include "core/eq.h"
#include "base/fid.h"

#define SIZE_DEFAULT 1024
#define WRITE_MAX    (1u << 20) /* bytes of an event that the application writes */

static void eq_append(struct eq *eq, struct eq_event *event)
{
	list_push(&eq->events, &event->link);
	eq->count++;
}

static struct eq_event *new_event(uint32_t event, const void *buf, size_t len)
{
	struct eq_event *e = malloc(sizeof(*e) + len);

	if (!e) {
		LOG_PEER(LOG_EQ, "out of memory: event %u of %zu bytes is lost", event, len);
		return NULL;
	}
	e->event = event;
	e->written = false;
	e->len = len;
	if (len)
		memcpy(e->data, buf, len);
	return e;
}

int eq_post(struct eq *eq, uint32_t event, const void *buf, size_t len)
{
	struct eq_event *e = new_event(event, buf, len);

	if (!e)
		return -FI_ENOMEM;
	lock_take(&eq->lock); /* the sleeper checks under the lock, so wait_notify sees it armed */
	eq_append(eq, e);
	lock_give(&eq->lock);
	wait_notify(&eq->wait);
	return 0;
}

int eq_post_error(struct eq *eq, const struct fi_eq_err_entry *entry)
{
	size_t len = entry->err_data ? entry->err_data_size : 0;
	struct eq_error *e = malloc(sizeof(*e) + len);

	if (!e) {
		LOG_PEER(LOG_EQ, "out of memory: an error (%d) is lost", entry->err);
		return -FI_ENOMEM;
	}
	e->entry = *entry;
	e->entry.err_data = NULL;
	e->entry.err_data_size = len;
	if (len)
		memcpy(e->data, entry->err_data, len);
	lock_take(&eq->lock);
	list_push(&eq->errors, &e->link);
	lock_give(&eq->lock);
	wait_notify(&eq->wait);
	return 0;
}

ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len, uint64_t flags)
{
	struct eq *eq = eq_of(fid);
	struct eq_event *e;
	bool room;

	if (!(eq->flags & FI_WRITE))
		return LOG_REFUSE(
			-FI_EINVAL, LOG_EQ,
			"fi_eq_write: the queue was opened without FI_WRITE: set it in fi_eq_attr.flags");
	if (flags || (len && !buf) || len > WRITE_MAX)
		return LOG_REFUSE(-FI_EINVAL, LOG_EQ,
				  "fi_eq_write of %zu bytes at %p with flags %#llx", len, buf,
				  (unsigned long long)flags);
	e = new_event(event, buf, len);
	if (!e)
		return -FI_ENOMEM;
	e->written = true;
	lock_take(&eq->lock);
	room = eq->count < eq->size;
	if (room)
		eq_append(eq, e);
	lock_give(&eq->lock);
	if (!room) {
		free(e);
		return -FI_EAGAIN;
	}
	wait_notify(&eq->wait);
	return (ssize_t)len;
}

int eq_add_driver(struct eq *eq, struct eq_driver *driver)
{
	int ret = wait_add_fd(&eq->wait, driver->fd);

	if (ret)
		return ret;
	pthread_mutex_lock(&eq->driving);
	list_push(&eq->drivers, &driver->link);
	__atomic_fetch_add(&eq->driver_count, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&eq->driving);
	wait_notify(&eq->wait); /* sleepers without a descriptor have to nap from now on */
	return 0;
}

void eq_del_driver(struct eq *eq, struct eq_driver *driver)
{
	pthread_mutex_lock(&eq->driving);
	if (eq->next_driver == &driver->link)
		eq->next_driver = driver->link.next;
	list_remove(&driver->link);
	__atomic_fetch_sub(&eq->driver_count, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&eq->driving);
	wait_del_fd(&eq->wait, driver->fd);
}

void eq_driver_watch(struct eq *eq, struct eq_driver *driver, int fd)
{
	wait_del_fd(&eq->wait, driver->fd);
	/* Owners of drivers compare `fd` before they call. */
	__atomic_store_n(&driver->fd, fd, __ATOMIC_RELAXED);
	wait_add_fd(&eq->wait, fd);
}

void eq_watch_end(struct eq *eq, int sock)
{
	wait_watch_fd(&eq->wait, sock, EPOLLRDHUP);
}

/* Sets the timer to the shortest interval asked for. Locked. */
static void eq_set_timer(struct eq *eq)
{
	int ms = eq->rushes && (!eq->tick_ms || eq->rush_ms < eq->tick_ms) ? eq->rush_ms
									   : eq->tick_ms;
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	int timer = eq->timer, fresh = -1;

	if (timer < 0)
		timer = fresh = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (ms != eq->timer_ms) {
		__atomic_store_n(&eq->timer_ms, ms, __ATOMIC_RELAXED);
		if (timerfd_settime(timer, 0, &(struct itimerspec){t, t}, NULL))
			LOG_WARN(LOG_EQ, "cannot set the timer of an event queue: %s",
				 fi_strerror(errno));
	}
	if (fresh >= 0)
		wait_add_fd(&eq->wait, fresh);
	__atomic_store_n(&eq->timer, timer, __ATOMIC_RELEASE); /* pairs with hear_timer */
}

void eq_tick(struct eq *eq, int ms)
{
	lock_take(&eq->lock);
	if (!eq->tick_ms || ms < eq->tick_ms)
		eq->tick_ms = ms;
	eq_set_timer(eq);
	lock_give(&eq->lock);
}

void eq_rush(struct eq *eq, int ms)
{
	lock_take(&eq->lock);
	eq->rush_ms = ms;
	eq->rushes++;
	eq_set_timer(eq);
	lock_give(&eq->lock);
}

void eq_calm(struct eq *eq)
{
	lock_take(&eq->lock);
	eq->rushes--;
	eq_set_timer(eq);
	lock_give(&eq->lock);
}

/* Clears the timer's expiry, so that it does not wake the next sleepers. */
static void hear_timer(struct eq *eq)
{
	int timer = __atomic_load_n(&eq->timer, __ATOMIC_ACQUIRE); /* pairs with set_timer */
	int every = __atomic_load_n(&eq->timer_ms, __ATOMIC_RELAXED);
	uint64_t now, expired;

	if (__builtin_expect(timer < 0, 1) || !every)
		return;
	now = clock_coarse_ms();
	if (now < eq->next_tick)
		return;
	eq->next_tick = now + (uint64_t)every / 2;
	if (read(timer, &expired, sizeof(expired)) < 0 && errno != EAGAIN)
		LOG_WARN(LOG_EQ, "cannot read the timer of an event queue: %s", fi_strerror(errno));
}

void eq_progress(struct eq *eq)
{
	if (!__atomic_load_n(&eq->driver_count, __ATOMIC_RELAXED))
		return;
	if (pthread_mutex_trylock(&eq->driving) != 0)
		return;
	hear_timer(eq);
	for (struct list *node = eq->drivers.next; node != &eq->drivers; node = eq->next_driver) {
		struct eq_driver *driver = LIST_ENTRY(node, struct eq_driver, link);

		eq->next_driver = node->next; /* eq_del_driver moves it on if that driver goes */
		driver->progress(driver);
	}
	pthread_mutex_unlock(&eq->driving);
}

/* Frees an event, and in an unread FI_CONNREQ of the library the request and fi_info. */
static void drop_event(struct eq_event *e)
{
	if (e->event == FI_CONNREQ && !e->written) {
		struct fi_info *info = ((struct fi_eq_cm_entry *)e->data)->info;

		if (info && info->handle)
			info->handle->ops->close(info->handle);
		fi_freeinfo(info);
	}
	free(e);
}

/* Returns whether the event is about `fid`: every kind of event begins with its object. */
static bool is_about(const struct eq_event *e, const struct fid *fid)
{
	return !e->written && e->len >= sizeof(fid) && *(fid_t const *)e->data == fid;
}

size_t eq_waiting(struct eq *eq, const struct fid *fid)
{
	size_t count = 0;

	lock_take(&eq->lock);
	LIST_EACH (node, &eq->events)
		count += is_about(LIST_ENTRY(node, struct eq_event, link), fid);
	lock_give(&eq->lock);
	return count;
}

void eq_forget(struct eq *eq, const struct fid *fid)
{
	struct list dropped;

	list_init(&dropped);
	lock_take(&eq->lock);
	LIST_EACH_SAFE (node, &eq->events) {
		if (!is_about(LIST_ENTRY(node, struct eq_event, link), fid))
			continue;
		list_remove(node);
		list_push(&dropped, node);
		eq->count--;
	}
	LIST_EACH_SAFE (node, &eq->errors) {
		if (LIST_ENTRY(node, struct eq_error, link)->entry.fid != fid)
			continue;
		list_remove(node);
		free(LIST_ENTRY(node, struct eq_error, link));
	}
	lock_give(&eq->lock);
	LIST_EACH_SAFE (node, &dropped)
		drop_event(LIST_ENTRY(node, struct eq_event, link));
}

static void drop_events(struct eq *eq)
{
	LIST_EACH_SAFE (node, &eq->events)
		drop_event(LIST_ENTRY(node, struct eq_event, link));
	LIST_EACH_SAFE (node, &eq->errors)
		free(LIST_ENTRY(node, struct eq_error, link));
}

static int eq_close(struct fid *fid)
{
	struct eq *eq = eq_of((struct fid_eq *)fid);

	if (eq->forks != forked_count())
		return 0;
	if (ref_busy(&eq->ref))
		return LOG_REFUSE(
			-FI_EBUSY, LOG_EQ,
			"an event queue with %d bindings cannot be closed: close the objects that use it first",
			eq->ref);
	drop_events(eq);
	wait_fini(&eq->wait);
	if (eq->timer >= 0)
		close(eq->timer);
	pthread_mutex_destroy(&eq->driving);
	ref_put(&eq->fabric->ref);
	free(eq->err_data);
	fid_free(fid);
	return 0;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	return wait_control(&eq_of((struct fid_eq *)fid)->wait, command, arg);
}

static struct fi_ops fid_ops = FID_OPS(eq_close, fid_no_bind, eq_control);

static void init_drivers(struct eq *eq)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&eq->driving, &attr);
	pthread_mutexattr_destroy(&attr);
	list_init(&eq->drivers);
}

int eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **fid, void *context)
{
	static const struct fi_eq_attr none; /* FI_WAIT_NONE, no FI_WRITE */
	const struct fi_eq_attr *a = attr ? attr : &none;
	struct eq *eq;
	int ret;

	if (!fid)
		return -FI_EINVAL;
	if (a->flags & ~(FI_WRITE | FI_AFFINITY))
		return LOG_REFUSE(-FI_EINVAL, LOG_EQ, "unknown flags %#llx of an event queue",
				  (unsigned long long)a->flags);
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	ret = wait_init(&eq->wait, a->wait_obj, a->wait_set);
	if (ret)
		goto free_eq;
	lock_init(&eq->lock);
	eq->timer = -1;
	list_init(&eq->events);
	list_init(&eq->errors);
	init_drivers(eq);
	eq->size = a->size > SIZE_DEFAULT ? a->size : SIZE_DEFAULT;
	eq->flags = a->flags;
	eq->fabric = fabric_of(fabric);
	eq->forks = forked_count();
	ref_get(&eq->fabric->ref);
	eq->fid.fid = (struct fid){FI_CLASS_EQ, context, &fid_ops};
	eq->fid.ops = &eq_read_ops;
	wait_own(&eq->wait, &eq->waitable, &eq_waitable_ops);
	*fid = &eq->fid;
	return 0;
free_eq:
	free(eq);
	return ret;
}
