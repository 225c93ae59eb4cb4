/* SPDX-License-Identifier: BSD-2-Clause */

#include "base/fid.h"
#include "base/forked.h"
#include "base/log.h"
#include "base/watch.h"

/* Guarded by FORKED_MONITOR, which is taken before watch.lock. */
static struct fid_mem_monitor *imported; /* the application's, or NULL */
static struct watch *listener;           /* the watch that `imported` was started for, or NULL */
static unsigned int watches;             /* open ones of this process */
static unsigned int process;             /* forked_count() of those who wrote the two above */

/* A forked child has none of its parent's watches. Locked. */
static void forget_parent(void)
{
	if (process == forked_count())
		return;
	process = forked_count();
	watches = 0;
	listener = NULL;
}

/* A length may reach beyond the last address: SIZE_MAX means all memory. */
static void monitor_notify(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	uintptr_t from = (uintptr_t)addr, to = len < UINTPTR_MAX - from ? from + len : UINTPTR_MAX;

	forked_take(FORKED_MONITOR);
	forget_parent();
	if (monitor == imported && listener)
		watch_report(listener, from, to);
	forked_give(FORKED_MONITOR);
}

static struct fi_ops_mem_notify notify_ops = {
	.size = sizeof(struct fi_ops_mem_notify),
	.notify = monitor_notify,
};

static int monitor_import_close(struct fid *fid)
{
	int ret = 0;

	forked_take(FORKED_MONITOR);
	forget_parent();
	if (imported && fid == &imported->fid) {
		if (listener)
			ret = -FI_EBUSY;
		else
			imported = NULL;
	}
	forked_give(FORKED_MONITOR);
	if (ret)
		LOG_WARN(
			LOG_MR,
			"the imported memory monitor is in use by an open domain: close the domains first");
	return ret;
}

static struct fi_ops fid_ops = FID_OPS(monitor_import_close, fid_no_bind, fid_no_control);

static bool monitor_whole(const struct fi_ops_mem_monitor *ops)
{
	return ops && ops->size >= sizeof(*ops) && ops->start && ops->stop && ops->subscribe &&
	       ops->unsubscribe && ops->valid;
}

int monitor_import(struct fid_mem_monitor *monitor)
{
	int ret = 0;

	if (!monitor || monitor->fid.fclass != FI_CLASS_MEM_MONITOR ||
	    !monitor_whole(monitor->export_ops))
		return LOG_REFUSE(-FI_EINVAL, LOG_MR,
				  "mr_cache: a memory monitor of class %zu, or without functions",
				  monitor ? monitor->fid.fclass : 0);
	forked_take(FORKED_MONITOR);
	forget_parent();
	if (imported || watches) {
		ret = -FI_EBUSY;
	} else {
		monitor->fid.ops = &fid_ops;
		monitor->import_ops = &notify_ops;
		imported = monitor;
	}
	forked_give(FORKED_MONITOR);
	if (ret)
		LOG_WARN(LOG_MR, "mr_cache: a memory monitor is imported already, or a cache is in "
				 "use: import before a domain is opened");
	return ret;
}

bool monitor_imported(void)
{
	bool yes;

	forked_take(FORKED_MONITOR);
	yes = imported;
	forked_give(FORKED_MONITOR);
	return yes;
}

/* Notes the watch; returns the monitor for it, or NULL. */
static struct fid_mem_monitor *monitor_note(struct watch *watch)
{
	struct fid_mem_monitor *monitor;

	forked_take(FORKED_MONITOR);
	forget_parent();
	monitor = listener ? NULL : imported;
	if (monitor)
		listener = watch;
	watches++;
	forked_give(FORKED_MONITOR);
	return monitor;
}

static void monitor_forget(struct watch *watch)
{
	forked_take(FORKED_MONITOR);
	if (listener == watch)
		listener = NULL;
	watches--;
	forked_give(FORKED_MONITOR);
}

int monitor_open(struct watch *watch, struct fid_mem_monitor **monitor)
{
	struct fid_mem_monitor *found = monitor_note(watch);
	int err = found ? found->export_ops->start(found) : 0;

	if (err) {
		LOG_WARN(LOG_MR, "the imported memory monitor does not start: %s",
			 fi_strerror(-err));
		monitor_forget(watch);
		return err;
	}
	*monitor = found;
	return 0;
}

void monitor_close(struct watch *watch, struct fid_mem_monitor *monitor)
{
	if (monitor)
		monitor->export_ops->stop(monitor);
	monitor_forget(watch);
}
