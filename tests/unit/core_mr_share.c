/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that peers find regions in the shared table, and that a corrupt table does no harm. */
#include <errno.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cntr/cntr.h"
#include "core/mr_share.h"
#include "core/mr_view.h"
#include "suite.h"

#define BOTH (FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct fabric fabric;
static struct domain dom;
static struct mr_view view;
static struct fid_mr *mr;
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
	ck_assert_int_ge(mr_share_fd(&dom), 0);
	ck_assert_int_eq(mr_view_attach(&view, mr_share_fd(&dom)), 0);
}

static void teardown(void)
{
	mr_view_detach(&view);
	mr_table_close(&dom);
	shard_close_all(&dom);
	ck_assert_int_eq(mr_share_fd(&dom), -1);
	fi_freeinfo(dom.info);
}

static void mode(int mr_mode)
{
	dom.info->domain_attr->mr_mode = mr_mode;
}

static void reg(const void *at, size_t len, uint64_t access, uint64_t key)
{
	ck_assert_int_eq(fi_mr_reg(&dom.fid, at, len, access, 0, key, 0, &mr, NULL), 0);
}

static void drop(struct fid_mr *region)
{
	ck_assert_int_eq(fi_close(&region->fid), 0);
}

static int find(uint64_t key, uint64_t addr, size_t len, uint64_t access, struct mr_place *place)
{
	struct fi_rma_iov range = {.addr = addr, .len = len, .key = key};

	return mr_view_find(&view, &range, access, place);
}

/* Checks that the range of `mr` is found at address `at`. */
static void found(uint64_t addr, size_t len, const void *at)
{
	struct mr_place place;

	ck_assert_int_eq(find(fi_mr_key(mr), addr, len, FI_REMOTE_WRITE, &place), 0);
	ck_assert_uint_eq(place.at, (uintptr_t)at);
}

static int lookup(uint64_t addr, size_t len, uint64_t access)
{
	struct mr_place place;

	return find(fi_mr_key(mr), addr, len, access, &place);
}

static int lookup_key(uint64_t key)
{
	struct mr_place place;

	return find(key, 0, 0, 0, &place);
}

START_TEST(bounds)
{
	mode(_i == 0 ? 0 : _i == 1 ? FI_MR_VIRT_ADDR : FI_MR_BASIC);
	uint64_t base = _i ? (uintptr_t)buf : 0;

	reg(buf, 100, FI_REMOTE_WRITE, 1);
	found(base, 100, buf);
	found(base + 99, 1, buf + 99);
	found(base + 100, 0, buf + 100);
	ck_assert_int_eq(lookup(base, 101, FI_REMOTE_WRITE), -FI_EINVAL);
	ck_assert_int_eq(lookup(base + 99, 2, FI_REMOTE_WRITE), -FI_EINVAL);
	ck_assert_int_eq(lookup(base + 101, 0, FI_REMOTE_WRITE), -FI_EINVAL);
	ck_assert_int_eq(lookup(base - 1, 1, FI_REMOTE_WRITE), -FI_EINVAL);
	ck_assert_int_eq(lookup(base + 50, SIZE_MAX, FI_REMOTE_WRITE), -FI_EINVAL);
	ck_assert_int_eq(lookup(base + 50, SIZE_MAX - 49, FI_REMOTE_WRITE), -FI_EINVAL);
	ck_assert_int_eq(lookup(UINT64_MAX, 1, FI_REMOTE_WRITE), -FI_EINVAL);
	ck_assert_int_eq(lookup(UINT64_MAX, 2, FI_REMOTE_WRITE), -FI_EINVAL);
	drop(mr);
}
END_TEST

