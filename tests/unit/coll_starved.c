/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One member alone is out of memory for what all plan by: it cannot begin a collective, rather than begin another
 * one than the rest, and can when there is memory again.
 */
#include "fake_group.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>

#define MEMBERS 100000
#define ROOM    (1u << 20)  /* bytes left: enough for anything else */
#define LARGE   (32u << 10) /* bytes; from there on blocks are mapped one by one */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_LIMITS false
#else
#define HAS_LIMITS true
#endif

static struct rlimit all;

/* Memory is from a store of valgrind's own, there. */
static bool in_valgrind(void)
{
	const char *loaded = getenv("LD_PRELOAD");

	return loaded && strstr(loaded, "vgpreload");
}

static void setup(void)
{
	ck_assert_int_eq(mallopt(M_MMAP_THRESHOLD, LARGE), 1);
	group_setup();
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &all), 0);
}

static void teardown(void)
{
	fake_shut();
}

static void starve(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;
	struct rlimit few = all;

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	few.rlim_cur = pages * 4096 + ROOM;
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &few), 0);
}

/* Ourselves, the peer, and many who are not there. */
static struct fid_av_set *large_set(void)
{
	struct fid_av_set *set = group_set((const fi_addr_t[]){our.self, fake.addr}, 2);

	for (unsigned int i = 2; i < MEMBERS; i++) {
		char name[32];
		fi_addr_t addr;

		snprintf(name, sizeof(name), "fi_shm://far-%u", i);
		ck_assert_int_eq(fi_av_insert(fake.av, name, 1, &addr, 0, NULL), 1);
		ck_assert_int_eq(fi_av_set_insert(set, addr), 0);
	}
	return set;
}

START_TEST(without_layout)
{
	struct fid_av_set *set = large_set();
	struct fid_mc *mc = group_join(set, true);
	int ret;

	group_expect_stands(mc, true);
	starve();
	ret = (int)fi_barrier(fake.ep, fi_mc_addr(mc), NULL);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &all), 0);
	ck_assert_int_eq(ret, -FI_ENOMEM);
	ck_assert_uint_eq(fake.count, 0);
	ck_assert_int_eq(fi_barrier(fake.ep, fi_mc_addr(mc), NULL), 0);
	/* It is the first one still. */
	ck_assert_uint_ge(fake.count, 1);
	ck_assert_uint_eq(wire_op(fake.packets[0].head), WIRE_MSG);
	ck_assert_uint_eq(fake.packets[0].tag & ~WIRE_GROUP_WHAT_MASK, WIRE_GROUP_TAG(1, 0, 0));
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
}
END_TEST

int main(void)
{
	Suite *suite;
	TCase *starved;

	if (!HAS_LIMITS || in_valgrind()) {
		puts("address space is not what is short here");
		return 77;
	}
	suite = suite_create("coll_starved");
	starved = tcase_create("starved");
	tcase_add_checked_fixture(starved, setup, teardown);
	tcase_add_test(starved, without_layout);
	suite_add_tcase(suite, starved);
	return suite_run(suite);
}
