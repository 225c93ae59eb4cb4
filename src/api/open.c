/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of the library that fi_open opens by name, and the public log calls. fi_fabric(3), fi_log(3) */
#include <rdma/fabric.h>
#include <rdma/fi_ext.h>
#include <stdarg.h>
#include <stdbool.h>
#include <strings.h>
#include <unistd.h>

#include "base/fid.h"
#include "base/forked.h"
#include "base/log.h"
#include "base/watch.h"
#include "base/text.h"
#include "info/info.h"

/* ---- "logging": messages go to callbacks of the application ---- */

#define LAST_CALLS_MS 100 /* limit of fi_close's wait for running callbacks */

/* Imported from the application, which owns it; or NULL. Changes under FORKED_LOG. */
static struct fid_logging *active;
static struct fi_ops_log *log_ops; /* atomic; the callbacks of `active` */
static unsigned int log_calls;     /* atomic: threads between callbacks_begin and callbacks_end */
static __thread unsigned int own_calls; /* calls of this thread in log_calls */

/* Returns the callbacks, valid until callbacks_end; NULL: they have just been closed. */
static struct fi_ops_log *callbacks_begin(void)
{
	own_calls++;
	__atomic_add_fetch(&log_calls, 1, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&log_ops, __ATOMIC_SEQ_CST); /* pairs with callbacks_drop */
}

static void callbacks_end(void)
{
	__atomic_sub_fetch(&log_calls, 1, __ATOMIC_RELEASE);
	own_calls--;
}

/*
 * Revokes the callbacks and waits for running calls, except those of a callback that closes its own
 * log, for LAST_CALLS_MS at most.
 */
static void callbacks_drop(void)
{
	__atomic_store_n(&log_ops, NULL, __ATOMIC_SEQ_CST);
	for (int ms = 0; ms < LAST_CALLS_MS; ms++) {
		if (__atomic_load_n(&log_calls, __ATOMIC_SEQ_CST) == own_calls)
			return;
		usleep(1000);
	}
}

static uint64_t flags_of(const char *prov)
{
	return log_names(prov) ? 0 : FI_LOG_PROV_FILTERED;
}

static bool sink_enabled(const char *prov, int level, int subsys)
{
	struct fi_ops_log *ops = callbacks_begin();
	struct fi_provider who = {.name = prov};
	bool yes;

	if (ops && ops->enabled)
		yes = ops->enabled(&who, (enum fi_log_level)level, (enum fi_log_subsys)subsys,
				   flags_of(prov));
	else
		yes = log_filter(prov, level, subsys);
	callbacks_end();
	return yes;
}

static bool sink_ready(const char *prov, int level, int subsys, uint64_t *showtime)
{
	struct fi_ops_log *ops = callbacks_begin();
	struct fi_provider who = {.name = prov};
	bool yes;

	if (ops && ops->ready)
		yes = ops->ready(&who, (enum fi_log_level)level, (enum fi_log_subsys)subsys,
				 flags_of(prov), showtime);
	else
		yes = sink_enabled(prov, level, subsys) && log_due(showtime);
	callbacks_end();
	return yes;
}

static void sink_write(const struct log_place *place, const char *msg)
{
	struct fi_ops_log *ops = callbacks_begin();
	struct fi_provider who = {.name = place->prov};

	if (ops && ops->log)
		ops->log(&who, (enum fi_log_level)place->level, (enum fi_log_subsys)place->subsys,
			 place->func, place->line, msg);
	else
		log_put(place, msg);
	callbacks_end();
}

static const struct log_sink sink = {sink_enabled, sink_ready, sink_write};

/* Makes the library write the log again. Has no effect for an import that a later one replaced. */
static int open_import_close(struct fid *fid)
{
	forked_take(FORKED_LOG);
	if (active && fid == &active->fid) {
		active = NULL;
		log_redirect(NULL);
		callbacks_drop();
	}
	forked_give(FORKED_LOG);
	return 0;
}

static struct fi_ops import_ops = FID_OPS(open_import_close, fid_no_bind, fid_no_control);

