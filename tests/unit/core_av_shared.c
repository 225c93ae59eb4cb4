/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that processes share address vectors with a name: each domain opens the table as a process
 * of its own would.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/forked.h"
#include "core/av.h"
#include "core/av_set.h"
#include "core/av_shared.h"
#include "fake_calls.h"
#include "suite.h"

#define NONE    FI_ADDR_NOTAVAIL
#define PLACES  3
#define CHANGED 1000 /* rows of a table */

static struct fabric fabric;
static struct fi_domain_attr domain_attr = {.name = "unit"};
static struct fi_info info = {.domain_attr = &domain_attr};
static struct domain doms[PLACES];
static char name[64];

static void setup(void)
{
	setenv("FI_WEFT_ACCESS_TIMEOUT", "50", 1);
	for (int i = 0; i < PLACES; i++) {
		doms[i] = (struct domain){.calls = &fake_calls, .fabric = &fabric, .info = &info};
		doms[i].forks = forked_count();
		ck_assert_int_eq(shard_open_main(&doms[i]), 0);
		list_init(&doms[i].sets);
	}
	info.addr_format = FI_SOCKADDR_IN;
	snprintf(name, sizeof(name), "unit.%d\n", (int)getpid());
}

static int try_open(int place, enum fi_av_type type, uint64_t flags, struct fid_av **av)
{
	struct fi_av_attr attr = {.type = type, .flags = flags, .name = name};

	return av_open(&doms[place].fid, &attr, av, NULL);
}

static struct fid_av *open_at(int place, enum fi_av_type type, uint64_t flags)
{
	struct fid_av *av;

	ck_assert_int_eq(try_open(place, type, flags, &av), 0);
	return av;
}

static struct sockaddr_in in_of(unsigned int number)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)(1 + number % 60000)),
				    .sin_addr.s_addr = htonl(0x0a000001 + number / 60000)};
}

static fi_addr_t insert(struct fid_av *av, unsigned int number)
{
	struct sockaddr_in in = in_of(number);
	fi_addr_t fi_addr = 77;

	ck_assert_int_eq(fi_av_insert(av, &in, 1, &fi_addr, 0, NULL), 1);
	return fi_addr;
}

static fi_addr_t find(struct fid_av *av, unsigned int number)
{
	struct sockaddr_in in = in_of(number);
	struct addr a;

	ck_assert_int_eq(addr_from_user(&a, FI_SOCKADDR_IN, &in, 0), 0);
	return av_find(av_of(av), &a, 0);
}

static void holds(struct fid_av *av, fi_addr_t fi_addr, unsigned int number)
{
	struct sockaddr_in in = in_of(number);
	struct addr a;

	ck_assert_int_eq(addr_from_user(&a, FI_SOCKADDR_IN, &in, 0), 0);
	ck_assert_ptr_nonnull(av_addr(av_of(av), fi_addr));
	ck_assert(addr_equal(av_addr(av_of(av), fi_addr), &a));
}

static void drop(struct fid_av *av, fi_addr_t fi_addr)
{
	ck_assert_int_eq(fi_av_remove(av, &fi_addr, 1, 0), 0);
}

static void close_av(struct fid_av *av)
{
	ck_assert_int_eq(fi_close(&av->fid), 0);
}

START_TEST(writers_alternate)
{
	struct fid_av *one = open_at(0, FI_AV_TABLE, 0), *two = open_at(1, FI_AV_TABLE, 0);
	struct fid_av *reader = open_at(2, FI_AV_TABLE, FI_READ);

	for (unsigned int i = 0; i < 3000; i++) {
		ck_assert_uint_eq(insert(i % 3 ? one : two, i), i);
		ck_assert_uint_eq(find(reader, i), i);
	}
	for (unsigned int i = 0; i < 3000; i++) {
		holds(one, i, i);
		holds(two, i, i);
		ck_assert_uint_eq(find(one, i), i);
		ck_assert_uint_eq(find(two, i), i);
	}
	ck_assert_ptr_null(av_addr(av_of(reader), 3000));
	close_av(one); /* the creator closes; the other keeps the name */
	ck_assert_uint_eq(insert(two, 3000), 3000);
	one = open_at(0, FI_AV_TABLE, 0);
	ck_assert_uint_eq(insert(one, 3001), 3001);
	holds(reader, 3001, 3001);
	close_av(two);
	close_av(one);
	holds(reader, 3001, 3001); /* the only user now */
	ck_assert_int_eq(try_open(1, FI_AV_TABLE, FI_READ, &one), -FI_EINVAL);
	one = open_at(1, FI_AV_TABLE, 0);
	ck_assert_uint_eq(insert(one, 5), 0);
	two = open_at(2, FI_AV_TABLE, FI_READ); /* beside the domain's first reader */
	holds(two, 0, 5);
	holds(reader, 0, 0);
	close_av(one);
	close_av(two);
	close_av(reader);
}
END_TEST

