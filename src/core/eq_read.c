/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading event queues, nonblocking and blocking. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/reason.h"
#include "core/eq.h"

#define MUST_POLL_NAP_MS                                                                           \
	1 /* limit (ms) of one sleep when there are drivers but no descriptor that could wake us */

/* Returns whether peer's data follows a struct fi_eq_cm_entry; a short buffer cuts the data. */
static bool is_cm(uint32_t event)
{
	return event == FI_CONNREQ || event == FI_CONNECTED || event == FI_SHUTDOWN;
}

/* Returns the bytes of the event that go into a buffer of `len`, or -FI_ETOOSMALL. */
static ssize_t eq_read_fit(const struct eq_event *e, size_t len)
{
	if (e->len <= len)
		return (ssize_t)e->len;
	if (is_cm(e->event) && len >= sizeof(struct fi_eq_cm_entry))
		return (ssize_t)len;
	return LOG_REFUSE(-FI_ETOOSMALL, LOG_EQ, "event %u takes %zu bytes, the buffer has %zu",
			  e->event, e->len, len);
}

/* Takes the oldest event, without progress. */
static ssize_t read_event(struct eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	struct eq_event *taken = NULL;
	ssize_t n = -FI_EAGAIN;

	lock_take(&eq->lock);
	if (!list_empty(&eq->errors)) {
		n = -FI_EAVAIL;
	} else if (!list_empty(&eq->events)) {
		struct eq_event *e = LIST_ENTRY(eq->events.next, struct eq_event, link);

		n = eq_read_fit(e, len);
		if (n >= 0)
			*event = e->event;
		if (n > 0)
			memcpy(buf, e->data, (size_t)n);
		if (n >= 0 && !(flags & FI_PEEK)) {
			list_remove(&e->link);
			eq->count--;
			taken = e;
		}
	}
	lock_give(&eq->lock);
	free(taken);
	return n;
}

static bool eq_read_anything(struct eq *eq)
{
	bool any;

	lock_take(&eq->lock);
	any = !list_empty(&eq->errors) || !list_empty(&eq->events);
	lock_give(&eq->lock);
	return any;
}

static bool eq_read_ready(struct waitable *self)
{
	struct eq *eq = (struct eq *)self;

	eq_progress(eq);
	return eq_read_anything(eq);
}

static int check_read(const uint32_t *event, const void *buf, size_t len)
{
	return event && (buf || len == 0) ? 0 : -FI_EINVAL;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	struct eq *eq = eq_of(fid);
	ssize_t n = check_read(event, buf, len);

	if (n)
		return n;
	n = read_event(eq, event, buf, len, flags);
	eq_progress(eq); /* an event that was there leaves the others no later */
	return n == -FI_EAGAIN ? read_event(eq, event, buf, len, flags) : n;
}

/*
 * Copies err_data to the application's buffer if there is one (from API 1.5), else returns a
 * pointer that is valid until the next read of an error.
 */
static void eq_read_give_err_data(struct eq *eq, struct fi_eq_err_entry *buf, struct eq_error *e)
{
	size_t len = e->entry.err_data_size, room = buf->err_data_size;
	bool sized = FI_VERSION_GE(eq->fabric->fid.api_version, FI_VERSION(1, 5));
	void *to = buf->err_data;

	*buf = e->entry;
	if (sized && to && room) {
		buf->err_data = to;
		buf->err_data_size = len < room ? len : room;
		if (len)
			memcpy(to, e->data, buf->err_data_size);
	} else {
		buf->err_data = len ? e->data : NULL;
	}
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct eq *eq = eq_of(fid);
	void *old = NULL;
	ssize_t n = -FI_EAGAIN;

	if (!buf)
		return -FI_EINVAL;
	lock_take(&eq->lock);
	if (!list_empty(&eq->errors)) {
		struct eq_error *e = LIST_ENTRY(eq->errors.next, struct eq_error, link);

		eq_read_give_err_data(eq, buf, e);
		n = sizeof(*buf);
		if (!(flags & FI_PEEK)) {
			list_remove(&e->link);
			old = eq->err_data;
			eq->err_data = e;
		}
	}
	lock_give(&eq->lock);
	free(old);
	return n;
}

struct eq_sleep {
	struct wait_for what;
	struct eq *eq;
};

static bool sread_ready(struct wait_for *what, bool arm)
{
	struct eq *eq = ((struct eq_sleep *)what)->eq;

	(void)arm; /* drivers' descriptors need no arming */
	what->nap = 0;
	if (eq->wait.epfd < 0 && __atomic_load_n(&eq->driver_count, __ATOMIC_RELAXED))
		what->nap = MUST_POLL_NAP_MS;
	return eq_read_ready(&eq->waitable);
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout,
			uint64_t flags)
{
	struct eq *eq = eq_of(fid);
	struct eq_sleep sleep = {.what.ready = sread_ready, .eq = eq};
	uint64_t end = wait_end(timeout);
	ssize_t n = check_read(event, buf, len);

	if (n)
		return n;
	if (eq->wait.obj == FI_WAIT_NONE)
		return LOG_REFUSE(
			-FI_ENOSYS, LOG_EQ,
			"fi_eq_sread: the wait object is FI_WAIT_NONE: open the queue with FI_WAIT_UNSPEC, or poll by fi_eq_read");
	do {
		if (wait_until(&eq->wait, &sleep.what, end) != 0)
			return -FI_EAGAIN;
		n = read_event(eq, event, buf, len, flags);
	} while (n == -FI_EAGAIN); /* another reader was faster */
	return n;
}

static int eq_read_arm(struct waitable *self)
{
	struct eq *eq = (struct eq *)self;

	wait_arm(&eq->wait);
	wait_drain(&eq->wait);
	return eq_read_ready(self) ? -FI_EAGAIN : 0;
}

const struct waitable_ops eq_waitable_ops = {.arm = eq_read_arm, .ready = eq_read_ready};

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf,
			       size_t len)
{
	const char *text = reason_text(prov_errno);

	(void)fid;
	(void)err_data;
	if (!buf || !len)
		return text;
	snprintf(buf, len, "%s", text);
	return buf;
}

struct fi_ops_eq eq_read_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};
