/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two tables of buckets over the same messages. A bucket holds one message for each key, the oldest; the others of
 * that key hang on it, so that no number of equal messages makes a search longer. The hash has a secret of the process
 * in it: a peer cannot choose tags that share a bucket.
 */
#include "xfer/msg/rx_index.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/hash.h"
#include "xfer/msg/rx.h"

#define FIRST   64u        /* messages from which on a queue has an index */
#define BUCKETS 128u       /* at first, in each table */
#define MOST    (1u << 20) /* buckets; 8 MiB a table */

struct rx_index {
	size_t count;     /* messages */
	uint32_t buckets; /* in each table, a power of two */
	uint32_t keys;    /* different ones, in the table by source: no fewer than by tag */
	struct rx_equal **table[RX_KEYS];
};

static uint64_t secret[2]; /* set once; [1] is odd */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_secret(void)
{
	/* Without random numbers a peer that knows the hash may slow the search down. */
	if (getrandom(secret, sizeof(secret), GRND_NONBLOCK) != sizeof(secret))
		secret[0] = (uint64_t)(uintptr_t)&once;
	secret[1] |= 1;
}

static inline struct unexpected *rx_index_message_of(struct rx_equal *e, int by)
{
	return LIST_ENTRY(e, struct unexpected, equal[by]);
}

static inline bool is_tagged(const struct unexpected *u)
{
	return wire_flags(u->head) & WIRE_TAGGED || wire_op(u->head) == WIRE_AMO;
}

/* FI_ADDR_UNSPEC stands for all sources; no message has it. */
static uint32_t rx_index_hash(bool tagged, fi_addr_t src, uint64_t tag)
{
	uint64_t x = hash_mix(tag ^ secret[0]) ^ (src + tagged) * secret[1];

	return (uint32_t)(hash_mix(x * secret[1]) >> 32);
}

static struct rx_equal **rx_index_bucket_of(const struct rx_index *x, int by,
					    const struct unexpected *u)
{
	fi_addr_t src = by == RX_BY_SOURCE ? u->indexed_src : FI_ADDR_UNSPEC;

	return &x->table[by][rx_index_hash(is_tagged(u), src, u->tag) & (x->buckets - 1)];
}

static bool rx_index_equal(const struct unexpected *a, const struct unexpected *b, int by)
{
	return a->tag == b->tag && is_tagged(a) == is_tagged(b) &&
	       (by == RX_BY_TAG || a->indexed_src == b->indexed_src);
}

static void link_oldest(struct rx_equal **bucket, struct rx_equal *e)
{
	e->next = *bucket;
	e->back = bucket;
	if (e->next)
		e->next->back = &e->next;
	*bucket = e;
}

static void rx_index_enter(struct rx_index *x, int by, struct unexpected *u)
{
	struct rx_equal **bucket = rx_index_bucket_of(x, by, u), *e = *bucket;

	while (e && !rx_index_equal(rx_index_message_of(e, by), u, by))
		e = e->next;
	if (e) {
		list_push(&e->all, &u->equal[by].all); /* before the oldest: behind the newest */
		return;
	}
	link_oldest(bucket, &u->equal[by]);
	x->keys += by == RX_BY_SOURCE;
}

static void rx_index_leave(struct rx_index *x, int by, struct unexpected *u)
{
	struct rx_equal *e = &u->equal[by], *second = LIST_ENTRY(e->all.next, struct rx_equal, all);
	bool alone = list_empty(&e->all);

	list_remove(&e->all);
	if (!e->back)
		return;
	*e->back = e->next;
	if (e->next)
		e->next->back = e->back;
	if (!alone)
		link_oldest(e->back, second);
	else
		x->keys -= by == RX_BY_SOURCE;
	e->back = NULL;
}

/* All messages that stand in the old table into the new one. */
static void rx_index_move(struct rx_index *x, int by, struct rx_equal **from, uint32_t buckets)
{
	for (uint32_t i = 0; i < buckets; i++)
		for (struct rx_equal *e = from[i], *next; e; e = next) {
			next = e->next;
			link_oldest(rx_index_bucket_of(x, by, rx_index_message_of(e, by)), e);
		}
}