START_TEST(insertions_of_all_are_counted)
{
	enum fi_av_type type = _i ? FI_AV_TABLE : FI_AV_MAP;
	struct fid_av *one = open_at(0, type, 0), *two = open_at(1, type, 0);
	struct fid_av *reader = open_at(2, type, FI_READ);
	fi_addr_t a = insert(one, 1);

	ck_assert_uint_eq(insert(two, 1), a);
	drop(one, a);
	ck_assert_uint_eq(find(reader, 1), a);
	drop(two, a);
	ck_assert_uint_eq(find(reader, 1), NONE);
	ck_assert_uint_eq(find(one, 1), NONE);
	ck_assert_int_eq(fi_av_remove(one, &a, 1, 0), -FI_EINVAL);
	close_av(one);
	close_av(two);
	close_av(reader);
}
END_TEST

START_TEST(removed_indexes_stay_empty)
{
	struct fid_av *av = open_at(0, FI_AV_TABLE, 0), *reader = open_at(1, FI_AV_TABLE, FI_READ);

	insert(av, 7);
	insert(av, 8);
	ck_assert_uint_eq(find(reader, 7), 0);
	drop(av, 0);
	ck_assert_ptr_null(av_addr(av_of(reader), 0));
	ck_assert_uint_eq(find(reader, 7), NONE);
	ck_assert_uint_eq(insert(av, 7), 2);
	ck_assert_uint_eq(find(reader, 7), 2);
	ck_assert_uint_eq(find(reader, 8), 1);
	ck_assert_uint_eq(insert(av, 9), 3);
	drop(av, 2);
	ck_assert_uint_eq(find(reader, 7), NONE);
	ck_assert_uint_eq(find(reader, 9), 3);
	close_av(reader);
	close_av(av);
}
END_TEST

static struct sockaddr_in6 in6_of(unsigned int number)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)number)};

	in6.sin6_addr = in6addr_loopback;
	return in6;
}

START_TEST(every_kind_of_address_crosses)
{
	char longest[ADDR_STR_MAX], buf[ADDR_STR_MAX];
	const char *strings[] = {"fi_shm://1", longest};
	struct sockaddr_in6 in6 = in6_of(9), found;
	size_t len = sizeof(found);
	struct fid_av *av, *reader;
	struct addr a;

	info.addr_format = FI_SOCKADDR_IN6;
	av = open_at(0, FI_AV_TABLE, 0);
	reader = open_at(1, FI_AV_TABLE, FI_READ);
	ck_assert_int_eq(fi_av_insert(av, &in6, 1, NULL, 0, NULL), 1);
	ck_assert_int_eq(fi_av_lookup(reader, 0, &found, &len), 0);
	ck_assert_mem_eq(&found, &in6, sizeof(in6));
	close_av(reader);
	close_av(av);

	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	info.addr_format = FI_ADDR_STR;
	av = open_at(0, FI_AV_MAP, 0);
	reader = open_at(1, FI_AV_MAP, FI_READ);
	ck_assert_int_eq(fi_av_insert(av, strings, 2, NULL, 0, NULL), 2);
	for (fi_addr_t i = 0; i < 2; i++) {
		len = sizeof(buf);
		ck_assert_int_eq(fi_av_lookup(reader, i, buf, &len), 0);
		ck_assert_str_eq(buf, strings[i]);
		a = (struct addr){.kind = ADDR_STR, .str = buf};
		ck_assert_uint_eq(av_find(av_of(reader), &a, 0), i);
	}
	close_av(reader);
	close_av(av);
}
END_TEST

