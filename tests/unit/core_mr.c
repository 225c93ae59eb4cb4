/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves how memory regions behave: keys, bounds, rights, states. The domain is a bare one. */
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <stdlib.h>
#include <string.h>

#include "cntr/cntr.h"
#include "core/ep.h"
#include "core/mr.h"
#include "core/mr_table.h"
#include "suite.h"

#define BASIC (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

static struct fabric fabric;
static struct domain dom;
static struct fid_mr *mr, *other;
static char buf[4096];

static void setup(void)
{
	memset(&dom, 0, sizeof(dom));
	memset(&fabric, 0, sizeof(fabric));
	fabric.fid.api_version = FI_VERSION(2, 6);
	dom.fid.fid.fclass = FI_CLASS_DOMAIN;
	dom.fid.mr = (struct fi_ops_mr *)&mr_ops;
	dom.fabric = &fabric;
	dom.info = fi_allocinfo();
	dom.forks = forked_count();
	ck_assert_int_eq(shard_open_main(&dom), 0);
	list_init(&dom.workers);
	ck_assert_int_eq(mr_table_open(&dom), 0);
	mr = other = NULL;
}

static void teardown(void)
{
	ck_assert_int_eq(dom.ref, 0);
	mr_table_close(&dom);
	shard_close_all(&dom);
	fi_freeinfo(dom.info);
}

static void mode(int mr_mode)
{
	dom.info->domain_attr->mr_mode = mr_mode;
}

static int reg(const void *at, size_t len, uint64_t access, uint64_t key)
{
	return fi_mr_reg(&dom.fid, at, len, access, 0, key, 0, &mr, NULL);
}

static int check(uint64_t addr, size_t len, uint64_t access)
{
	struct mr *found = NULL;
	int ret = mr_check(&dom, fi_mr_key(mr), addr, len, access, &found);

	ck_assert(ret ? found == NULL : &found->fid == mr);
	return ret;
}

static void drop(struct fid_mr *region)
{
	ck_assert_int_eq(fi_close(&region->fid), 0);
}

START_TEST(object)
{
	ck_assert_int_eq(fi_mr_reg(&dom.fid, buf, 16, FI_REMOTE_WRITE, 0, 7, 0, &mr, buf), 0);
	ck_assert_uint_eq(fi_mr_key(mr), 7);
	ck_assert_ptr_eq(fi_mr_desc(mr), mr);
	ck_assert_uint_eq(mr->fid.fclass, FI_CLASS_MR);
	ck_assert_ptr_eq(mr->fid.context, buf);
	ck_assert_int_eq(dom.ref, 1);
	drop(mr);
}
END_TEST

START_TEST(bounds)
{
	mode(_i == 0 ? 0 : _i == 1 ? FI_MR_VIRT_ADDR : _i == 2 ? FI_MR_BASIC : FI_MR_SCALABLE);
	uint64_t base = _i == 1 || _i == 2 ? (uintptr_t)buf : 0;

	ck_assert_int_eq(reg(buf, 100, FI_REMOTE_WRITE, 1), 0);
	ck_assert_int_eq(check(base, 100, FI_REMOTE_WRITE), 0);
	ck_assert_int_eq(check(base + 99, 1, FI_REMOTE_WRITE), 0);
	ck_assert_int_eq(check(base + 100, 0, FI_REMOTE_WRITE), 0);
	ck_assert_int_eq(check(base, 101, FI_REMOTE_WRITE), -FI_EINVAL);
	ck_assert_int_eq(check(base + 99, 2, FI_REMOTE_WRITE), -FI_EINVAL);
	ck_assert_int_eq(check(base + 101, 0, FI_REMOTE_WRITE), -FI_EINVAL);
	ck_assert_int_eq(check(base - 1, 1, FI_REMOTE_WRITE), -FI_EINVAL);
	ck_assert_int_eq(check(base + 50, SIZE_MAX, FI_REMOTE_WRITE), -FI_EINVAL);
	ck_assert_int_eq(check(base + 50, SIZE_MAX - 49, FI_REMOTE_WRITE), -FI_EINVAL);
	ck_assert_int_eq(check(UINT64_MAX, 1, FI_REMOTE_WRITE), -FI_EINVAL);
	drop(mr);
}
END_TEST