START_TEST(rights)
{
	reg(buf, 100, FI_REMOTE_READ, 1);
	ck_assert_int_eq(lookup(0, 1, FI_REMOTE_READ), 0);
	ck_assert_int_eq(lookup(0, 1, FI_REMOTE_WRITE), -FI_EACCES);
	ck_assert_int_eq(lookup(0, 1, BOTH), -FI_EACCES);
	drop(mr);
	reg(buf, 100, FI_READ | FI_WRITE | FI_SEND | FI_RECV, 1); /* has no key: peers find none */
	ck_assert_int_eq(lookup(0, 1, FI_REMOTE_READ), -FI_ENOKEY);
	ck_assert_int_eq(lookup(0, 1, FI_REMOTE_WRITE), -FI_ENOKEY);
	drop(mr);
}
END_TEST

/* A region is found from registration to close, and under no other key. */
START_TEST(comes_and_goes)
{
	uint64_t key, old[8];

	mode(_i ? FI_MR_PROV_KEY : 0);
	for (int i = 0; i < 8; i++) {
		reg(buf, 100, BOTH, 0x123456789aULL << i);
		key = old[i] = fi_mr_key(mr);
		ck_assert_int_eq(lookup_key(key), 0);
		for (int bit = 0; bit < 64; bit++)
			ck_assert_int_eq(lookup_key(key ^ UINT64_C(1) << bit), -FI_ENOKEY);
		drop(mr);
		for (int k = 0; k <= i; k++)
			ck_assert_int_eq(lookup_key(old[k]), -FI_ENOKEY);
	}
}
END_TEST

/* A slot is used again under another key, and the old key is refused. */
START_TEST(stale_generation)
{
	struct mr_place place;
	uint64_t first;
	int tries = 0;

	mode(FI_MR_BASIC);
	reg(buf, 100, BOTH, 0);
	first = fi_mr_key(mr);
	do {
		drop(mr);
		reg(buf + 1, 100, BOTH, 0);
	} while (mr_key_slot(fi_mr_key(mr)) != mr_key_slot(first) && ++tries < 1000);
	ck_assert_uint_eq(mr_key_slot(fi_mr_key(mr)), mr_key_slot(first));
	ck_assert_int_eq(find(first, (uintptr_t)buf + 1, 1, 0, &place), -FI_ENOKEY);
	found((uintptr_t)buf + 1, 1, buf + 1);
	drop(mr);
}
END_TEST

START_TEST(only_ready_ones)
{
	struct iovec iov[2] = {{buf, 10}, {buf + 100, 10}};

	mode(FI_MR_RMA_EVENT);
	ck_assert_int_eq(
		fi_mr_reg(&dom.fid, buf, 100, FI_REMOTE_WRITE, 0, 1, FI_RMA_EVENT, &mr, NULL), 0);
	ck_assert_int_eq(lookup_key(1), -FI_ENOKEY);
	ck_assert_int_eq(fi_mr_enable(mr), 0);
	found(0, 100, buf);
	drop(mr);
	ck_assert_int_eq(lookup_key(1), -FI_ENOKEY);
	ck_assert_int_eq(fi_mr_regv(&dom.fid, iov, 2, BOTH, 0, 1, 0, &mr, NULL), 0);
	ck_assert_int_eq(lookup_key(1), -FI_ENOKEY);
	drop(mr);
	ck_assert_int_eq(fi_mr_regv(&dom.fid, iov + 1, 1, BOTH, 0, 1, 0, &mr, NULL), 0);
	found(0, 10, buf + 100);
	drop(mr);
}
END_TEST

static bool tells(uint64_t access)
{
	struct mr_place place;

	ck_assert_int_eq(find(fi_mr_key(mr), 0, 1, access, &place), 0);
	return place.counted;
}

