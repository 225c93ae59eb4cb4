/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/shard.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/domain.h"
#include "core/workers.h"

static struct shard *shard_new(struct domain *dom)
{
	struct shard *shard = apart_alloc(sizeof(*shard));

	if (!shard)
		return NULL;
	lock_init(&shard->lock);
	shard->calls_left = shard->calls_then = WORKERS_RARELY;
	list_init(&shard->members);
	list_push(&dom->shards, &shard->in_domain);
	return shard;
}

int shard_open_main(struct domain *dom)
{
	list_init(&dom->shards);
	dom->main_shard = shard_new(dom);
	return dom->main_shard ? 0 : -FI_ENOMEM;
}

void shard_close_all(struct domain *dom)
{
	struct list *node;

	while ((node = list_pop(&dom->shards)))
		free(LIST_ENTRY(node, struct shard, in_domain));
}

void shard_skip(struct domain *dom, const struct list *worker)
{
	LIST_EACH_OF (struct shard, shard, &dom->shards, in_domain) {
		if (shard->next_other == worker)
			shard->next_other = NULL;
	}
}

void shard_enter(struct domain *dom, struct sharded *x)
{
	list_init(&x->in_shard);
	x->shard = dom->main_shard;
}

void shard_leave(struct sharded *x)
{
	list_remove(&x->in_shard);
}

#if ENABLE_DEBUG
void shard_enter_alone(const struct sharded *x, const char *call)
{
	struct shard *shard = x->shard;

	if (!lock_try(&shard->lock)) {
		fprintf(stderr,
			"FI_THREAD_DOMAIN promises one thread at a time: thread %d is in %s, thread %d comes with %s\n",
			shard->thread, shard->call ? shard->call : "another call", (int)gettid(),
			call);
		abort();
	}
	shard->call = call;
	shard->thread = gettid();
}

void shard_leave_alone(const struct sharded *x)
{
	x->shard->call = NULL;
	x->shard->thread = 0;
	lock_give(&x->shard->lock);
}
#endif

static void shard_move(struct domain *dom, struct sharded *x, struct shard *to)
{
	list_remove(&x->in_shard);
	__atomic_store_n(&x->shard, to, __ATOMIC_RELEASE); /* pairs with shard_take */
	if (to != dom->main_shard)
		list_push(&to->members, &x->in_shard);
}

/* Moves all objects of a shard. It stays in the list: threads may be waiting for its lock. */
static void shard_empty(struct domain *dom, struct shard *from, struct shard *to)
{
	if (from == to)
		return;
	LIST_EACH_SAFE (node, &from->members)
		shard_move(dom, LIST_ENTRY(node, struct sharded, in_shard), to);
}

/* Returns an empty shard, or the main one if there are too many or no memory. */
static struct shard *find_empty(struct domain *dom)
{
	struct shard *shard = NULL;
	unsigned int count = 0;

	LIST_EACH_OF (struct shard, at, &dom->shards, in_domain) {
		count++;
		if (list_empty(&at->members) && at != dom->main_shard)
			return at;
	}
	if (count < SHARDS_MAX)
		shard = shard_new(dom);
	if (!shard)
		return dom->main_shard;
	lock_take(&shard->lock); /* domain_unlock gives it back */
	return shard;
}

void shard_place(struct domain *dom, const struct shard_use *uses, size_t count, bool alone)
{
	struct shard *to = alone && dom->splits ? NULL : dom->main_shard;

	for (size_t i = 0; i < count; i++)
		if (uses[i].used && (!to || uses[i].object->shard == dom->main_shard))
			to = uses[i].object->shard;
	if (!to)
		to = find_empty(dom);
	for (size_t i = 0; i < count; i++) {
		if (uses[i].used)
			shard_empty(dom, uses[i].object->shard, to);
		else
			shard_move(dom, uses[i].object, to);
	}
}

void shard_join(struct domain *dom, struct sharded *ep, struct sharded *object, bool used)
{
	const struct shard_use uses[] = {{ep, true}, {object, used}};

	shard_place(dom, uses, 2, true);
}

void shard_return(struct domain *dom, const struct sharded *x)
{
	shard_empty(dom, x->shard, dom->main_shard);
}

void shard_unite(struct domain *dom)
{
	dom->splits = false;
	LIST_EACH (node, &dom->shards)
		shard_empty(dom, LIST_ENTRY(node, struct shard, in_domain), dom->main_shard);
}

void shard_unite_now(struct domain *dom)
{
	domain_lock(dom);
	shard_unite(dom);
	domain_unlock(dom);
}