START_TEST(rights)
{
	ck_assert_int_eq(reg(buf, 100, FI_REMOTE_READ, 1), 0);
	ck_assert_int_eq(check(0, 1, FI_REMOTE_READ), 0);
	ck_assert_int_eq(check(0, 1, FI_REMOTE_WRITE), -FI_EACCES);
	ck_assert_int_eq(check(0, 1, FI_REMOTE_READ | FI_REMOTE_WRITE), -FI_EACCES);
	drop(mr);
	ck_assert_int_eq(reg(buf, 100, FI_SEND | FI_RECV | FI_READ | FI_WRITE, 1), 0);
	ck_assert_uint_eq(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	ck_assert_int_eq(check(0, 1, FI_REMOTE_READ), -FI_ENOKEY);
	drop(mr);
}
END_TEST

START_TEST(whole_address_space)
{
	mode(_i ? FI_MR_VIRT_ADDR : 0);
	ck_assert_int_eq(reg(NULL, SIZE_MAX, FI_REMOTE_WRITE, 1), 0);
	ck_assert_int_eq(check((uintptr_t)buf, sizeof(buf), FI_REMOTE_WRITE), 0);
	ck_assert_int_eq(check(0, SIZE_MAX, FI_REMOTE_WRITE), 0);
	ck_assert_int_eq(check(1, SIZE_MAX, FI_REMOTE_WRITE), -FI_EINVAL);
	drop(mr);
	ck_assert_int_eq(reg(buf, SIZE_MAX, FI_REMOTE_WRITE, 1), -FI_EINVAL);
}
END_TEST

START_TEST(segments)
{
	struct iovec iov[17];

	for (int i = 0; i < 17; i++)
		iov[i] = (struct iovec){buf + 100 * i, 10};
	ck_assert_int_eq(fi_mr_regv(&dom.fid, iov, 16, FI_REMOTE_READ, 0, 1, 0, &mr, NULL), 0);
	memset(iov, 0, sizeof(iov)); /* the region has its own copy */
	ck_assert_int_eq(check(0, 160, FI_REMOTE_READ), 0);
	ck_assert_int_eq(check(0, 161, FI_REMOTE_READ), -FI_EINVAL);
	drop(mr);
	ck_assert_int_eq(fi_mr_regv(&dom.fid, iov, 17, 0, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_regv(&dom.fid, iov, 0, 0, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_regv(&dom.fid, NULL, 1, 0, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	iov[0].iov_len = SIZE_MAX;
	iov[1].iov_len = 1;
	ck_assert_int_eq(fi_mr_regv(&dom.fid, iov, 2, 0, 0, 1, 0, &mr, NULL), -FI_EINVAL);
}
END_TEST

START_TEST(refused)
{
	ck_assert_int_eq(fi_mr_reg(&dom.fid, buf, 1, 0, 5, 1, 0, &mr, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_reg(&dom.fid, buf, 1, 0, 0, 1, 1, &mr, NULL), -FI_EBADFLAGS);
	ck_assert_int_eq(fi_mr_reg(&dom.fid, buf, 1, 0, 0, 1, FI_MR_SINGLE_USE, &mr, NULL),
			 -FI_EOPNOTSUPP);
	ck_assert_int_eq(reg(buf, 1, FI_REMOTE_READ, FI_KEY_NOTAVAIL), -FI_EKEYREJECTED);
	ck_assert_ptr_null(mr);
	ck_assert_int_eq(fi_mr_reg(&dom.fid, buf, 1, FI_REMOTE_READ, 0, 1,
				   FI_RMA_EVENT | FI_RMA_PMEM, &mr, NULL),
			 0);
	ck_assert_int_eq(check(0, 1, 0), 0);
	drop(mr);
}
END_TEST

START_TEST(keys_of_the_application)
{
	struct fid_mr *all[1000];
	struct mr *found;

	for (uint64_t i = 0; i < 1000; i++) {
		ck_assert_int_eq(reg(buf, i, FI_REMOTE_READ, i << 40), 0);
		all[i] = mr;
	}
	other = mr;
	ck_assert_int_eq(reg(buf, 1, FI_REMOTE_READ, 7ULL << 40), -FI_ENOKEY);
	ck_assert_ptr_eq(mr, other);
	for (uint64_t i = 0; i < 1000; i++) {
		ck_assert_int_eq(mr_check(&dom, i << 40, 0, i, FI_REMOTE_READ, &found), 0);
		ck_assert_ptr_eq(&found->fid, all[i]);
	}
	ck_assert_int_eq(mr_check(&dom, 1, 0, 0, 0, &found), -FI_ENOKEY);
	for (int i = 0; i < 1000; i++)
		drop(all[i]);
	ck_assert_int_eq(mr_check(&dom, 0, 0, 0, 0, &found), -FI_ENOKEY);
	ck_assert_int_eq(reg(buf, 1, FI_REMOTE_READ, 7ULL << 40), 0); /* the key is free again */
	drop(mr);
}
END_TEST

/* A key of a closed region is neither reused nor accepted. */
START_TEST(keys_of_the_library)
{
	static uint64_t keys[20000];
	struct mr *found;

	mode(BASIC);
	for (int i = 0; i < 20000; i++) {
		ck_assert_int_eq(reg(buf, 1, FI_REMOTE_READ, 7), 0);
		keys[i] = fi_mr_key(mr);
		ck_assert_uint_ne(keys[i], FI_KEY_NOTAVAIL);
		ck_assert(i == 0 || keys[i] != keys[i - 1]);
		ck_assert_int_eq(check((uintptr_t)buf, 1, 0), 0);
		drop(mr);
		ck_assert_int_eq(mr_check(&dom, keys[i], (uintptr_t)buf, 1, 0, &found), -FI_ENOKEY);
	}
	for (int i = 1; i < 5000; i++)
		ck_assert_uint_ne(keys[0], keys[i]);
}
END_TEST

/* Which bits differ between keys of the same slot and rkey. */
static uint64_t random_bits(struct region *r)
{
	uint64_t first, key, differ = 0;

	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(mr_table_add(dom.mrs, r, true, &key), 0);
		ck_assert_uint_eq(mr_key_slot(key), r->slot);
		ck_assert_ptr_eq(mr_table_find(dom.mrs, key), r);
		mr_table_remove(dom.mrs, r);
		first = i ? first : key;
		differ |= first ^ key;
	}
	return differ;
}

/* Who knows some keys cannot compute another one: all bits beside slot and rkey are random. */
START_TEST(random_keys_of_the_library)
{
	struct region plain = {.mr.access = FI_REMOTE_READ},
		      in_nic = {
			      .mr = {.access = FI_REMOTE_READ, .handle = &dom, .rkey = 0xabcdef01}};
	uint64_t key;

	mode(BASIC);
	ck_assert_uint_eq(random_bits(&plain) | UINT64_C(0xfffff) << 32, UINT64_MAX >> 1);
	ck_assert_uint_eq(random_bits(&in_nic) & ~(UINT64_C(0x7fff) << 32), UINT64_C(0xffff) << 47);
	ck_assert_int_eq(mr_table_add(dom.mrs, &in_nic, true, &key), 0);
	ck_assert(mr_key_in_nic(key));
	ck_assert_uint_eq((uint32_t)key, in_nic.mr.rkey);
	mr_table_remove(dom.mrs, &in_nic);
}
END_TEST

/* Beyond the slots that a key with an rkey has bits for, peers use packets. */
START_TEST(slots_beyond_those_of_a_device)
{
	static struct region all[(1 << MR_NIC_SLOT_BITS) + 1];
	uint64_t key;

	mode(BASIC);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		all[i].mr.access = FI_REMOTE_READ;
		all[i].mr.handle = &dom;
		ck_assert_int_eq(mr_table_add(dom.mrs, &all[i], true, &key), 0);
		ck_assert_ptr_eq(mr_table_find(dom.mrs, key), &all[i]);
		ck_assert_int_eq(mr_key_in_nic(key), i < 1 << MR_NIC_SLOT_BITS);
	}
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		mr_table_remove(dom.mrs, &all[i]);
}
END_TEST

START_TEST(many_keys_of_the_library)
{
	static struct fid_mr *all[5000];
	struct mr *found;

	mode(BASIC);
	for (int i = 0; i < 5000; i++) {
		ck_assert_int_eq(reg(buf, 1, FI_REMOTE_READ, 0), 0);
		all[i] = mr;
	}
	for (int i = 0; i < 5000; i++) {
		ck_assert_int_eq(mr_check(&dom, fi_mr_key(all[i]), (uintptr_t)buf, 1, 0, &found),
				 0);
		ck_assert_ptr_eq(&found->fid, all[i]);
	}
	ck_assert_int_eq(mr_check(&dom, ~0ULL, 0, 0, 0, &found), -FI_ENOKEY);
	for (int i = 0; i < 5000; i++)
		drop(all[i]);
}
END_TEST

START_TEST(raw_keys)
{
	uint64_t base = 1, mapped = 0;
	uint8_t raw[16];
	size_t size = 4;

	mode(_i ? FI_MR_VIRT_ADDR : 0);
	ck_assert_int_eq(reg(buf, 100, FI_REMOTE_READ, 0x1122334455667788ULL), 0);
	ck_assert_int_eq(fi_mr_raw_attr(mr, &base, raw, &size, 0), -FI_ETOOSMALL);
	ck_assert_uint_eq(size, 8);
	ck_assert_uint_eq(base, 1);
	size = sizeof(raw);
	ck_assert_int_eq(fi_mr_raw_attr(mr, &base, raw, &size, 0), 0);
	ck_assert_uint_eq(size, 8);
	ck_assert_uint_eq(base, _i ? (uintptr_t)buf : 0);

	struct fi_mr_map_raw arg = {.raw_key = raw, .key_size = 8, .key = &mapped};

	ck_assert_int_eq(mr_domain_control(FI_MAP_RAW_MR, &arg), 0);
	ck_assert_uint_eq(mapped, fi_mr_key(mr));
	ck_assert_int_eq(mr_domain_control(FI_UNMAP_KEY, &mapped), 0);
	arg.key_size = 9;
	ck_assert_int_eq(mr_domain_control(FI_MAP_RAW_MR, &arg), -FI_EINVAL);
	ck_assert_int_eq(mr_domain_control(FI_BACKLOG, &arg), -FI_ENOSYS);
	drop(mr);
}
END_TEST

START_TEST(counters)
{
	struct cntr cntr = {.fid.fid.fclass = FI_CLASS_CNTR, .dom = &dom}, second = cntr;
	struct domain elsewhere;
	struct cntr foreign = {.fid.fid.fclass = FI_CLASS_CNTR, .dom = &elsewhere};

	ck_assert_int_eq(reg(buf, 100, FI_REMOTE_WRITE, 1), 0);
	ck_assert_int_eq(fi_mr_bind(mr, &cntr.fid.fid, 0), -FI_EBADFLAGS);
	ck_assert_int_eq(fi_mr_bind(mr, &cntr.fid.fid, FI_SEND), -FI_EBADFLAGS);
	ck_assert_int_eq(fi_mr_bind(mr, &foreign.fid.fid, FI_REMOTE_WRITE), -FI_EDOMAIN);
	ck_assert_int_eq(fi_mr_bind(mr, &dom.fid.fid, FI_REMOTE_WRITE), -FI_EINVAL);
	ck_assert_int_eq(fi_mr_bind(mr, &cntr.fid.fid, FI_REMOTE_WRITE), 0);
	ck_assert_int_eq(fi_mr_bind(mr, &cntr.fid.fid, FI_REMOTE_WRITE), 0);
	ck_assert_int_eq(fi_mr_bind(mr, &second.fid.fid, FI_REMOTE_WRITE), -FI_EBUSY);
	ck_assert_int_eq(cntr.ref, 1);
	drop(mr);
	ck_assert_int_eq(cntr.ref, 0);
}
END_TEST

START_TEST(endpoint_mode)
{
	struct ep ep = {.fid.fid.fclass = FI_CLASS_EP, .dom = &dom};

	mode(FI_MR_ENDPOINT);
	ck_assert_int_eq(reg(buf, 100, FI_REMOTE_READ, 1), 0);
	ck_assert_int_eq(check(0, 1, 0), -FI_ENOKEY);
	ck_assert_int_eq(fi_mr_enable(mr), -FI_EOPBADSTATE);
	ck_assert_int_eq(fi_mr_bind(mr, &ep.fid.fid, FI_SEND), -FI_EBADFLAGS);
	ck_assert_int_eq(fi_mr_bind(mr, &ep.fid.fid, 0), 0);
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	ck_assert_int_eq(check(0, 1, 0), 0);
	ck_assert_int_eq(fi_mr_bind(mr, &ep.fid.fid, 0), -FI_EOPBADSTATE);
	drop(mr);
}
END_TEST

START_TEST(event_mode)
{
	mode(FI_MR_RMA_EVENT);
	ck_assert_int_eq(reg(buf, 100, FI_REMOTE_READ, 1), 0);
	ck_assert_int_eq(check(0, 1, 0), 0);
	drop(mr);
	ck_assert_int_eq(
		fi_mr_reg(&dom.fid, buf, 100, FI_REMOTE_READ, 0, 1, FI_RMA_EVENT, &mr, NULL), 0);
	ck_assert_int_eq(check(0, 1, 0), -FI_ENOKEY);
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	ck_assert_int_eq(check(0, 1, 0), 0);
	drop(mr);
}
END_TEST

START_TEST(refresh)
{
	struct iovec in = {buf + 10, 20}, out = {buf + 90, 20};

	ck_assert_int_eq(reg(buf, 100, FI_REMOTE_READ, 1), 0);
	ck_assert_int_eq(fi_mr_refresh(mr, NULL, 0, 0), 0);
	ck_assert_int_eq(fi_mr_refresh(mr, &in, 1, 0), 0);
	ck_assert_int_eq(fi_mr_refresh(mr, &out, 1, 0), -FI_EINVAL);
	drop(mr);
}
END_TEST

/* Members that an old caller's struct lacks are not read. */
START_TEST(attr_by_version)
{
	struct iovec iov = {buf, 100};
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .auth_key_size = 99, .base_mr = (void *)buf};

	fabric.fid.api_version = FI_VERSION(1, 4);
	ck_assert_int_eq(fi_mr_regattr(&dom.fid, &attr, 0, &mr), 0);
	drop(mr);
	fabric.fid.api_version = FI_VERSION(1, 5);
	ck_assert_int_eq(fi_mr_regattr(&dom.fid, &attr, 0, &mr), -FI_EINVAL);
	attr.auth_key_size = 0;
	fabric.fid.api_version = FI_VERSION(1, 22);
	ck_assert_int_eq(fi_mr_regattr(&dom.fid, &attr, 0, &mr), 0);
	drop(mr);
}
END_TEST

START_TEST(part_of_a_region)
{
	struct iovec iov = {buf + 10, 20};
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = FI_REMOTE_READ, .requested_key = 2};

	ck_assert_int_eq(reg(buf, 100, FI_REMOTE_WRITE, 1), 0);
	attr.base_mr = mr;
	ck_assert_int_eq(fi_mr_regattr(&dom.fid, &attr, 0, &other), 0);
	ck_assert_int_eq(fi_close(&mr->fid), -FI_EBUSY);
	drop(other);
	iov.iov_len = 100;
	ck_assert_int_eq(fi_mr_regattr(&dom.fid, &attr, 0, &other), -FI_EINVAL);
	drop(mr);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_mr");
	TCase *tc = tcase_create("regions");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, object);
	tcase_add_loop_test(tc, bounds, 0, 4);
	tcase_add_test(tc, rights);
	tcase_add_loop_test(tc, whole_address_space, 0, 2);
	tcase_add_test(tc, segments);
	tcase_add_test(tc, refused);
	tcase_add_test(tc, keys_of_the_application);
	tcase_add_test(tc, keys_of_the_library);
	tcase_add_test(tc, random_keys_of_the_library);
	tcase_add_test(tc, slots_beyond_those_of_a_device);
	tcase_add_test(tc, many_keys_of_the_library);
	tcase_add_loop_test(tc, raw_keys, 0, 2);
	tcase_add_test(tc, counters);
	tcase_add_test(tc, endpoint_mode);
	tcase_add_test(tc, event_mode);
	tcase_add_test(tc, refresh);
	tcase_add_test(tc, attr_by_version);
	tcase_add_test(tc, part_of_a_region);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