START_TEST(counters)
{
	struct cntr cntr = {.fid.fid.fclass = FI_CLASS_CNTR, .dom = &dom};

	reg(buf, 100, BOTH, 1);
	ck_assert(!tells(FI_REMOTE_WRITE) && !tells(FI_REMOTE_READ));
	ck_assert_int_eq(fi_mr_bind(mr, &cntr.fid.fid, FI_REMOTE_WRITE), 0);
	ck_assert(tells(FI_REMOTE_WRITE) && !tells(FI_REMOTE_READ));
	ck_assert_int_eq(fi_mr_bind(mr, &cntr.fid.fid, FI_REMOTE_READ), 0);
	ck_assert(tells(FI_REMOTE_WRITE) && tells(FI_REMOTE_READ));
	drop(mr);
	reg(buf, 100, BOTH, 1);
	ck_assert(!tells(FI_REMOTE_WRITE) && !tells(FI_REMOTE_READ));
	mr_share_notify_all(&dom);
	ck_assert(tells(FI_REMOTE_WRITE) && tells(FI_REMOTE_READ));
	drop(mr);
}
END_TEST

/* Returns the next key after `from` in this bucket. */
static uint64_t colliding(uint64_t from, uint32_t bucket)
{
	while (share_bucket(++from) != bucket)
		;
	return from;
}

/*
 * Of a bucket the newest SHARE_WALK regions are found, the older ones once newer ones are closed.
 */
START_TEST(collisions)
{
	enum { COUNT = 3 * SHARE_WALK };
	static struct fid_mr *all[COUNT];
	static uint64_t keys[COUNT];

	for (int i = 0; i < COUNT; i++) {
		keys[i] = colliding(i ? keys[i - 1] : 0, 77);
		reg(buf + i, 100, BOTH, keys[i]);
		all[i] = mr;
	}
	for (int i = COUNT - 1; i >= 0; i--) {
		struct mr_place place;

		for (int k = 0; k <= i; k += 7)
			ck_assert_int_eq(lookup_key(keys[k]),
					 k + (int)SHARE_WALK > i ? 0 : -FI_ENOKEY);
		ck_assert_int_eq(find(keys[i], 3, 1, FI_REMOTE_READ, &place), 0);
		ck_assert_uint_eq(place.at, (uintptr_t)buf + (unsigned int)i + 3);
		drop(all[i]);
		ck_assert_int_eq(lookup_key(keys[i]), -FI_ENOKEY);
	}
}
END_TEST

/* Regions are removed from the middle and the ends of a chain. */
START_TEST(chain_order)
{
	uint64_t keys[5];
	struct fid_mr *all[5];
	int order[5] = {2, 4, 0, 1, 3};

	for (int i = 0; i < 5; i++) {
		keys[i] = colliding(i ? keys[i - 1] : 0, 5);
		reg(buf, 100, BOTH, keys[i]);
		all[i] = mr;
	}
	for (int i = 0; i < 5; i++) {
		drop(all[order[i]]);
		for (int k = 0; k < 5; k++)
			ck_assert_int_eq(lookup_key(keys[order[k]]), k <= i ? -FI_ENOKEY : 0);
	}
}
END_TEST

START_TEST(more_than_buckets)
{
	enum { COUNT = SHARE_BUCKETS + SHARE_BUCKETS / 2 };
	static struct fid_mr *all[COUNT];

	for (uint64_t i = 0; i < COUNT; i++) {
		reg(buf, i, BOTH, i * 4096);
		all[i] = mr;
	}
	for (uint64_t i = 0; i < COUNT; i++) {
		struct mr_place place;

		ck_assert_int_eq(find(i * 4096, 0, i, FI_REMOTE_READ, &place), 0);
		ck_assert_int_eq(find(i * 4096, 0, i + 1, FI_REMOTE_READ, &place), -FI_EINVAL);
		ck_assert_int_eq(lookup_key(i * 4096 + 1), -FI_ENOKEY);
	}
	for (int i = 0; i < COUNT; i++)
		drop(all[i]);
}
END_TEST