static int logging_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fid_logging *theirs = (struct fid_logging *)bfid;

	(void)fid;
	if (flags)
		return -FI_EBADFLAGS;
	if (!bfid || bfid->fclass != FI_CLASS_LOG || !theirs->ops ||
	    theirs->ops->size < sizeof(struct fi_ops_log))
		return -FI_EINVAL;
	forked_take(FORKED_LOG);
	theirs->fid.ops = &import_ops;
	active = theirs;
	__atomic_store_n(&log_ops, theirs->ops, __ATOMIC_SEQ_CST);
	log_redirect(&sink);
	forked_give(FORKED_LOG);
	return 0;
}

/* These objects are not freed, and what was imported by them stays. */
static int open_stays(struct fid *fid)
{
	(void)fid;
	return 0;
}

static struct fi_ops logging_ops = FID_OPS(open_stays, logging_bind, fid_no_control);

static struct fid logging = {.fclass = FI_CLASS_LOG, .ops = &logging_ops};

/* Opens the one "logging" object. -FI_EALREADY while a log is imported. */
static int open_logging(size_t attr_len, uint64_t flags, struct fid **fid, void *context)
{
	bool taken;

	if (attr_len)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	forked_take(FORKED_LOG);
	taken = active;
	if (!taken)
		logging.context = context;
	forked_give(FORKED_LOG);
	if (taken)
		return -FI_EALREADY;
	*fid = &logging;
	return 0;
}

/* ---- "mr_cache" ---- */

/* fi_import_fid: takes a memory monitor of the application, which stays when this object closes. */
static int cache_bind(struct fid *fid, struct fid *monitor, uint64_t flags)
{
	(void)fid;
	if (flags)
		return LOG_REFUSE(-FI_EINVAL, LOG_MR, "mr_cache: flags %#llx of an import",
				  (unsigned long long)flags);
	return monitor_import((struct fid_mem_monitor *)monitor);
}

static struct fi_ops cache_ops = FID_OPS(open_stays, cache_bind, fid_no_control);

/* The registration cache of all providers. 0; -FI_EINVAL: there are attributes; -FI_EBADFLAGS. fi_mr(3) */
static int open_cache(size_t attr_len, uint64_t flags, struct fid **fid)
{
	static struct fid cache = {.fclass = FI_CLASS_MR_CACHE, .ops = &cache_ops};

	if (attr_len || flags)
		LOG_WARN(LOG_MR, "fi_open \"mr_cache\": attributes of %zu bytes, flags %#llx",
			 attr_len, (unsigned long long)flags);
	if (attr_len)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	*fid = &cache;
	return 0;
}

EXTERNALLY_VISIBLE int fi_open(uint32_t version, const char *name, void *attr, size_t attr_len,
			       uint64_t flags, struct fid **fid, void *context)
{
	(void)attr;
	if (!name || !fid)
		return -FI_EINVAL;
	if (FI_VERSION_GE(INFO_NEWEST_API, version) && strcasecmp(name, "logging") == 0)
		return open_logging(attr_len, flags, fid, context);
	if (FI_VERSION_GE(INFO_NEWEST_API, version) && strcasecmp(name, "mr_cache") == 0)
		return open_cache(attr_len, flags, fid);
	LOG_INFO(LOG_CORE, "fi_open: no object \"%.60s\" for version %u.%u", name,
		 FI_MAJOR(version), FI_MINOR(version));
	return -FI_ENOSYS;
}

/* ---- Log calls, based on base/log ---- */

#define MESSAGE_BYTES 8192

static const char *name_of(const struct fi_provider *prov)
{
	return prov && prov->name ? prov->name : "core";
}

int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	return log_allowed(name_of(prov), (int)level, (int)subsys);
}

int fi_log_ready(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		 uint64_t *showtime)
{
	return log_ready(name_of(prov), (int)level, (int)subsys, showtime);
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int line, const char *fmt, ...)
{
	struct log_place place = {name_of(prov), (int)level, (int)subsys, func, line};
	char msg[MESSAGE_BYTES];
	struct text t;
	va_list args;

	text_init(&t, msg, sizeof(msg));
	va_start(args, fmt);
	text_addv(&t, fmt, args);
	va_end(args);
	log_write(&place, "%s", msg);
}