START_TEST(what_differs_is_refused)
{
	struct fid_av *av = open_at(0, FI_AV_MAP, 0), *other = NULL;
	struct fi_av_attr attr = {.type = FI_AV_UNSPEC, .flags = FI_READ, .name = name};
	char longer[AV_SHARED_KEY_MAX + 1];

	ck_assert_int_eq(try_open(1, FI_AV_TABLE, FI_READ, &other), -FI_EINVAL);
	ck_assert_int_eq(try_open(1, FI_AV_TABLE, 0, &other), -FI_EINVAL);
	info.addr_format = FI_ADDR_STR;
	ck_assert_int_eq(try_open(1, FI_AV_MAP, FI_READ, &other), -FI_EINVAL);
	info.addr_format = FI_SOCKADDR_IN;
	domain_attr.name = "elsewhere";
	ck_assert_int_eq(try_open(1, FI_AV_MAP, FI_READ, &other), -FI_EINVAL);
	domain_attr.name = "unit";
	ck_assert_ptr_null(other);
	ck_assert_int_eq(av_open(&doms[1].fid, &attr, &other, NULL), 0);
	ck_assert_int_eq(attr.type, FI_AV_MAP);
	close_av(other);
	close_av(av);
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	attr = (struct fi_av_attr){.name = longer};
	ck_assert_int_eq(av_open(&doms[0].fid, &attr, &av, NULL), -FI_EINVAL);
}
END_TEST

START_TEST(map_addr_is_the_table_of_addresses)
{
	struct fi_av_attr attr = {.type = FI_AV_MAP, .name = name};
	struct fid_av *av, *reader;
	const fi_addr_t *table;

	ck_assert_int_eq(av_open(&doms[0].fid, &attr, &av, NULL), 0);
	insert(av, 1);
	insert(av, 2);
	attr.flags = FI_READ;
	attr.map_addr = NULL;
	ck_assert_int_eq(av_open(&doms[1].fid, &attr, &reader, NULL), 0);
	table = attr.map_addr;
	insert(av, 3);
	for (unsigned int i = 0; i < 3; i++)
		holds(reader, table[i], i + 1);
	close_av(reader);
	attr.map_addr = &attr; /* any value of the caller's */
	ck_assert_int_eq(av_open(&doms[1].fid, &attr, &reader, NULL), 0);
	ck_assert_ptr_eq(attr.map_addr, &attr);
	ck_assert_uint_eq(find(reader, 3), 2);
	close_av(reader);
	close_av(av);
}
END_TEST

START_TEST(sets_and_user_ids_work)
{
	struct fi_av_set_attr all = {.flags = FI_UNIVERSE};
	struct fid_av *av = open_at(0, FI_AV_TABLE, 0), *reader = open_at(1, FI_AV_TABLE, FI_READ);
	struct fid_av_set *set;

	for (unsigned int i = 0; i < 100; i++)
		insert(av, i);
	drop(av, 50);
	ck_assert_int_eq(fi_av_set(reader, &all, &set, NULL), 0);
	ck_assert_uint_eq(av_set_of(set)->members->count, 99);
	ck_assert_int_eq(fi_av_set_insert(set, 50), -FI_EINVAL);
	ck_assert_int_eq(fi_close(&set->fid), 0);
	ck_assert_int_eq(fi_av_set_user_id(av, 60, 1234, 0), 0);
	ck_assert_uint_eq(av_user_id(av_of(av), 60), 1234);
	ck_assert_uint_eq(av_user_id(av_of(av), 61), 61);
	ck_assert_uint_eq(av_user_id(av_of(reader), 60), 60);
	ck_assert_int_eq(fi_av_set_user_id(reader, 60, 1, 0), -FI_EACCES);
	close_av(reader);
	close_av(av);
}
END_TEST

static struct av_shared_key make_key(uint32_t format)
{
	struct av_shared_key key = {.format = format, .type = FI_AV_TABLE};

	ck_assert_int_eq(av_shared_key(&key, "unit", name), 0);
	return key;
}

START_TEST(a_full_table_says_so)
{
	struct av_shared_key key = make_key(FI_SOCKADDR_IN);
	struct addr a = {.kind = ADDR_IN, .port = 1};
	struct av_shared_entry entry;
	struct av_shared t;
	uint32_t index = 0;

	ck_assert_int_eq(av_shared_open(&t, &key, 0, true), 0);
	ck_assert_int_eq(av_shared_begin(&t), 0);
	for (uint32_t i = 0; i < AV_SHARED_ENTRIES; i++) {
		a.scope = i;
		ck_assert_int_eq(av_shared_add(&t, &a, &index), 0);
	}
	ck_assert_uint_eq(index, AV_SHARED_ENTRIES - 1);
	ck_assert_int_eq(av_shared_add(&t, &a, &index), -FI_ENOMEM);
	av_shared_end(&t);
	av_shared_get(&t, index, &entry);
	ck_assert_uint_eq(entry.addr.scope, index);
	av_shared_close(&t);
	ck_assert_int_eq(av_shared_open(&t, &key, 2 * AV_SHARED_ENTRIES, true), 0);
	ck_assert_uint_eq(t.capacity, 2 * AV_SHARED_ENTRIES);
	av_shared_close(&t);
	ck_assert_int_eq(av_shared_open(&t, &key, SIZE_MAX, true), 0);
	ck_assert_uint_eq(t.capacity, AV_SHARED_ENTRIES_MAX);
	av_shared_close(&t);
}
END_TEST

