/* SPDX-License-Identifier: BSD-2-Clause */
/* The access domain. Its locks are in core/shard.h. fi_domain(3). */
#ifndef WEFT_CORE_DOMAIN_H
#define WEFT_CORE_DOMAIN_H

#include <rdma/fi_domain.h>
#include <stdbool.h>

#include "base/forked.h"
#include "base/list.h"
#include "core/fabric.h"
#include "core/shard.h"

struct av;
struct cntr;
struct device_ops;
struct ep;
struct eq;
struct group_ops;
struct mr_share;
struct mr_table;
struct waiter;

/* What the objects of a domain ask of the rooms above. Domain locked. */
struct domain_calls {
	/* Installs the calls of an endpoint, one of `callees`, anew. */
	void (*install)(struct ep *callee);
	const struct group_ops *groups; /* xfer/group.h: collectives, of which the engine is told */
	/* Starts waiting work that is due. */
	void (*run_due)(struct domain *dom);
	/* An entry of the vector is there, or is about to be removed: its peer loses its address. */
	void (*av_inserted)(struct av *av, fi_addr_t index);
	void (*av_removing)(struct av *av, fi_addr_t index);
	/* It has got another user id. */
	void (*av_renamed)(struct av *av, fi_addr_t index);
};

struct domain {
	struct fid_domain fid;
	const struct domain_calls *calls;
	struct fabric *fabric;
	struct opened_domain opened;
	struct fi_info *info; /* our copy of what fi_domain was given */
	struct list shards;   /* struct shard.in_domain, the main one first; it guards the list */
	struct shard *main_shard;
	bool splits; /* endpoints may have shards of their own */
	/* The application promised one thread at a time: data calls skip the lock until domain_use_locks. */
	bool unlocked;
	struct list callees; /* struct ep.in_domain: those whose calls are installed */
	struct list queues;  /* struct cq.in_domain */
	int deferred;        /* atomic: number of works that wait or are under way */
	/* Once in so many calls a read also drives the domain's other workers. */
	unsigned int rarely;
	struct list workers; /* struct driven.in_domain: all workers */
	struct list sets;    /* struct av_set.in_domain */
	uint64_t set_count;  /* address vector sets opened so far */
	struct list waiting; /* struct cntr.in_waiting: counters that trigger waiting work */
	struct list joined;  /* struct cntr.in_joined: counters that every worker drives */
	struct cntr *due;    /* atomic: counters that may be due, linked by next_due */
	bool starting;       /* defer_run is running */
	bool stuck;          /* some due work found no space, and is tried again */
	struct mr_table *mrs;
	const struct device_ops *device_ops; /* of a device that has `device`; NULL: our engine */
	void *device;
	void *nic; /* a device that also registers our regions: core/mr_nic.h */
	bool nic_tried;
	bool nic_lost;           /* one was taken away, and may come back */
	unsigned int nic_uses;   /* regions registered with it, or being so */
	struct list nic_regions; /* struct region.in_nic */
	struct mr_share *share;  /* the table of regions that peers map, or NULL */
	unsigned int max_keys;   /* FI_AV_AUTH_KEY: keys of an address vector; else 0 */
	struct eq *eq;           /* bound for asynchronous events, or NULL */
	uint64_t eq_flags;       /* FI_REG_MR */
	int ref;                 /* atomic: objects open on the domain */
	unsigned int forks;      /* forked_count of the process that opened it */
	struct progress *thread; /* thread of automatic progress, or NULL */
	struct waiter *cover;    /* the waiter that wakes for all workers (workers_arm), or NULL */
};

static inline struct domain *domain_of(struct fid_domain *fid)
{
	return (struct domain *)fid;
}

/* Takes the locks of all shards, the main one first, so all threads in one order. */
static inline void domain_lock(struct domain *dom)
{
	LIST_EACH (node, &dom->shards)
		lock_take(&LIST_ENTRY(node, struct shard, in_domain)->lock);
}

/* Gives them back, the main one last: the thread that waits for it may add to the list. */
static inline void domain_unlock(struct domain *dom)
{
	for (struct list *node = dom->shards.prev; node != &dom->shards;) {
		struct list *next = node->prev;

		lock_give(&LIST_ENTRY(node, struct shard, in_domain)->lock);
		node = next;
	}
}

static inline uint32_t domain_api(const struct domain *dom)
{
	return dom->fabric->fid.api_version;
}

/* Returns whether work waits or runs that any worker's progress may advance. From any thread. */
static inline bool domain_defers(const struct domain *dom)
{
	return __atomic_load_n(&dom->deferred, __ATOMIC_RELAXED) != 0;
}

/* Returns whether a counter may have reached the threshold of waiting work. From any thread. */
static inline bool domain_due(const struct domain *dom)
{
	return __atomic_load_n(&dom->due, __ATOMIC_RELAXED) != NULL;
}

/* Returns true in a forked child: the parent owns the objects, so closing them must do nothing. */
static inline bool domain_foreign(const struct domain *dom)
{
	return dom->forks != forked_count();
}

/*
 * From now on data calls take the lock, whatever the threading level: something else touches the domain, or its application
 * uses contexts of a scalable endpoint from several threads. No data call may be under way. Domain locked.
 */
void domain_use_locks(struct domain *dom);

/* An endpoint of this entry is opened: domain_use_locks unless it keeps the promise that the domain was opened with. */
void domain_admit(struct domain *dom, const struct fi_info *info);

/*
 * Refuses contexts of accelerators that post operations by themselves (FI_XPU, from API 2.7), which no transport has.
 * `xpu_ctx` is the member of an attribute structure, which callers of an older interface do not have: it is not read then.
 * `call` is for the log. 0, or -FI_ENOSYS for a context. fi_domain(3)
 */
int domain_refuse_xpu(const struct domain *dom, void *const *xpu_ctx, const char *call);

/* Starts the thread of automatic progress if there is none. 0 or a negative error. */
int progress_start(struct domain *dom);
void progress_stop(struct domain *dom);
/* Makes the thread poll the workers at once. */
void progress_wake(struct domain *dom);
/*
 * Makes the thread poll if it sleeps armed, since another thread may have consumed the event that
 * was to wake it. Domain locked.
 */
void progress_rearm(struct domain *dom);
/* Returns a descriptor of the thread, readable when an armed worker has an event. Requires a thread. */
int progress_fd(const struct domain *dom);
/* Tells the thread that an application thread is about to sleep and only the thread can wake it. */
void progress_take_over(struct domain *dom);
/* Lets a new worker's descriptor wake the thread, if there is one. Domain locked. */
void progress_watch(struct domain *dom, int fd);

#endif
