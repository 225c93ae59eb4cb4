/* SPDX-License-Identifier: BSD-2-Clause */
/* The owner of a region over two devices (fakes here): registers it with the second one for peers that ask. */
#include "core/mr_nic.h"
#include "fake_regions.h"
#include "suite.h"

static struct fabric fabric;
static struct fid_mr *region;

/* The region of the application, which the first device has. */
static void open_region(void)
{
	fabric.fid.api_version = FI_VERSION(2, 6);
	dom.fid.fid.fclass = FI_CLASS_DOMAIN;
	dom.fid.mr = (struct fi_ops_mr *)&mr_ops;
	dom.fabric = &fabric;
	dom.info = fi_allocinfo();
	dom.info->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	dom.nic = &v.path;
	dom.nic_tried = true;
	list_init(&dom.nic_regions);
	list_init(&dom.workers);
	mr.rkey = 11;
	dom.forks = forked_count();
	ck_assert_int_eq(shard_open_main(&dom), 0);
	ck_assert_int_eq(mr_table_open(&dom), 0);
	ck_assert_int_eq(fi_mr_reg(&dom.fid, memory, LONG, FI_REMOTE_WRITE, 0, 0, 0, &region, NULL),
			 0);
	ck_assert(mr_key_in_nic(fi_mr_key(region)));
	ck_assert_uint_eq((uint32_t)fi_mr_key(region), 11);
	mr.rkey = 22;
}

static void close_all(void)
{
	dom.nic = NULL;
	mr_table_close(&dom);
	shard_close_all(&dom);
	fi_freeinfo(dom.info);
	memset(&dom, 0, sizeof(dom));
}

/* The peer asks for the rkey at the device of a rail. Returns the answer. */
static uint32_t answer(uint64_t key, unsigned int rail, uint32_t serial)
{
	const struct verbs_rail_message m = {
		.what = VERBS_RAIL_KEY_ASKED, .rail = rail, .serial = serial, .key = key};

	hears_next(&m);
	ck_assert_uint_eq(ends[r->active].said.what, VERBS_RAIL_KEY);
	ck_assert_uint_eq(ends[r->active].said.key, key);
	ck_assert_uint_eq(ends[r->active].said.rail, rail);
	return ends[r->active].said.rkey;
}

/* A region is registered with a further device when the first peer asks, and with its end no more. */
START_TEST(owner_registers_once)
{
	unsigned int before;

	open_region();
	ck_assert_uint_eq(answer(fi_mr_key(region), 1, r->rail[1].serial), 22);
	before = registrations;
	ck_assert_uint_eq(answer(fi_mr_key(region), 1, r->rail[1].serial), 22);
	ck_assert_uint_eq(registrations, before);
	ck_assert(!list_empty(&device(1)->asked_regions));
	ck_assert_int_eq(fi_close(&region->fid), 0);
	ck_assert(list_empty(&device(1)->asked_regions));
	ck_assert_uint_eq(deregistrations, 2);
	close_all();
}
END_TEST

/* A device that is closed keeps no registration; the region outlives it. */
START_TEST(region_ends)
{
	open_region();
	ck_assert_uint_eq(answer(fi_mr_key(region), 1, r->rail[1].serial), 22);
	verbs_rails_drop_regions(device(1));
	ck_assert_uint_eq(deregistrations, 1);
	mr.rkey = 33;
	ck_assert_uint_eq(answer(fi_mr_key(region), 1, r->rail[1].serial), 33);
	ends[1].dev.removed = true;
	verbs_rails_drop_regions(device(1));
	ck_assert_uint_eq(answer(fi_mr_key(region), 1, r->rail[1].serial), 0);
	ck_assert_int_eq(fi_close(&region->fid), 0);
	ck_assert_uint_eq(deregistrations, 3);
	close_all();
}
END_TEST

/* Who guesses keys, or asks for a device that the rail does not have now, learns nothing. */
START_TEST(no_such_region)
{
	uint64_t key;

	open_region();
	key = fi_mr_key(region);
	ck_assert_uint_eq(answer(key ^ UINT64_C(1) << 50, 1, r->rail[1].serial), 0);
	ck_assert_uint_eq(answer(key, 1, r->rail[1].serial + 1), 0);
	registrations_max = registrations;
	ck_assert_uint_eq(answer(key, 1, r->rail[1].serial), 0);
	registrations_max = UINT32_MAX;
	ck_assert_int_eq(fi_close(&region->fid), 0);
	ck_assert_uint_eq(answer(key, 1, r->rail[1].serial), 0);
	ck_assert(list_empty(&device(1)->asked_regions));
	close_all();
}
END_TEST

/* Another endpoint of the domain has the second device, too, and peers that ask it. */
static struct verbs other;