/* A reader survives any bytes in the table and reads nothing beyond it. */
START_TEST(rubbish_is_no_address)
{
	struct av_shared_key key = make_key(FI_ADDR_STR);
	struct addr a = {.kind = ADDR_STR, .str = (char *)(uintptr_t) "fi_shm://1"};
	struct av_shared writer, reader;
	struct av_shared_entry entry;
	uint32_t index;

	ck_assert_int_eq(av_shared_open(&writer, &key, 0, true), 0);
	ck_assert_int_eq(av_shared_open(&reader, &key, 0, false), 0);
	ck_assert_int_eq(av_shared_add(&writer, &a, &index), 0);
	av_shared_get(&reader, 0, &entry);
	ck_assert_ptr_eq(entry.addr.str, entry.str);
	ck_assert_str_eq(entry.str, "fi_shm://1");
	memset(writer.slots, 'x', writer.slot_len);
	av_shared_get(&reader, 0, &entry);
	ck_assert_uint_eq(entry.addr.kind, ADDR_NONE);
	writer.slots[0] = ADDR_STR;
	av_shared_get(&reader, 0, &entry);
	ck_assert_uint_eq(strlen(entry.addr.str), ADDR_STR_MAX - 1);
	memset(writer.head, 0xff, 64);
	ck_assert_uint_eq(av_shared_count(&reader), reader.capacity);
	av_shared_get(&reader, reader.capacity - 1, &entry);
	ck_assert_uint_eq(entry.addr.kind, ADDR_NONE);
	av_shared_close(&reader);
	ck_assert_int_eq(av_shared_open(&reader, &key, 0, false), -FI_ENOSYS);
	ck_assert_int_eq(av_shared_open(&reader, &key, 0, true), -FI_ENOSYS);
	av_shared_close(&writer);
}
END_TEST

