/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registration cache: registrations outlive their transfer, since memory is often used again. One cache for all devices
 * of the process, opened with the first. A registration is of pages, not of addresses: everything that puts other pages
 * behind an address (munmap, mmap over it, mremap, madvise, a shrinking heap) must be noticed before the address is
 * used again; see watch.h. Only private anonymous memory is cached: nobody else can change its pages unnoticed.
 *
 * The kernel reports neither MADV_GUARD_INSTALL (Linux 6.13) nor shmat with SHM_REMAP. And it reports memory that is to
 * be discarded before discarding it: if one thread sends from memory that another one discards, a registration of the
 * discarded pages may stay in the cache.
 */
#include "hw/verbs/dev/verbs_dev.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_PROV "verbs"
#include "base/env.h"
#include "base/forked.h"
#include "base/log.h"
#include "base/watch.h"

/*
 * Nothing allocates, frees, registers or logs under the lock: see watch.h. Memory is entered in `ranges` before it is
 * watched, and a registration is used only after that: no change in between goes unnoticed.
 */
struct verbs_cache {
	pthread_mutex_t lock;
	struct ranges ranges; /* of struct verbs_mem.range; the owners are devices */
	struct watch watch;
	unsigned int devices; /* devices that use the cache; under FORKED_CACHE_OPENING */
	unsigned int forked;  /* forked_count() at opening */
};

static struct verbs_cache *shared; /* of all devices; under FORKED_CACHE_OPENING */

static struct verbs_mem *mem_of(struct range *range)
{
	return LIST_ENTRY(range, struct verbs_mem, range);
}

static void verbs_cache_changed(void *arg, uintptr_t from, uintptr_t to)
{
	ranges_drop(arg, from, to);
}

/* Do the settings ask for a cache that we have? */
static bool verbs_cache_wanted(const struct env_settings *env)
{
	const char *monitor = env->mr_cache_monitor;

	if (!env->mr_cache_max_count || (monitor && !strcmp(monitor, "disabled")))
		return false;
	if (!monitor || !strcmp(monitor, "userfaultfd") || monitor_imported())
		return true;
	LOG_WARN(LOG_MR,
		 "FI_MR_CACHE_MONITOR=%s: there is userfaultfd, disabled, or a monitor that the "
		 "program imports into \"mr_cache\"; no registration is kept",
		 monitor);
	return false;
}

/* Returns the limit of cached bytes. The setting 0 means half of a processor's share. */
static size_t bytes_max(const struct env_settings *env)
{
	if (env->mr_cache_max_size)
		return env->mr_cache_max_size;
	return (size_t)sysconf(_SC_PHYS_PAGES) / (size_t)sysconf(_SC_NPROCESSORS_ONLN) / 2 *
	       (size_t)sysconf(_SC_PAGESIZE);
}

/* Warns only users who asked for userfaultfd. */
static void verbs_cache_refuse(int err)
{
	if (env_get()->mr_cache_monitor)
		LOG_WARN(
			LOG_MR,
			"FI_MR_CACHE_MONITOR=userfaultfd: there is no watch, %s; no registration is kept",
			fi_strerror(-err));
	else
		LOG_INFO(LOG_MR, "no watch over memory, %s: no registration is kept",
			 fi_strerror(-err));
}

static struct verbs_cache *cache_open(void)
{
	const struct env_settings *env = env_get();
	struct verbs_cache *c = verbs_cache_wanted(env) ? calloc(1, sizeof(*c)) : NULL;
	int err;

	if (!c)
		return NULL;
	if (!ranges_init(&c->ranges, bytes_max(env), env->mr_cache_max_count))
		goto free_cache;
	pthread_mutex_init(&c->lock, NULL);
	c->forked = forked_count();
	c->watch.lock = &c->lock;
	c->watch.changed = verbs_cache_changed;
	c->watch.arg = &c->ranges;
	err = watch_open(&c->watch);
	if (!err)
		return c;
	verbs_cache_refuse(err);
	pthread_mutex_destroy(&c->lock);
	ranges_fini(&c->ranges);
free_cache:
	free(c);
	return NULL;
}

/* Joins the device to the cache. A forked child opens its own. FORKED_CACHE_OPENING is held. */
static void verbs_cache_join(struct verbs_dev *dev)
{
	if (shared && shared->forked != forked_count())
		shared = NULL;
	if (!shared)
		shared = cache_open();
	if (shared)
		shared->devices++;
	dev->cache = shared;
	__atomic_store_n(&dev->cache_asked, true, __ATOMIC_RELEASE); /* cache_of */
}

/* NULL: none. */
static struct verbs_cache *cache_of(struct verbs_dev *dev)
{
	if (__builtin_expect(!__atomic_load_n(&dev->cache_asked, __ATOMIC_ACQUIRE), 0)) { /* join */
		forked_take(FORKED_CACHE_OPENING);
		if (!dev->cache_asked)
			verbs_cache_join(dev);
		forked_give(FORKED_CACHE_OPENING);
	}
	return dev->cache;
}

/* Returns the device's cache or NULL; never opens one. */
static struct verbs_cache *cache_had(const struct verbs_dev *dev)
{
	return __atomic_load_n(&dev->cache_asked, __ATOMIC_ACQUIRE) ? dev->cache : NULL; /* join */
}

/*
 * Takes out a dropped registration of the device that has no user, or returns NULL. Stops watching
 * its pages unless other registrations share them.
 */