static void open_other(void)
{
	memset(&other, 0, sizeof(other));
	verbs_state_init(&other, &worker.conn.opener, NULL);
	other.path = device(1)->path;
}

static void close_other(void)
{
	pool_fini(&other.links);
	pool_fini(&other.rdma_posted);
}

static uint32_t other_answer(uint64_t key)
{
	uint32_t rkey;

	ends[1].l->own = &other;
	rkey = answer(key, 1, r->rail[1].serial);
	ends[1].l->own = device(1);
	return rkey;
}

/* Endpoints share a registration; the device keeps it until the last of them closes it. */
START_TEST(endpoints_share)
{
	unsigned int before;

	open_region();
	open_other();
	ck_assert_uint_eq(answer(fi_mr_key(region), 1, r->rail[1].serial), 22);
	before = registrations;
	ck_assert_uint_eq(other_answer(fi_mr_key(region)), 22);
	ck_assert_uint_eq(registrations, before);
	verbs_rails_drop_regions(_i ? &other : device(1));
	ck_assert_uint_eq(deregistrations, 0);
	verbs_rails_drop_regions(_i ? device(1) : &other);
	ck_assert_uint_eq(deregistrations, 1);
	ck_assert_int_eq(fi_close(&region->fid), 0);
	ck_assert_uint_eq(deregistrations, 2);
	close_other();
	close_all();
}
END_TEST

/* A device that refuses a region is not asked again, whichever endpoint's peer asks. */
START_TEST(refuses_once)
{
	unsigned int before;

	open_region();
	ck_assert_uint_eq(answer(fi_mr_key(region) ^ UINT64_C(1) << 50, 1, r->rail[1].serial), 0);
	before = registrations_max = registrations;
	for (unsigned int i = 0; i < 2; i++)
		ck_assert_uint_eq(answer(fi_mr_key(region), 1, r->rail[1].serial), 0);
	open_other();
	ck_assert_uint_eq(other_answer(fi_mr_key(region)), 0);
	ck_assert_uint_eq(registrations, before + 1);
	ck_assert_int_eq(fi_close(&region->fid), 0);
	ck_assert_uint_eq(deregistrations, 1);
	ck_assert(list_empty(&other.asked_regions));
	close_other();
	close_all();
}
END_TEST

/*
 * The device that the region's key is for was taken away: no other region is registered with it, and it is closed once
 * it has none.
 */
START_TEST(own_device_is_taken_away)
{
	struct verbs_path *path = malloc(sizeof(*path));
	unsigned int before;
	struct fid_mr *later;

	*path = v.path;
	ends[0].dev.users = 2;
	open_region();
	dom.nic = path;
	before = registrations;
	ends[0].dev.removed = true;
	ck_assert_int_eq(fi_mr_reg(&dom.fid, memory, LONG, FI_REMOTE_WRITE, 0, 0, 0, &later, NULL),
			 0);
	ck_assert(!mr_key_in_nic(fi_mr_key(later)));
	ck_assert_uint_eq(registrations, before);
	ck_assert_uint_eq(answer(fi_mr_key(region), 1, r->rail[1].serial), 22);
	ck_assert_uint_eq(ends[0].dev.users, 2);
	ck_assert_int_eq(fi_close(&region->fid), 0);
	ck_assert_uint_eq(ends[0].dev.users, 1);
	ck_assert(!mr_nic_open(&dom)); /* no device has come back */
	ck_assert_int_eq(fi_close(&later->fid), 0);
	close_all();
}
END_TEST

/* It neither reads the parent's descriptors nor closes its device. */
START_TEST(a_forked_child_leaves_the_device_alone)
{
	struct verbs_path *path = malloc(sizeof(*path));

	*path = v.path;
	ends[0].dev.users = 2;
	open_region();
	dom.nic = path;
	ck_assert_int_eq(fi_close(&region->fid), 0);
	ends[0].dev.removed = true;
	dom.forks++;
	ck_assert(!mr_nic_open(&dom));
	mr_nic_let_go(&dom);
	ck_assert_uint_eq(ends[0].dev.users, 2);
	dom.forks--;
	mr_nic_let_go(&dom);
	ck_assert_uint_eq(ends[0].dev.users, 1);
	close_all();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hw_verbs_rails_owner");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup_keyed, teardown);
	tcase_add_test(c, owner_registers_once);
	tcase_add_test(c, region_ends);
	tcase_add_test(c, no_such_region);
	tcase_add_loop_test(c, endpoints_share, 0, 2);
	tcase_add_test(c, refuses_once);
	tcase_add_test(c, own_device_is_taken_away);
	tcase_add_test(c, a_forked_child_leaves_the_device_alone);
	suite_add_tcase(s, c);
	return suite_run(s);
}
