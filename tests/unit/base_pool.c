/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves how pools, lists and the lock behave. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/list.h"
#include "base/lock.h"
#include "base/pool.h"
#include "suite.h"

#define MANY 1000 /* objects: several chunks */

struct thing {
	uint64_t number;
	struct list link;
	char rest[21];
};

START_TEST(pool_gives_distinct_aligned_objects)
{
	static struct thing *all[MANY];
	struct pool p;

	pool_init(&p, sizeof(struct thing));
	for (uint64_t i = 0; i < MANY; i++) {
		all[i] = pool_get(&p);
		ck_assert_ptr_nonnull(all[i]);
		ck_assert_uint_eq((uintptr_t)all[i] % 16, 0);
		memset(all[i], 0xff, sizeof(*all[i]));
		all[i]->number = i;
	}
	ck_assert_uint_eq(pool_in_use(&p), MANY);
	for (uint64_t i = 0; i < MANY; i++)
		ck_assert_uint_eq(all[i]->number, i);
	for (uint64_t i = 0; i < MANY; i++)
		pool_put(&p, all[i]);
	ck_assert_uint_eq(pool_in_use(&p), 0);
	pool_fini(&p);
}
END_TEST

/* The first bytes of a long object share a cache line with its header, and with no other object. */
START_TEST(long_objects_begin_a_line)
{
	struct pool p;

	pool_init(&p, 65);
	for (int i = 0; i < MANY; i++) {
		unsigned char *object = pool_get(&p);

		ck_assert_ptr_nonnull(object);
		ck_assert_uint_eq(((uintptr_t)object - sizeof(struct pool_item)) % 64, 0);
	}
	pool_fini(&p);
}
END_TEST

START_TEST(pool_reuses_before_it_grows)
{
	struct pool p;
	void *first;
	uint32_t count;

	pool_init(&p, 1);
	first = pool_get(&p);
	count = p.count;
	for (int i = 0; i < MANY; i++) {
		pool_put(&p, first);
		ck_assert_ptr_eq(pool_get(&p), first);
	}
	ck_assert_uint_eq(p.count, count);
	pool_fini(&p);
}
END_TEST

START_TEST(pool_knows_stale_ids)
{
	static uint32_t ids[MANY];
	struct pool p;

	pool_init(&p, sizeof(struct thing));
	for (int i = 0; i < MANY; i++) {
		void *o = pool_get(&p);

		ids[i] = pool_id(o);
		ck_assert_ptr_eq(pool_find(&p, ids[i]), o);
		ck_assert_ptr_null(pool_find(&p, ids[i] & ~POOL_IN_USE));
	}
	for (int i = 0; i < MANY; i += 2)
		pool_put(&p, pool_find(&p, ids[i]));
	for (int i = 0; i < MANY; i++)
		ck_assert_int_eq(pool_find(&p, ids[i]) != NULL, i % 2);
	for (int i = 0; i < MANY; i += 2) /* the same memory again, under other ids */
		ck_assert_ptr_nonnull(pool_get(&p));
	for (int i = 0; i < MANY; i += 2)
		ck_assert_ptr_null(pool_find(&p, ids[i]));
	ck_assert_ptr_null(pool_find(&p, UINT32_MAX));
	pool_fini(&p);
}
END_TEST

START_TEST(pool_finds_nothing_when_empty)
{
	struct pool p;

	pool_init(&p, 8);
	ck_assert_ptr_null(pool_find(&p, 0));
	ck_assert_ptr_null(pool_find(&p, 1u << POOL_INDEX_BITS));
	pool_fini(&p);
	pool_fini(&p);
}
END_TEST

static struct thing *thing_of(struct list *node)
{
	return LIST_ENTRY(node, struct thing, link);
}

START_TEST(list_keeps_order)
{
	struct thing t[5] = {0};
	struct list head;
	uint64_t expect = 0;

	list_init(&head);
	ck_assert(list_empty(&head));
	ck_assert_ptr_null(list_pop(&head));
	for (uint64_t i = 1; i < 5; i++) {
		t[i].number = i;
		list_push(&head, &t[i].link);
	}
	list_push_front(&head, &t[0].link);
	LIST_EACH (node, &head)
		ck_assert_uint_eq(thing_of(node)->number, expect++);
	ck_assert_uint_eq(expect, 5);
	ck_assert_ptr_eq(thing_of(list_pop(&head)), &t[0]);
	ck_assert_ptr_eq(thing_of(list_pop(&head)), &t[1]);
}
END_TEST

START_TEST(list_allows_removal_on_the_way)
{
	struct thing t[6] = {0};
	struct list head;
	int left = 0;

	list_init(&head);
	for (uint64_t i = 0; i < 6; i++) {
		t[i].number = i;
		list_push(&head, &t[i].link);
	}
	LIST_EACH_SAFE (node, &head)
		if (thing_of(node)->number % 2)
			list_remove(node);
	list_remove(&t[1].link); /* again: harmless */
	LIST_EACH (node, &head) {
		ck_assert_uint_eq(thing_of(node)->number % 2, 0);
		left++;
	}
	ck_assert_int_eq(left, 3);
}
END_TEST

START_TEST(list_inserts_before)
{
	struct thing a = {0}, b = {0};
	struct list head;

	list_init(&head);
	list_push(&head, &b.link);
	list_insert_before(&b.link, &a.link);
	ck_assert_ptr_eq(head.next, &a.link);
	ck_assert_ptr_eq(a.link.next, &b.link);
	ck_assert_ptr_eq(head.prev, &b.link);
}
END_TEST

#define THREADS 4
#define ROUNDS  20000

static struct {
	struct lock lock;
	volatile unsigned long count; /* volatile: each round is a read and a write */
} shared;

static void *count_up(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		lock_take(&shared.lock);
		shared.count = shared.count + 1;
		lock_give(&shared.lock);
	}
	return NULL;
}

START_TEST(lock_excludes)
{
	pthread_t threads[THREADS];

	lock_init(&shared.lock);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, count_up, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(shared.count, THREADS * ROUNDS);
}
END_TEST

START_TEST(lock_tries)
{
	struct lock l;

	lock_init(&l);
	ck_assert(lock_try(&l));
	ck_assert(!lock_try(&l));
	lock_give(&l);
	ck_assert(lock_try(&l));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_pool");
	TCase *pool = tcase_create("pool"), *list = tcase_create("list"),
	      *lock = tcase_create("lock");

	tcase_add_test(pool, pool_gives_distinct_aligned_objects);
	tcase_add_test(pool, long_objects_begin_a_line);
	tcase_add_test(pool, pool_reuses_before_it_grows);
	tcase_add_test(pool, pool_knows_stale_ids);
	tcase_add_test(pool, pool_finds_nothing_when_empty);
	tcase_add_test(list, list_keeps_order);
	tcase_add_test(list, list_allows_removal_on_the_way);
	tcase_add_test(list, list_inserts_before);
	tcase_add_test(lock, lock_excludes);
	tcase_add_test(lock, lock_tries);
	suite_add_tcase(suite, pool);
	suite_add_tcase(suite, list);
	suite_add_tcase(suite, lock);
	return suite_run(suite);
}