static struct verbs_mem *next_out(struct verbs_cache *c, const struct verbs_dev *dev)
{
	struct range *range;

	pthread_mutex_lock(&c->lock);
	range = ranges_next_out(&c->ranges, dev);
	if (range && !ranges_touch(&c->ranges, watch_floor(range->from), watch_ceil(range->to)))
		watch_disarm(&c->watch, range->from, range->to);
	pthread_mutex_unlock(&c->lock);
	return range ? mem_of(range) : NULL;
}

static bool verbs_cache_sweep_one(struct verbs_cache *c, const struct verbs_dev *dev)
{
	struct verbs_mem *mem;
	bool any = false;

	while ((mem = next_out(c, dev))) {
		if (mem->mr)
			dev->lib->dereg_mr(mem->mr);
		if (mem->watched)
			watch_leave(&c->watch, mem->range.from, mem->range.to);
		free(mem);
		any = true;
	}
	return any;
}

/* Watches and registers `mem`, which is in `ranges`. False: not private memory, or an error. */
static bool verbs_cache_make(struct verbs_cache *c, struct verbs_mem *mem)
{
	const struct range *range = &mem->range;
	struct iovec iov = {(void *)range->from, range->to - range->from};

	mem->watched = watch_arm(&c->watch, range->from, range->to);
	if (mem->watched && maps_private(range->from, range->to))
		mem->mr = verbs_mem_register(mem->dev, &iov, range->rights);
	return mem->mr;
}

static struct verbs_mem *verbs_cache_add(struct verbs_cache *c, struct verbs_dev *dev,
					 const struct range *range)
{
	struct verbs_mem *mem = malloc(sizeof(*mem));
	bool entered, made;

	if (!mem)
		return NULL;
	*mem = (struct verbs_mem){.dev = dev, .kept = true, .range = *range};
	pthread_mutex_lock(&c->lock);
	entered = ranges_enter(&c->ranges, &mem->range);
	pthread_mutex_unlock(&c->lock);
	verbs_cache_sweep_one(c, dev); /* the new range may have displaced others */
	if (!entered) {
		free(mem);
		return NULL;
	}
	made = verbs_cache_make(c, mem);
	pthread_mutex_lock(&c->lock);
	mem->range.ready = made;
	if (!made) {
		ranges_unlist(&c->ranges, &mem->range);
		ranges_put(&c->ranges, &mem->range);
	}
	pthread_mutex_unlock(&c->lock);
	if (made)
		return mem;
	verbs_cache_sweep_one(c, dev);
	return NULL;
}

/* The memory of a range that was just found is no longer the same. */
static void verbs_cache_drop(struct verbs_cache *c, struct range *range)
{
	const struct verbs_dev *dev = mem_of(range)->dev;

	pthread_mutex_lock(&c->lock);
	ranges_drop(&c->ranges, range->from, range->to);
	ranges_put(&c->ranges, range);
	pthread_mutex_unlock(&c->lock);
	verbs_cache_sweep_one(c, dev);
}

struct verbs_mem *verbs_cache_get(struct verbs_dev *dev, const struct iovec *iov,
				  unsigned int access)
{
	struct verbs_cache *c = cache_of(dev);
	struct range range = {.owner = dev, .rights = access}, *found = NULL;
	bool quiet;

	if (!c)
		return NULL;
	/* Exact bytes, not whole pages: a peer that may read the registration must see no more. */
	range.from = (uintptr_t)iov->iov_base;
	range.to = range.from + iov->iov_len;
	pthread_mutex_lock(&c->lock);
	quiet = watch_quiet(&c->watch);
	if (quiet)
		found = ranges_find(&c->ranges, dev, range.from, range.to, access);
	pthread_mutex_unlock(&c->lock);
	if (found && !watch_valid(&c->watch, found->from, found->to)) {
		verbs_cache_drop(c, found);
		found = NULL;
	}
	if (found)
		return mem_of(found);
	/* Memory that is being changed right now is not cached. */
	return quiet ? verbs_cache_add(c, dev, &range) : NULL;
}

void verbs_cache_put(struct verbs_mem *mem)
{
	const struct verbs_dev *dev = mem->dev;
	struct verbs_cache *c = dev->cache;

	pthread_mutex_lock(&c->lock);
	ranges_put(&c->ranges, &mem->range);
	pthread_mutex_unlock(&c->lock);
	verbs_cache_sweep_one(c, dev);
}

bool verbs_cache_spare(const struct verbs_dev *dev)
{
	struct verbs_cache *c = cache_had(dev);

	if (!c)
		return false;
	pthread_mutex_lock(&c->lock);
	ranges_drop_idle(&c->ranges);
	pthread_mutex_unlock(&c->lock);
	return verbs_cache_sweep_one(c, dev);
}

void verbs_cache_sweep(const struct verbs_dev *dev)
{
	struct verbs_cache *c = cache_had(dev);

	if (c)
		verbs_cache_sweep_one(c, dev);
}

void verbs_cache_leave(struct verbs_dev *dev)
{
	struct verbs_cache *c = cache_had(dev);

	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	ranges_drop_owner(&c->ranges, dev);
	pthread_mutex_unlock(&c->lock);
	verbs_cache_sweep_one(c, dev);
	forked_take(FORKED_CACHE_OPENING);
	if (!--c->devices) {
		watch_close(&c->watch);
		pthread_mutex_destroy(&c->lock);
		ranges_fini(&c->ranges);
		free(c);
		shared = NULL;
	}
	forked_give(FORKED_CACHE_OPENING);
}