/* Regions beyond the table's size work, but are not in the table. */
START_TEST(capacity)
{
	enum { COUNT = SHARE_SLOTS + 100 };
	static struct fid_mr *all[COUNT];
	struct mr *region;

	mode(_i ? FI_MR_PROV_KEY : 0);
	for (uint64_t i = 0; i < COUNT; i++) {
		reg(NULL, SIZE_MAX, BOTH, i);
		all[i] = mr;
	}
	for (uint64_t i = SHARE_SLOTS - 100; i < COUNT; i++) {
		ck_assert_int_eq(lookup_key(fi_mr_key(all[i])), i < SHARE_SLOTS ? 0 : -FI_ENOKEY);
		ck_assert_int_eq(mr_check(&dom, fi_mr_key(all[i]), 0, 1, BOTH, &region), 0);
		ck_assert_ptr_eq(&region->fid, all[i]);
	}
	for (int i = 0; i < COUNT; i++)
		drop(all[i]);
	reg(buf, 100, FI_REMOTE_WRITE, 1);
	drop(mr);
}
END_TEST

static bool stop;

/* Changes one entry between two states all the time; a reader never sees a mix of both. */
static void *change(void *arg)
{
	struct region r = {.mr = {.fid.key = 5, .access = BOTH, .enabled = true, .iov_count = 1}};

	r.mr.iov = &r.one;
	r.mr.length = 100;
	r.slot = *(uint32_t *)arg;
	for (uint64_t i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		r.mr.offset = (1 + i % 2) << 32;
		r.one.iov_base = (void *)(r.mr.offset * 16);
		mr_share_update(&dom, &r);
	}
	return NULL;
}

