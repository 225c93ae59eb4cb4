/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The access domain and its one lock, which guards every object opened on it: endpoints, queues,
 * address vectors, regions. fi_domain(3).
 */
#ifndef WEFT_CORE_DOMAIN_H
#define WEFT_CORE_DOMAIN_H

#include <pthread.h>
#include <rdma/fi_domain.h>
#include <stdbool.h>

#include "base/forked.h"
#include "base/list.h"
#include "base/lock.h"
#include "core/fabric.h"

struct cntr;
struct device_ops;
struct eq;
struct mr_share;
struct mr_table;
struct waiter;

struct domain {
	struct fid_domain fid;
	struct fabric *fabric;
	struct opened_domain opened;
	struct fi_info *info; /* what it was opened with, our copy */
	struct lock lock;
	bool unlocked;       /* one thread at a time by promise of the application: data calls skip
	                        the lock */
	struct list workers; /* struct worker.in_domain: every enabled address */
	struct list sets;    /* struct av_set.in_domain */
	uint64_t set_count;  /* opened so far */
	struct list waiting; /* struct cntr.in_waiting: what work waits for that starts later */
	struct list joined;  /* struct cntr.in_joined: every worker drives them */
	struct cntr *due;    /* atomic: counters whose work may start, linked by next_due */
	int deferred;        /* atomic: work that waits, or is deferred and under way */
	bool starting;       /* in defer_run */
	bool stuck;          /* some of `due` found no room */
	struct mr_table *mrs;
	const struct device_ops *device_ops; /* memory is registered with `device`; NULL: ours */
	void *device;
	void *nic; /* a device that knows our regions, too: core/mr_nic.h */
	bool nic_tried;
	struct list nic_regions; /* struct region.in_nic */
	struct mr_share *share;  /* the regions as peers see them, or NULL */
	struct eq *eq;           /* bound for asynchronous events, or NULL */
	uint64_t eq_flags;       /* FI_REG_MR */
	int ref;                 /* atomic: children */
	unsigned int forks;      /* forked_count of the process that opened it */
	unsigned int
		progress_calls; /* counts progress made by the application, read by the thread */
	unsigned int
		rarely; /* others of its workers get a progress call where no bit of `progress_calls` here is set */
	struct progress *thread; /* automatic progress, or NULL */
	struct waiter *cover;    /* whose sleeper wakes for all workers, see workers_arm; or NULL */
	unsigned int parts;      /* counts calls of domain_part */
};

static inline struct domain *domain_of(struct fid_domain *fid)
{
	return (struct domain *)fid;
}

/*
 * A part of something longer is done, a fragment of a message or a message of a collective: the rest is on its way,
 * and who polls does well to go on. Domain locked.
 */
static inline void domain_part(struct domain *dom)
{
	dom->parts++;
}

static inline uint32_t domain_api(const struct domain *dom)
{
	return dom->fabric->fid.api_version;
}

/* Is there work that any worker's progress may bring on? From any thread. */
static inline bool domain_defers(const struct domain *dom)
{
	return __atomic_load_n(&dom->deferred, __ATOMIC_RELAXED) != 0;
}

/* May something start that waited for a counter? From any thread. */
static inline bool domain_due(const struct domain *dom)
{
	return __atomic_load_n(&dom->due, __ATOMIC_RELAXED) != NULL;
}

/* True in a forked child: its objects are the parent's, closing them must do nothing. */
static inline bool domain_foreign(const struct domain *dom)
{
	return dom->forks != forked_count();
}

int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		void *context);
int domain_open2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		 uint64_t flags, void *context);

/* Starts the thread of automatic progress if there is none yet. 0 or a negative error. */
int progress_start(struct domain *dom);
void progress_stop(struct domain *dom);
/* The thread looks at the workers at once. */
void progress_wake(struct domain *dom);
/* The same if it relies on being woken, by what somebody else may have read now. Domain locked. */
void progress_rearm(struct domain *dom);
/* Readable when something came for any worker that is armed; the thread's. There is a thread. */
int progress_fd(const struct domain *dom);
/* An application thread is about to sleep on something only the thread can wake it from. */
void progress_take_over(struct domain *dom);
/* A new worker's descriptor wakes the thread, if there is one. Domain locked. */
void progress_watch(struct domain *dom, int fd);

#endif