static void rx_index_free_tables(struct rx_equal **table[RX_KEYS])
{
	for (int by = 0; by < RX_KEYS; by++)
		free(table[by]);
}

/* False: there is no memory. */
static bool rx_index_make_tables(struct rx_equal **table[RX_KEYS], size_t buckets)
{
	for (int by = 0; by < RX_KEYS; by++)
		table[by] = calloc(buckets, sizeof(struct rx_equal *));
	if (table[0] && table[1])
		return true;
	rx_index_free_tables(table);
	return false;
}

/* Without memory the chains become longer. */
static void rx_index_grow(struct rx_index *x)
{
	uint32_t buckets = x->buckets;
	struct rx_equal **table[RX_KEYS], **old;

	if (x->keys <= buckets || buckets == MOST ||
	    !rx_index_make_tables(table, 2 * (size_t)buckets))
		return;
	x->buckets = 2 * buckets;
	for (int by = 0; by < RX_KEYS; by++) {
		old = x->table[by];
		x->table[by] = table[by];
		rx_index_move(x, by, old, buckets);
		free(old);
	}
}

static void rx_index_add_entry(struct rx_index *x, struct unexpected *u)
{
	x->count++;
	u->indexed = true;
	u->indexed_src = rx_source(u);
	for (int by = 0; by < RX_KEYS; by++)
		rx_index_enter(x, by, u);
	rx_index_grow(x);
}

static struct rx_index *rx_index_make(void)
{
	struct rx_index *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	pthread_once(&once, make_secret);
	x->buckets = BUCKETS;
	if (rx_index_make_tables(x->table, BUCKETS))
		return x;
	free(x);
	return NULL;
}

void rx_index_add(struct rx *rx, struct unexpected *u)
{
	if (rx->index) {
		rx_index_add_entry(rx->index, u);
		return;
	}
	if (rx->unexpected_count < FIRST || rx->unexpected_count & (rx->unexpected_count - 1))
		return; /* without memory tries again when there are twice as many */
	rx->index = rx_index_make();
	for (int tagged = 0; rx->index && tagged < 2; tagged++)
		LIST_EACH (node, &rx->unexpected[tagged])
			rx_index_add_entry(rx->index, LIST_ENTRY(node, struct unexpected, link));
}

void rx_index_remove(struct rx *rx, struct unexpected *u)
{
	if (!u->indexed)
		return;
	u->indexed = false;
	for (int by = 0; by < RX_KEYS; by++)
		rx_index_leave(rx->index, by, u);
	if (!--rx->index->count)
		rx_index_free(rx);
}

void rx_index_source(struct rx *rx, struct unexpected *u, fi_addr_t src)
{
	if (!u->indexed || u->indexed_src == src)
		return;
	rx_index_leave(rx->index, RX_BY_SOURCE, u);
	u->indexed_src = src;
	rx_index_enter(rx->index, RX_BY_SOURCE, u);
}

struct unexpected *rx_index_find(const struct rx *rx, bool tagged, fi_addr_t src, uint64_t tag)
{
	const struct rx_index *x = rx->index;
	int by = src == FI_ADDR_UNSPEC ? RX_BY_TAG : RX_BY_SOURCE;
	struct rx_equal *e = x->table[by][rx_index_hash(tagged, src, tag) & (x->buckets - 1)];

	for (; e; e = e->next) {
		struct unexpected *u = rx_index_message_of(e, by);

		if (u->tag == tag && is_tagged(u) == tagged &&
		    (by == RX_BY_TAG || u->indexed_src == src))
			return u;
	}
	return NULL;
}

void rx_index_free(struct rx *rx)
{
	if (!rx->index)
		return;
	rx_index_free_tables(rx->index->table);
	free(rx->index);
	rx->index = NULL;
}