START_TEST(read_while_written)
{
	uint32_t slot = 0;
	unsigned int hits = 0;
	pthread_t writer;

	reg(buf, 100, BOTH, 5);
	slot = region_of((struct mr *)mr)->slot;
	ck_assert_int_eq(pthread_create(&writer, NULL, change, &slot), 0);
	for (uint64_t i = 0; hits < 100000; i++) {
		uint64_t addr = (1 + i % 2) << 32;
		struct mr_place place;

		if (find(5, addr, 1, FI_REMOTE_READ, &place))
			continue;
		hits++;
		ck_assert_uint_eq(place.at, addr * 16);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	ck_assert_int_eq(pthread_join(writer, NULL), 0);
	drop(mr);
}
END_TEST

/* A forked child's changes are not seen in the parent's table, and the child shares no table. */
START_TEST(forked_child)
{
	int status;
	pid_t pid;

	reg(buf, 100, FI_REMOTE_WRITE, 1);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		mr_share_notify_all(&dom);
		_exit(mr_share_fd(&dom) >= 0 || fi_close(&mr->fid) ||
		      fi_mr_reg(&dom.fid, buf, 1, 0, 0, 2, 0, &mr, NULL));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	found(0, 100, buf);
	ck_assert(!tells(FI_REMOTE_WRITE));
	ck_assert_int_eq(lookup_key(2), -FI_ENOKEY);
	drop(mr);
}
END_TEST

START_TEST(peers_only_read)
{
	int fd = mr_share_fd(&dom);
	void *page = (void *)(uintptr_t)view.page;
	char byte = 1;

	ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(mprotect(page, 4096, PROT_READ | PROT_WRITE), -1);
	ck_assert_int_eq(pwrite(fd, &byte, 1, 0), -1);
	ck_assert_int_eq(ftruncate(fd, 4096), -1);
	ck_assert_int_eq(ftruncate(fd, sizeof(struct share_page) + 4096), -1);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
}
END_TEST

/* Returns a file like a table; the test may corrupt it through *page. */
static int spoilt(size_t len, int seals, struct share_page **page)
{
	int fd = memfd_create("regions-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)len), 0);
	*page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(*page, MAP_FAILED);
	(*page)->magic = SHARE_MAGIC;
	(*page)->slots = SHARE_SLOTS;
	(*page)->buckets = SHARE_BUCKETS;
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void not_attached(int fd)
{
	struct mr_view other;
	struct mr_place place;
	struct fi_rma_iov range = {0};

	ck_assert_int_eq(mr_view_attach(&other, fd), -FI_EINVAL);
	ck_assert_int_eq(mr_view_find(&other, &range, 0, &place), -FI_ENOKEY);
	mr_view_detach(&other);
	close(fd);
}

START_TEST(attach_refuses)
{
	const size_t len = sizeof(struct share_page);
	struct share_page *page;
	struct mr_view other;
	int fd = spoilt(len, SHARE_SEALS, &page), pair[2];

	ck_assert_int_eq(mr_view_attach(&other, fd), 0);
	mr_view_detach(&other);
	page->magic++;
	not_attached(fd);
	fd = spoilt(len, SHARE_SEALS, &page);
	page->slots *= 2;
	not_attached(fd);
	fd = spoilt(len, SHARE_SEALS, &page);
	page->buckets = 0;
	not_attached(fd);
	for (int seal = 1; seal <= F_SEAL_FUTURE_WRITE; seal *= 2)
		if (SHARE_SEALS & seal)
			not_attached(spoilt(len, SHARE_SEALS & ~seal, &page));
	not_attached(spoilt(len - 4096, SHARE_SEALS, &page));
	not_attached(spoilt(len + 4096, SHARE_SEALS, &page));
	not_attached(spoilt(4096, SHARE_SEALS, &page));
	not_attached(open("/dev/zero", O_RDWR | O_CLOEXEC));
	ck_assert_int_eq(pipe(pair), 0);
	not_attached(pair[0]);
	not_attached(pair[1]);
	not_attached(-1);
}
END_TEST

/* Invalid slots, endless chains, and entries that stay unfinished. */
START_TEST(nonsense)
{
	struct share_page *page;
	int fd = spoilt(sizeof(*page), SHARE_SEALS, &page);
	uint32_t bad[] = {SHARE_SLOTS + 1, UINT32_MAX, 0x80000000u};

	mr_view_detach(&view);
	ck_assert_int_eq(mr_view_attach(&view, fd), 0);
	page->used = UINT32_MAX;
	ck_assert_int_eq(lookup_key(UINT64_MAX),
			 -FI_ENOKEY); /* the key names a slot beyond the table */
	page->hashed = UINT32_MAX;
	for (size_t i = 0; i < 3; i++) {
		memset(page->bucket, 0, sizeof(page->bucket));
		page->bucket[share_bucket(9)] = bad[i];
		ck_assert_int_eq(lookup_key(9), -FI_ENOKEY);
		page->bucket[share_bucket(9)] = 3;
		page->entry[2].next = bad[i];
		ck_assert_int_eq(lookup_key(9), -FI_ENOKEY);
	}
	page->entry[2].next = 4; /* an endless chain */
	page->entry[3].next = 3;
	ck_assert_int_eq(lookup_key(9), -FI_ENOKEY);
	page->entry[3].region = (struct share_region){
		.key = 9, .length = 100, .base = UINT64_MAX - 10, .flags = SHARE_THERE};
	ck_assert_int_eq(lookup_key(9), 0);
	page->entry[3].seq = 1; /* the owner died while writing the entry */
	ck_assert_int_eq(lookup_key(9), -FI_ENOKEY);
	page->entry[3].seq = 2;
	ck_assert_int_eq(lookup_key(9), 0);
	page->used = 3;
	ck_assert_int_eq(lookup_key(9), -FI_ENOKEY);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_mr_share");
	TCase *tcase = tcase_create("table");

	tcase_set_timeout(tcase, 20);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, bounds, 0, 3);
	tcase_add_test(tcase, rights);
	tcase_add_loop_test(tcase, comes_and_goes, 0, 2);
	tcase_add_test(tcase, stale_generation);
	tcase_add_test(tcase, only_ready_ones);
	tcase_add_test(tcase, counters);
	tcase_add_test(tcase, collisions);
	tcase_add_test(tcase, chain_order);
	tcase_add_test(tcase, more_than_buckets);
	tcase_add_loop_test(tcase, capacity, 0, 2);
	tcase_add_test(tcase, read_while_written);
	tcase_add_test(tcase, forked_child);
	tcase_add_test(tcase, peers_only_read);
	tcase_add_test(tcase, attach_refuses);
	tcase_add_test(tcase, nonsense);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