/* Other files published under the name are left alone. */
START_TEST(other_files_are_not_taken)
{
	struct av_shared_key key = make_key(FI_SOCKADDR_IN);
	struct av_shared t;
	int fds[2], mem = memfd_create("empty", MFD_CLOEXEC), place;

	ck_assert_int_ge(mem, 0);
	ck_assert_int_eq(pipe(fds), 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(av_name_publish(key.name, i ? mem : fds[0], &place), 0);
		ck_assert_int_eq(av_shared_open(&t, &key, 0, false), -FI_ENOSYS);
		forked_close(place);
	}
	ck_assert_int_eq(av_shared_open(&t, &key, 0, false), -FI_EINVAL);
	/* A good table behind a bad file is found. */
	ck_assert_int_eq(av_shared_open(&t, &key, 0, true), 0);
	ck_assert_int_eq(av_name_publish(key.name, mem, &place), 0);
	for (int i = 0; i < 2; i++) {
		struct av_shared reader;

		ck_assert_int_eq(av_shared_open(&reader, &key, 0, i), 0);
		av_shared_close(&reader);
	}
	av_shared_close(&t);
	forked_close(place);
	close(mem);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

/*
 * A process that holds the name's lock keeps writers out for a bounded time, and readers not at
 * all.
 */
START_TEST(a_name_that_is_kept)
{
	struct av_shared_key key = make_key(FI_SOCKADDR_IN);
	struct av_shared t, reader;
	int door;

	ck_assert_int_eq(av_shared_open(&t, &key, 0, true), 0);
	ck_assert_int_eq(av_name_enter(key.name, &door), 0);
	ck_assert_int_eq(av_shared_open(&reader, &key, 0, false), 0);
	av_shared_close(&reader);
	ck_assert_int_eq(av_shared_open(&reader, &key, 0, true), -FI_EADDRINUSE);
	forked_close(door);
	ck_assert_int_eq(av_shared_open(&reader, &key, 0, true), 0);
	av_shared_close(&reader);
	av_shared_close(&t);
}
END_TEST

/* A process that keeps the table's lock keeps writers out for a bounded time, and readers not at all. */
START_TEST(a_lock_that_is_kept)
{
	struct av_shared_key key = make_key(FI_SOCKADDR_IN);
	struct fid_av *av = open_at(0, FI_AV_TABLE, 0);
	struct sockaddr_in in = in_of(2);
	struct av_shared keeper;
	fi_addr_t first = insert(av, 1);

	ck_assert_int_eq(av_shared_open(&keeper, &key, 0, true), 0);
	ck_assert_int_eq(av_shared_begin(&keeper), 0);
	ck_assert_int_eq(fi_av_insert(av, &in, 1, NULL, 0, NULL), -FI_EBUSY);
	ck_assert_int_eq(fi_av_remove(av, &first, 1, 0), -FI_EBUSY);
	ck_assert_uint_eq(find(av, 1), first);
	av_shared_end(&keeper);
	insert(av, 2);
	drop(av, first);
	av_shared_close(&keeper);
	close_av(av);
}
END_TEST

/* Rows that were equal when their number was taken become different while more are added: lookups end. */
START_TEST(rows_that_change)
{
	struct av_shared_key key = make_key(FI_SOCKADDR_IN);
	struct fid_av *av = open_at(0, FI_AV_TABLE, 0), *reader = open_at(1, FI_AV_TABLE, FI_READ);
	struct addr a = {.kind = ADDR_IN, .port = 1};
	struct av_shared writer;
	uint32_t index;

	ck_assert_int_eq(av_shared_open(&writer, &key, 0, true), 0);
	ck_assert_uint_eq(find(reader, 1), NONE);
	for (int i = 0; i < CHANGED; i++)
		ck_assert_int_eq(av_shared_add(&writer, &a, &index), 0);
	ck_assert_uint_eq(find(reader, 1), NONE);
	for (uint16_t i = 0; i < CHANGED; i++)
		((struct addr *)writer.slots)[i].port = (uint16_t)(i + 1);
	for (uint16_t i = 0; i < CHANGED; i++) {
		a.port = (uint16_t)(CHANGED + i);
		ck_assert_int_eq(av_shared_add(&writer, &a, &index), 0);
	}
	ck_assert_uint_eq(find(reader, 60000), NONE);
	av_shared_close(&writer);
	close_av(reader);
	close_av(av);
}
END_TEST

/* Other users cannot read the file, and its size cannot change while it is mapped. */
START_TEST(the_file_is_private_and_keeps_its_size)
{
	struct av_shared_key key = make_key(FI_SOCKADDR_IN);
	struct av_shared t, reader;
	struct stat st;

	ck_assert_int_eq(av_shared_open(&t, &key, 0, true), 0);
	ck_assert_int_eq(av_shared_open(&reader, &key, 0, false), 0);
	ck_assert_int_eq(reader.fd, -1);
	ck_assert_int_eq(mprotect(reader.head, reader.len, PROT_READ | PROT_WRITE), -1);
	ck_assert_int_eq(fstat(t.fd, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	ck_assert_uint_eq(st.st_nlink, 0);
	ck_assert_uint_lt((size_t)st.st_blocks * 512, 65536); /* sparse: only pages written */
	ck_assert_int_eq(ftruncate(t.fd, 0), -1);
	ck_assert_int_eq(ftruncate(t.fd, st.st_size + 4096), -1);
	av_shared_close(&reader);
	if (fchown(t.fd, 65534, (gid_t)-1) == 0) /* as if another user had published it */
		ck_assert_int_eq(av_shared_open(&reader, &key, 0, false), -FI_ENOSYS);
	av_shared_close(&t);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_av_shared");
	TCase *tc = tcase_create("shared");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 50);
	tcase_add_test(tc, writers_alternate);
	tcase_add_loop_test(tc, insertions_of_all_are_counted, 0, 2);
	tcase_add_test(tc, removed_indexes_stay_empty);
	tcase_add_test(tc, every_kind_of_address_crosses);
	tcase_add_test(tc, what_differs_is_refused);
	tcase_add_test(tc, map_addr_is_the_table_of_addresses);
	tcase_add_test(tc, sets_and_user_ids_work);
	tcase_add_test(tc, a_full_table_says_so);
	tcase_add_test(tc, rubbish_is_no_address);
	tcase_add_test(tc, other_files_are_not_taken);
	tcase_add_test(tc, a_name_that_is_kept);
	tcase_add_test(tc, a_lock_that_is_kept);
	tcase_add_test(tc, rows_that_change);
	tcase_add_test(tc, the_file_is_private_and_keeps_its_size);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
