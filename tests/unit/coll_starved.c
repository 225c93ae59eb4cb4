/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a member without memory for the group's layout refuses to begin a collective, as its
 * plan would differ from the other members', and begins the collective once there is memory.
 */
#include "fake_group.h"

#include "starve.h"

#define MEMBERS 100000

static void setup(void)
{
	starve_prepare();
	group_setup();
}

static void teardown(void)
{
	fake_shut();
}

/* Makes a set of ourselves, the peer, and many members that do not exist. */
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
	starve_begin();
	ret = (int)fi_barrier(fake.ep, fi_mc_addr(mc), NULL);
	starve_end();
	ck_assert_int_eq(ret, -FI_ENOMEM);
	ck_assert_uint_eq(fake.count, 0);
	ck_assert_int_eq(fi_barrier(fake.ep, fi_mc_addr(mc), NULL), 0);
	/* The refused calls did not count: this is collective 1. */
	ck_assert_uint_ge(fake.count, 1);
	ck_assert_uint_eq(wire_op(fake.packets[0].head), WIRE_MSG);
	ck_assert_uint_eq(fake.packets[0].tag & ~WIRE_GROUP_WHAT_MASK, WIRE_GROUP_TAG(1, 0, 0));
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
}
END_TEST

int main(void)
{
	TCase *starved = tcase_create("starved");

	tcase_add_checked_fixture(starved, setup, teardown);
	tcase_add_test(starved, without_layout);
	return starve_run("coll_starved", starved);
}
