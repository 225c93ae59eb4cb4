/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The locks of a domain. Every object of a domain is in one shard, whose lock its calls take: an
 * endpoint with its worker, and the queues and counters that drive the worker. All begin in the
 * main shard. Enabling gives an endpoint a shard of its own where nothing else of the domain may
 * touch what it touches, so that threads with an endpoint each share no lock (shard_place).
 *
 * Who holds any shard may read what the whole domain shares: address vectors, regions, the list of
 * workers. Who changes that, or an object's shard, holds them all (domain_lock).
 */
#ifndef WEFT_CORE_SHARD_H
#define WEFT_CORE_SHARD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/apart.h"
#include "base/list.h"
#include "base/lock.h"

/* Endpoints beyond these stay in the main shard: domain_lock takes one lock for each shard. */
#define SHARDS_MAX 64

struct domain;

struct shard {
	struct lock lock;
	/* Progress calls of the application until the domain's other workers are due, and by then. */
	unsigned int calls_left, calls_then;
	unsigned int parts; /* counts calls of shard_part */
	/* struct driven.in_domain: where driven_progress_other goes on; NULL: at the first */
	struct list *next_other;
	struct list members;   /* struct sharded.in_shard; none in the main shard */
	struct list in_domain; /* domain->shards */
	/* In debug builds: who is between shard_enter_alone and shard_leave_alone, and in which call. */
	const char *call;
	int thread;
} __attribute__((aligned(APART)));

/* Part of each object that is in a shard. */
struct sharded {
	struct shard *shard;  /* atomic: changes while all shards are locked */
	struct list in_shard; /* shard->members, except in the main shard */
};

/*
 * Takes the lock of the object's shard. The object may change its shard while we wait; the new one
 * may be as new as the change, so it is acquired: its lock is not touched before it is initialised.
 * Pairs with the release in shard.c move. The second look needs no order: the lock brings it.
 */
static inline void shard_take(const struct sharded *x)
{
	struct shard *shard = __atomic_load_n(&x->shard, __ATOMIC_ACQUIRE);

	lock_take(&shard->lock);
	while (__builtin_expect(__atomic_load_n(&x->shard, __ATOMIC_RELAXED) != shard, 0)) {
		lock_give(&shard->lock);
		shard = __atomic_load_n(&x->shard, __ATOMIC_ACQUIRE);
		lock_take(&shard->lock);
	}
}

static inline void shard_give(const struct sharded *x)
{
	lock_give(&x->shard->lock);
}

/* Returns how many progress calls the application has made. */
static inline unsigned int shard_calls(const struct shard *shard)
{
	return shard->calls_then - shard->calls_left;
}

/*
 * In place of shard_take and shard_give where the domain is `unlocked`: nothing to do, as the application promised that no other
 * thread is inside. Debug builds abort where one is, whatever it has called, after a message that names the call.
 */
#if ENABLE_DEBUG
void shard_enter_alone(const struct sharded *x, const char *call);
void shard_leave_alone(const struct sharded *x);
#else
static inline void shard_enter_alone(const struct sharded *x, const char *call)
{
	(void)x, (void)call;
}

static inline void shard_leave_alone(const struct sharded *x)
{
	(void)x;
}
#endif

/*
 * Notes that part of a longer operation is done: a fragment of a message, or a message of a
 * collective. More is on its way, so a polling reader goes on polling. Shard locked.
 */
static inline void shard_part(const struct sharded *x)
{
	x->shard->parts++;
}

/* Make and free the main shard. 0 or -FI_ENOMEM. */
int shard_open_main(struct domain *dom);
void shard_close_all(struct domain *dom);

/* Puts a new object into the main shard. */
void shard_enter(struct domain *dom, struct sharded *x);
/* Takes an object that is being closed out of its shard. All shards locked. */
void shard_leave(struct sharded *x);

/* A worker is closed: no shard goes on with it. All shards locked. */
void shard_skip(struct domain *dom, const struct list *worker);

/*
 * Puts the objects of an endpoint that is being enabled into one shard, along with all that is in
 * the shards of those that other workers use already (`used`). `alone`: nothing but these objects
 * touches the endpoint, so it may have a shard of its own. All shards locked.
 */
struct shard_use {
	struct sharded *object;
	bool used;
};
void shard_place(struct domain *dom, const struct shard_use *uses, size_t count, bool alone);
/* Puts an object that is bound late, perhaps `used`, into the endpoint's shard, or both into one. */
void shard_join(struct domain *dom, struct sharded *ep, struct sharded *object, bool used);
/* Puts all objects into the main shard for good: something touches them all. All shards locked. */
void shard_unite(struct domain *dom);
/* The same; takes all locks itself. */
void shard_unite_now(struct domain *dom);
/* The same for the objects of one shard, which may be split again. All shards locked. */
void shard_return(struct domain *dom, const struct sharded *x);

#endif
