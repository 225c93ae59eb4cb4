/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves how address vectors and their sets behave, without an endpoint. */
#include <arpa/inet.h>
#include <limits.h>
#include <malloc.h>
#include <netinet/in.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/av.h"
#include "core/av_set.h"
#include "core/eq.h"
#include "xfer/peer.h"
#include "xfer/worker.h"
#include "fake_calls.h"
#include "suite.h"

#define NONE FI_ADDR_NOTAVAIL
#define MANY 5000

static struct fabric fabric;
static struct fi_info info = {.addr_format = FI_SOCKADDR_IN};
static struct domain dom = {.calls = &fake_calls, .fabric = &fabric, .info = &info};

static void setup(void)
{
	dom.forks = forked_count();
	ck_assert_int_eq(shard_open_main(&dom), 0);
	list_init(&dom.workers);
	list_init(&dom.sets);
	info.addr_format = FI_SOCKADDR_IN;
}

static struct fid_av *open_av(enum fi_av_type type, uint64_t flags)
{
	struct fi_av_attr attr = {.type = type, .flags = flags};
	struct fid_av *av;

	ck_assert_int_eq(av_open(&dom.fid, &attr, &av, NULL), 0);
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

static void drop(struct fid_av *av, fi_addr_t fi_addr)
{
	ck_assert_int_eq(fi_av_remove(av, &fi_addr, 1, 0), 0);
}

static const char *text_at(struct fid_av *av, fi_addr_t fi_addr)
{
	static char text[128];
	size_t len = sizeof(text);
	char raw[128];

	ck_assert_int_eq(fi_av_lookup(av, fi_addr, raw, &len), 0);
	len = sizeof(text);
	return fi_av_straddr(av, raw, text, &len);
}

static void close_av(struct fid_av *av)
{
	ck_assert_int_eq(fi_close(&av->fid), 0);
}

START_TEST(open_says_what_it_chose)
{
	struct fi_av_attr attr = {.type = FI_AV_UNSPEC, .count = SIZE_MAX};
	struct fid_av *av;

	ck_assert_int_eq(av_open(&dom.fid, &attr, &av, &info), 0);
	ck_assert_int_eq(attr.type, FI_AV_TABLE);
	ck_assert_ptr_null(attr.map_addr);
	ck_assert_ptr_eq(av->fid.context, &info);
	ck_assert_uint_eq(av->fid.fclass, FI_CLASS_AV);
	ck_assert_int_eq(dom.ref, 1);
	close_av(av);
	ck_assert_int_eq(dom.ref, 0);
}
END_TEST

START_TEST(open_refuses)
{
	struct fi_av_attr type = {.type = 9}, flag = {.flags = FI_MULTICAST},
			  bits = {.rx_ctx_bits = AV_RX_CTX_BITS_MAX + 1},
			  below = {.rx_ctx_bits = -1}, read = {.flags = FI_READ},
			  missing = {.flags = FI_READ, .name = "nobody made it"};
	struct fid_av *av = NULL;

	ck_assert_int_eq(av_open(&dom.fid, NULL, &av, NULL), -FI_EINVAL);
	ck_assert_int_eq(av_open(&dom.fid, &type, &av, NULL), -FI_EINVAL);
	ck_assert_int_eq(av_open(&dom.fid, &flag, &av, NULL), -FI_EBADFLAGS);
	ck_assert_int_eq(av_open(&dom.fid, &bits, &av, NULL), -FI_EINVAL);
	ck_assert_int_eq(av_open(&dom.fid, &below, &av, NULL), -FI_EINVAL);
	ck_assert_int_eq(av_open(&dom.fid, &read, &av, NULL), -FI_EINVAL);
	ck_assert_int_eq(av_open(&dom.fid, &missing, &av, NULL), -FI_EINVAL);
	ck_assert_ptr_null(av);
	ck_assert_int_eq(dom.ref, 0);
}
END_TEST

START_TEST(table_counts_up_and_fills_holes)
{
	struct fid_av *av = open_av(FI_AV_TABLE, 0);
	struct sockaddr_in two[2] = {in_of(17), in_of(18)};

	for (unsigned int i = 0; i < 10; i++)
		ck_assert_uint_eq(insert(av, i), i);
	drop(av, 6);
	drop(av, 3);
	ck_assert_ptr_null(av_addr(av_of(av), 3));
	ck_assert_uint_eq(find(av, 3), NONE);
	ck_assert_uint_eq(find(av, 6), NONE);
	ck_assert_int_eq(fi_av_insert(av, two, 2, NULL, 0, NULL), 2);
	ck_assert_str_eq(text_at(av, 3), "fi_sockaddr_in://10.0.0.1:18");
	ck_assert_str_eq(text_at(av, 6), "fi_sockaddr_in://10.0.0.1:19");
	ck_assert_uint_eq(find(av, 17), 3);
	ck_assert_uint_eq(insert(av, 11), 10);
	close_av(av);
}
END_TEST

static size_t allocated(void)
{
	struct mallinfo2 now = mallinfo2();

	return now.uordblks + now.hblkhd;
}

/* A row of 24 bytes, an eighth of that for rows to come, and 6 bytes of the hash, whatever the number of addresses. */
START_TEST(addresses_take_little_memory)
{
	size_t before = allocated();
	struct fid_av *av = open_av(FI_AV_TABLE, 0);

	for (unsigned int count = 1; count <= 100000; count++) {
		insert(av, count);
		if (count >= 10000 && count % 100 == 0)
			ck_assert_uint_le((allocated() - before) / count, 33);
	}
	close_av(av);
}
END_TEST

START_TEST(an_address_keeps_its_index)
{
	struct fid_av *av = open_av(_i ? FI_AV_TABLE : FI_AV_MAP, 0);
	fi_addr_t a = insert(av, 1), b = insert(av, 2);

	ck_assert_uint_ne(a, b);
	ck_assert_uint_eq(insert(av, 1), a);
	drop(av, a); /* inserted twice: the entry stays */
	ck_assert_uint_eq(find(av, 1), a);
	drop(av, a);
	ck_assert_uint_eq(find(av, 1), NONE);
	ck_assert_int_eq(fi_av_remove(av, &a, 1, 0), -FI_EINVAL);
	ck_assert_uint_eq(find(av, 2), b);
	ck_assert_uint_eq(insert(av, 3), a); /* the index is used again */
	close_av(av);
}
END_TEST

/* Duplicates within one call share an index, also beside an invalid address. */
START_TEST(addresses_of_one_call_keep_their_index)
{
	struct fid_av *av = open_av(FI_AV_TABLE, 0);
	struct sockaddr_in in[4] = {in_of(1), in_of(2), in_of(1), in_of(3)};
	fi_addr_t at[4];

	in[1].sin_port = 0;
	ck_assert_int_eq(fi_av_insert(av, in, 4, at, 0, NULL), 3);
	ck_assert_uint_eq(at[0], 0);
	ck_assert_uint_eq(at[1], NONE);
	ck_assert_uint_eq(at[2], 0);
	ck_assert_uint_eq(at[3], 1);
	close_av(av);
}
END_TEST

#define HOLE UINT_MAX /* finds a hole: HOLE + 1 is 0 */

/* Returns the lowest index of `number` in the model. */
static fi_addr_t model_find(const unsigned int *model, unsigned int number)
{
	for (fi_addr_t i = 0; i < MANY; i++)
		if (model[i] == number + 1)
			return i;
	return NONE;
}

/*
 * Compares a vector with plain arrays (number and insertions of each index), under random
 * insertions and removals.
 */
START_TEST(find_agrees_with_a_simple_model)
{
	static unsigned int model[MANY]; /* number + 1, 0: hole */
	static int uses[MANY];
	struct fid_av *av = open_av(FI_AV_TABLE, 0);
	unsigned int seed = 1;

	for (int i = 0; i < MANY; i++) {
		unsigned int number = (unsigned int)rand_r(&seed) % 500;
		fi_addr_t at = find(av, number);

		ck_assert_uint_eq(at, model_find(model, number));
		if (at != NONE && rand_r(&seed) % 3) {
			drop(av, at);
			model[at] = --uses[at] ? number + 1 : 0;
			continue;
		}
		if (at == NONE)
			at = model_find(model, HOLE);
		ck_assert_uint_eq(insert(av, number), at);
		model[at] = number + 1;
		uses[at]++;
	}
	close_av(av);
}
END_TEST

START_TEST(failures_are_reported_one_by_one)
{
	struct fid_av *av = open_av(FI_AV_TABLE, 0);
	struct sockaddr_in in[4] = {in_of(0), in_of(1), in_of(2), in_of(3)};
	fi_addr_t fi_addr[4];
	int err[4] = {9, 9, 9, 9};

	in[1].sin_family = AF_INET6;
	in[2].sin_port = 0;
	ck_assert_int_eq(fi_av_insert(av, in, 4, fi_addr, FI_SYNC_ERR, err), 2);
	ck_assert_uint_eq(fi_addr[0], 0);
	ck_assert_uint_eq(fi_addr[1], NONE);
	ck_assert_uint_eq(fi_addr[2], NONE);
	ck_assert_uint_eq(fi_addr[3], 1);
	ck_assert_int_eq(err[0], 0);
	ck_assert_int_eq(err[1], FI_EINVAL);
	ck_assert_int_eq(err[2], FI_EADDRNOTAVAIL);
	ck_assert_int_eq(err[3], 0);
	close_av(av);
}
END_TEST

/* FI_FIREWALL_ADDR holds from any insertion of the address until its last removal. */
START_TEST(firewalled)
{
	struct fid_av *fid = open_av(FI_AV_TABLE, 0);
	struct fi_fabric_attr tcp = {.prov_name = (char[]){"tcp"}};
	struct fi_ep_attr rdm = {.type = FI_EP_RDM};
	struct sockaddr_in in = in_of(7);
	fi_addr_t at = insert(fid, 7), other = insert(fid, 8);

	ck_assert_int_eq(fi_av_insert(fid, &in, 1, NULL, FI_FIREWALL_ADDR, NULL), -FI_ENOSYS);
	ck_assert(!av_firewalled(av_of(fid), at));
	info.fabric_attr = &tcp;
	info.ep_attr = &rdm;
	ck_assert_int_eq(fi_av_insert(fid, &in, 1, NULL, FI_FIREWALL_ADDR, NULL), 1);
	ck_assert(av_firewalled(av_of(fid), at));
	ck_assert(!av_firewalled(av_of(fid), other));
	for (unsigned int i = 0; i < 2; i++) {
		ck_assert(av_firewalled(av_of(fid), at));
		ck_assert_int_eq(fi_av_remove(fid, &at, 1, 0), 0);
	}
	ck_assert_uint_eq(insert(fid, 7), at);
	ck_assert(!av_firewalled(av_of(fid), at));
	info.fabric_attr = NULL;
	info.ep_attr = NULL;
	ck_assert_int_eq(fi_close(&fid->fid), 0);
}
END_TEST

START_TEST(insert_refuses)
{
	struct fid_av *av = open_av(FI_AV_TABLE, 0);
	struct sockaddr_in in = in_of(0);

	ck_assert_int_eq(fi_av_insert(av, NULL, 1, NULL, 0, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_av_insert(av, NULL, 0, NULL, 0, NULL), 0);
	ck_assert_int_eq(fi_av_insert(av, &in, 1, NULL, FI_SYNC_ERR, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_av_insert(av, &in, 1, NULL, FI_AV_USER_ID, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_av_insert(av, &in, 1, NULL, FI_FENCE, NULL), -FI_EBADFLAGS);
	ck_assert_int_eq(fi_av_insert(av, &in, SIZE_MAX, NULL, 0, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_av_insert(av, &in, 1, NULL, FI_MORE, NULL), 1);
	ck_assert_int_eq(fi_av_insert_auth_key(av, "k", 1, NULL, 0), -FI_ENOSYS);
	ck_assert_int_eq(fi_av_lookup_auth_key(av, 0, NULL, NULL), -FI_ENOSYS);
	close_av(av);
}
END_TEST

START_TEST(remove_refuses_and_goes_on)
{
	struct fid_av *av = open_av(FI_AV_TABLE, 0);
	fi_addr_t some[3] = {0, 5, 1}, bad = NONE;

	insert(av, 0);
	insert(av, 1);
	ck_assert_int_eq(fi_av_remove(av, some, 3, 1), -FI_EBADFLAGS);
	ck_assert_int_eq(fi_av_remove(av, NULL, 1, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_av_remove(av, &bad, 1, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_av_remove(av, some, 3, 0), -FI_EINVAL);
	ck_assert_uint_eq(find(av, 0), NONE);
	ck_assert_uint_eq(find(av, 1), NONE);
	close_av(av);
}
END_TEST

START_TEST(lookup_and_straddr_say_what_they_need)
{
	struct fid_av *av = open_av(FI_AV_TABLE, 0);
	struct sockaddr_in in = in_of(0);
	unsigned char raw[sizeof(in)] = {0};
	size_t len = 4;
	char text[8];

	insert(av, 0);
	ck_assert_int_eq(fi_av_lookup(av, 0, raw, &len), 0);
	ck_assert_uint_eq(len, sizeof(in));
	ck_assert_mem_eq(raw, &in, 4);
	ck_assert_uint_eq(raw[4], 0);
	ck_assert_int_eq(fi_av_lookup(av, 1, raw, &len), -FI_EINVAL);
	ck_assert_int_eq(fi_av_lookup(av, NONE, raw, &len), -FI_EINVAL);
	ck_assert_int_eq(fi_av_lookup(av, 0, NULL, &len), -FI_EINVAL);
	len = sizeof(text);
	ck_assert_ptr_eq(fi_av_straddr(av, &in, text, &len), text);
	ck_assert_str_eq(text, "fi_sock");
	ck_assert_uint_eq(len, sizeof("fi_sockaddr_in://10.0.0.1:1"));
	in.sin_family = AF_UNIX;
	ck_assert_str_eq(fi_av_straddr(av, &in, text, &len), "");
	ck_assert_uint_eq(len, 1);
	close_av(av);
}
END_TEST

START_TEST(receive_contexts_are_stripped)
{
	struct fi_av_attr attr = {.type = FI_AV_MAP, .rx_ctx_bits = 6};
	struct fid_av *av;
	fi_addr_t a, ctx;

	ck_assert_int_eq(av_open(&dom.fid, &attr, &av, NULL), 0);
	insert(av, 0);
	a = insert(av, 1);
	ctx = fi_rx_addr(a, 63, 6);
	ck_assert_uint_ne(ctx, a);
	ck_assert_uint_eq(av_index(av_of(av), ctx), a);
	ck_assert_str_eq(text_at(av, ctx), "fi_sockaddr_in://10.0.0.1:2");
	drop(av, ctx);
	ck_assert_uint_eq(find(av, 1), NONE);
	close_av(av);
}
END_TEST

START_TEST(user_ids_stand_for_entries)
{
	struct fid_av *av = open_av(FI_AV_TABLE, FI_AV_USER_ID);
	struct sockaddr_in in[2] = {in_of(1), in_of(2)};
	fi_addr_t ids[2] = {1111, 2222};

	insert(av, 0);
	ck_assert_uint_eq(av_user_id(av_of(av), 0), 0);
	ck_assert_int_eq(fi_av_insert(av, in, 2, ids, FI_AV_USER_ID, NULL), 2);
	ck_assert_uint_eq(ids[0], 1);
	ck_assert_uint_eq(ids[1], 2);
	ck_assert_uint_eq(av_user_id(av_of(av), 0), 0);
	ck_assert_uint_eq(av_user_id(av_of(av), 1), 1111);
	ck_assert_uint_eq(av_user_id(av_of(av), 2), 2222);
	ck_assert_int_eq(fi_av_set_user_id(av, 0, NONE, 0), 0);
	ck_assert_uint_eq(av_user_id(av_of(av), 0), NONE);
	ck_assert_int_eq(fi_av_set_user_id(av, 9, 0, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_av_set_user_id(av, 0, 0, 1), -FI_EBADFLAGS);
	drop(av, 1); /* the next entry at this index has no user id */
	ck_assert_uint_eq(insert(av, 3), 1);
	ck_assert_uint_eq(av_user_id(av_of(av), 1), 1);
	ck_assert_uint_eq(av_user_id(av_of(av), NONE), NONE);
	for (unsigned int i = 4; i < 200; i++) /* the table grows */
		ck_assert_uint_eq(av_user_id(av_of(av), insert(av, i)), i - 1);
	close_av(av);
}
END_TEST

static struct fid_eq *open_eq(void)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct fid_eq *eq;

	ck_assert_int_eq(eq_open(&fabric.fid, &attr, &eq, NULL), 0);
	return eq;
}

START_TEST(events_tell_of_failures_then_of_the_end)
{
	struct fid_av *av = open_av(FI_AV_TABLE, FI_EVENT);
	struct fid_eq *eq = open_eq();
	struct sockaddr_in in[3] = {in_of(0), in_of(1), in_of(2)};
	struct fi_eq_err_entry error = {0};
	struct fi_eq_entry entry;
	fi_addr_t fi_addr[3];
	uint32_t event;

	in[1].sin_family = AF_UNIX;
	ck_assert_int_eq(fi_av_insert(av, in, 3, fi_addr, 0, &in), -FI_ENOEQ);
	ck_assert_int_eq(av->fid.ops->bind(&av->fid, &eq->fid, 0), 0);
	ck_assert_int_eq(av->fid.ops->bind(&av->fid, &eq->fid, 1), -FI_EBADFLAGS);
	ck_assert_int_eq(av->fid.ops->bind(&av->fid, &av->fid, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_av_insert(av, in, 3, fi_addr, FI_SYNC_ERR, &in), -FI_EBADFLAGS);
	ck_assert_int_eq(fi_av_insert(av, in, 3, fi_addr, 0, &in), 0);
	ck_assert_int_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	ck_assert_int_eq(fi_eq_readerr(eq, &error, 0), sizeof(error));
	ck_assert_ptr_eq(error.fid, &av->fid);
	ck_assert_ptr_eq(error.context, &in);
	ck_assert_uint_eq(error.data, 1);
	ck_assert_int_eq(error.err, FI_EINVAL);
	ck_assert_int_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	ck_assert_uint_eq(event, FI_AV_COMPLETE);
	ck_assert_ptr_eq(entry.fid, &av->fid);
	ck_assert_ptr_eq(entry.context, &in);
	ck_assert_uint_eq(entry.data, 2);
	ck_assert_uint_eq(fi_addr[1], NONE);
	ck_assert_uint_eq(fi_addr[2], 1);
	ck_assert_int_eq(fi_close(&eq->fid), -FI_EBUSY);
	close_av(av);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

START_TEST(strings_come_as_pointers)
{
	const char *names[] = {"fi_shm://1", NULL, "fi_shm://2"};
	fi_addr_t fi_addr[3];
	struct fid_av *av;
	char buf[16];
	size_t len = sizeof(buf);

	info.addr_format = FI_ADDR_STR;
	av = open_av(FI_AV_MAP, 0);
	ck_assert_int_eq(fi_av_insert(av, names, 3, fi_addr, 0, NULL), 2);
	ck_assert_uint_eq(fi_addr[1], NONE);
	ck_assert_int_eq(fi_av_lookup(av, fi_addr[2], buf, &len), 0);
	ck_assert_str_eq(buf, names[2]);
	ck_assert_int_eq(fi_av_insertsvc(av, names[0], NULL, fi_addr + 1, 0, NULL), 1);
	ck_assert_uint_eq(fi_addr[1], fi_addr[0]);
	ck_assert_int_eq(fi_av_insertsvc(av, "127.0.0.1", "5", fi_addr, 0, NULL), 0);
	drop(av, fi_addr[1]);
	close_av(av);
}
END_TEST

START_TEST(strings_come_one_behind_the_other)
{
	static const char packed[] = "fi_shm://1\0fi_shm://22";
	fi_addr_t fi_addr[2];
	struct fid_av *av;
	char buf[16];
	size_t len = sizeof(buf);

	info.addr_format = FI_ADDR_STR;
	av = open_av(FI_AV_MAP, 0);
	ck_assert_int_eq(fi_av_insert(av, packed, 2, fi_addr, 0, NULL), 2);
	ck_assert_int_eq(fi_av_lookup(av, fi_addr[1], buf, &len), 0);
	ck_assert_str_eq(buf, "fi_shm://22");
	ck_assert_int_eq(fi_av_insert(av, NULL, 0, fi_addr, 0, NULL), 0);
	close_av(av);
}
END_TEST

START_TEST(mixed_sockaddrs_are_walked)
{
	struct {
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_in last, bad, after;
	} all = {.in = in_of(0), .last = in_of(1), .bad = in_of(2), .after = in_of(3)};
	fi_addr_t fi_addr[5];
	struct fid_av *av;
	int err[5];

	all.in6.sin6_family = AF_INET6;
	all.in6.sin6_port = htons(9);
	all.in6.sin6_addr = in6addr_loopback;
	all.bad.sin_family = AF_UNIX;
	info.addr_format = FI_SOCKADDR;
	av = open_av(FI_AV_TABLE, 0);
	ck_assert_int_eq(fi_av_insert(av, &all, 5, fi_addr, FI_SYNC_ERR, err), 3);
	ck_assert_str_eq(text_at(av, 1), "fi_sockaddr_in6://[::1]:9");
	ck_assert_str_eq(text_at(av, 2), "fi_sockaddr_in://10.0.0.1:2");
	ck_assert_int_eq(err[3], FI_EINVAL);
	ck_assert_int_eq(err[4], FI_ECANCELED);
	close_av(av);
}
END_TEST

START_TEST(services_are_resolved)
{
	struct fid_av *av = open_av(FI_AV_TABLE, 0);
	fi_addr_t a = 0;
	int err = 0;

	ck_assert_int_eq(fi_av_insertsvc(av, "127.0.0.1", "5000", &a, 0, NULL), 1);
	ck_assert_str_eq(text_at(av, a), "fi_sockaddr_in://127.0.0.1:5000");
	ck_assert_int_eq(fi_av_insertsvc(av, "localhost", "5001", &a, 0, NULL), 1);
	ck_assert_str_eq(text_at(av, a), "fi_sockaddr_in://127.0.0.1:5001");
	ck_assert_int_eq(fi_av_insertsvc(av, "fi_sockaddr_in://1.2.3.4:5", NULL, &a, 0, NULL), 1);
	ck_assert_str_eq(text_at(av, a), "fi_sockaddr_in://1.2.3.4:5");
	ck_assert_int_eq(fi_av_insertsvc(av, "fi_sockaddr_in6://[::1]:5", NULL, &a, 0, NULL), 0);
	ck_assert_int_eq(fi_av_insertsvc(av, "::1", "5", &a, FI_SYNC_ERR, &err), 0);
	ck_assert_int_eq(err, FI_EADDRNOTAVAIL);
	ck_assert_uint_eq(a, NONE);
	ck_assert_int_eq(fi_av_insertsvc(av, NULL, NULL, &a, 0, NULL), -FI_EINVAL);
	close_av(av);
}
END_TEST

START_TEST(ranges_go_service_by_service)
{
	const char *expect[] = {"fi_sockaddr_in://10.1.1.255:5000",
				"fi_sockaddr_in://10.1.1.255:5001",
				"fi_sockaddr_in://10.1.2.0:5000", "fi_sockaddr_in://10.1.2.0:5001"};
	struct fid_av *av = open_av(FI_AV_TABLE, FI_SYMMETRIC);
	fi_addr_t a[4];
	int err[2];

	ck_assert_int_eq(fi_av_insertsym(av, "10.1.1.255", 2, "5000", 2, a, 0, NULL), 4);
	for (int i = 0; i < 4; i++)
		ck_assert_str_eq(text_at(av, a[i]), expect[i]);
	ck_assert_int_eq(fi_av_insertsym(av, "10.1.1.1", 1, "65535", 2, a, FI_SYNC_ERR, err), 1);
	ck_assert_int_eq(err[1], FI_EADDRNOTAVAIL);
	ck_assert_int_eq(fi_av_insertsym(av, "255.255.255.255", 2, "1", 1, a, 0, NULL), 1);
	ck_assert_int_eq(fi_av_insertsym(av, "localhost", 2, "1", 1, a, 0, NULL), 1);
	ck_assert_int_eq(fi_av_insertsym(av, "10.0.0.1", 0, "1", 1, a, 0, NULL), 0);
	ck_assert_int_eq(fi_av_insertsym(av, "10.0.0.1", 1, "1", 0, a, 0, NULL), 0);
	ck_assert_int_eq(fi_av_insertsym(av, "10.0.0.1", SIZE_MAX, "1", 2, a, 0, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_av_insertsym(av, NULL, 2, "1", 1, a, 0, NULL), -FI_EINVAL);
	close_av(av);
}
END_TEST

START_TEST(names_are_shared_in_a_domain)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .name = "shared"};
	struct fi_av_attr read = {.type = FI_AV_TABLE, .name = "shared", .flags = FI_READ};
	struct fi_av_attr map = {.type = FI_AV_MAP, .name = "shared"};
	struct domain other = {.calls = &fake_calls, .fabric = &fabric, .info = &info};
	struct fid_av *writer, *reader, *third;
	struct sockaddr_in in = in_of(9);
	fi_addr_t a;

	other.forks = forked_count();
	ck_assert_int_eq(shard_open_main(&other), 0);
	ck_assert_int_eq(av_open(&dom.fid, &attr, &writer, NULL), 0);
	ck_assert_ptr_nonnull(attr.map_addr);
	a = insert(writer, 1);
	ck_assert_int_eq(av_open(&dom.fid, &read, &reader, NULL), 0);
	ck_assert_ptr_eq(read.map_addr, attr.map_addr);
	ck_assert_int_eq(av_open(&dom.fid, &map, &third, NULL), -FI_EINVAL);
	ck_assert_int_eq(av_open(&other.fid, &read, &third, NULL), 0);
	ck_assert_uint_eq(find(reader, 1), a);
	a = insert(writer, 2);
	ck_assert_uint_eq(find(reader, 2), a);
	ck_assert_int_eq(fi_av_insert(reader, &in, 1, NULL, 0, NULL), -FI_EACCES);
	ck_assert_int_eq(fi_av_remove(reader, &a, 1, 0), -FI_EACCES);
	ck_assert_int_eq(fi_av_set_user_id(reader, a, 1, 0), -FI_EACCES);
	ck_assert_uint_eq(find(third, 2), a);
	close_av(writer);
	ck_assert_uint_eq(find(reader, 2), a);
	close_av(reader);
	ck_assert_uint_eq(find(third, 2), a);
	close_av(third);
	ck_assert_int_eq(av_open(&dom.fid, &read, &reader, NULL), -FI_EINVAL);
	ck_assert_int_eq(dom.ref, 0);
	shard_close_all(&other);
}
END_TEST

START_TEST(close_waits_for_users)
{
	struct fid_av *av = open_av(FI_AV_TABLE, 0);
	struct list worker;

	ref_get(&av_of(av)->ref);
	ck_assert_int_eq(fi_close(&av->fid), -FI_EBUSY);
	ref_put(&av_of(av)->ref);
	list_push(&av_of(av)->workers, &worker);
	ck_assert_int_eq(fi_close(&av->fid), -FI_EBUSY);
	list_remove(&worker);
	ck_assert_int_eq(dom.ref, 1);
	close_av(av);
}
END_TEST

START_TEST(removal_reaches_the_workers)
{
	struct fi_av_attr attr = {.type = FI_AV_MAP, .name = "watched"};
	struct worker worker = {.conn = {.peer_count = 2, .nobody = &peer_nobody.conn}};
	struct peer one = {.conn = {.addr = 0, .station = &worker.conn}},
		    two = {.conn = {.addr = 1, .station = &worker.conn}};
	struct contact *peers[] = {&one.conn, &two.conn};
	struct fid_av *av, *watched;

	ck_assert_int_eq(av_open(&dom.fid, &attr, &av, NULL), 0);
	ck_assert_int_eq(av_open(&dom.fid, &attr, &watched, NULL), 0);
	worker.conn.peers = peers;
	insert(av, 0);
	insert(av, 1);
	insert(av, 1);
	list_push(&av_of(watched)->workers, &worker.in_av);
	drop(av, 1); /* one of two insertions: the peer stays */
	ck_assert_ptr_eq(peers[1], &two.conn);
	drop(av, 1);
	ck_assert_ptr_eq(peers[1], &peer_nobody.conn);
	ck_assert_ptr_eq(peers[0], &one.conn);
	list_remove(&worker.in_av);
	close_av(av);
	close_av(watched);
}
END_TEST

static struct fi_av_set_attr empty = {.start_addr = NONE, .end_addr = NONE};

static struct fid_av_set *open_set(struct fid_av *av, struct fi_av_set_attr attr)
{
	struct fid_av_set *set;

	ck_assert_int_eq(fi_av_set(av, &attr, &set, NULL), 0);
	return set;
}

/* Returns the members' indexes as digits; they are below ten. */
static const char *members(struct fid_av_set *set)
{
	static char text[16];
	const struct av_set *s = av_set_of(set);

	memset(text, 0, sizeof(text));
	for (size_t i = 0; s->members && i < s->members->count; i++)
		text[i] = (char)('0' + s->members->addr[i]);
	return text;
}

static struct fid_av *ten_entries(enum fi_av_type type)
{
	struct fid_av *av = open_av(type, 0);

	for (unsigned int i = 0; i < 10; i++)
		insert(av, i);
	return av;
}

START_TEST(sets_begin_as_asked)
{
	struct fi_av_set_attr range = {.start_addr = 1, .end_addr = 8, .stride = 3},
			      universe = {.flags = FI_UNIVERSE}, key = empty, no_range = empty;
	struct fid_av *av = ten_entries(FI_AV_TABLE);
	struct fid_av_set *set;
	uint8_t secret[] = {1, 2, 3};

	set = open_set(av, empty);
	ck_assert_str_eq(members(set), "");
	ck_assert_int_eq(fi_close(&av->fid), -FI_EBUSY);
	fi_close(&set->fid);
	no_range.stride = 2;
	set = open_set(av, no_range);
	ck_assert_str_eq(members(set), "");
	fi_close(&set->fid);
	set = open_set(av, range);
	ck_assert_str_eq(members(set), "147");
	fi_close(&set->fid);
	drop(av, 4);
	set = open_set(av, range);
	ck_assert_str_eq(members(set), "17");
	fi_close(&set->fid);
	set = open_set(av, universe);
	ck_assert_str_eq(members(set), "012356789");
	fi_close(&set->fid);
	key.comm_key = secret;
	key.comm_key_size = sizeof(secret);
	set = open_set(av, key);
	ck_assert_mem_eq(av_set_of(set)->comm_key, secret, sizeof(secret));
	fi_close(&set->fid);
	close_av(av);
}
END_TEST

static int refusal(struct fid_av *av, struct fi_av_set_attr attr)
{
	struct fid_av_set *set = NULL;
	int err = fi_av_set(av, &attr, &set, NULL);

	ck_assert_ptr_null(set);
	return err;
}

#define SET(first, last, step, most, flag)                                                         \
	((struct fi_av_set_attr){.start_addr = first,                                              \
				 .end_addr = last,                                                 \
				 .stride = step,                                                   \
				 .count = most,                                                    \
				 .flags = flag})

START_TEST(sets_refuse)
{
	struct fid_av *table = ten_entries(FI_AV_TABLE), *map = ten_entries(FI_AV_MAP);
	struct fi_av_set_attr key = empty;

	key.comm_key_size = 4;
	ck_assert_int_eq(refusal(table, key), -FI_EINVAL);
	ck_assert_int_eq(refusal(map, SET(0, 3, 1, 0, 0)), -FI_EINVAL);
	ck_assert_int_eq(refusal(table, SET(0, 3, 0, 0, 0)), -FI_EINVAL);
	ck_assert_int_eq(refusal(table, SET(3, 2, 1, 0, 0)), -FI_EINVAL);
	ck_assert_int_eq(refusal(table, SET(0, NONE, 1, 0, 0)), -FI_EINVAL);
	ck_assert_int_eq(refusal(table, SET(0, 10, 1, 0, 0)), -FI_EINVAL);
	ck_assert_int_eq(refusal(table, SET(0, 9, 1, 9, 0)), -FI_EINVAL);
	ck_assert_int_eq(refusal(table, SET(NONE, NONE, 0, 0, FI_MORE)), -FI_EBADFLAGS);
	ck_assert_int_eq(fi_av_set(table, NULL, NULL, NULL), -FI_EINVAL);
	close_av(table);
	close_av(map);
}
END_TEST

START_TEST(sets_keep_order)
{
	struct fid_av *av = ten_entries(FI_AV_TABLE);
	struct fid_av_set *a = open_set(av, empty), *b = open_set(av, SET(2, 6, 2, 0, 0));

	ck_assert_int_eq(fi_av_set_insert(a, 9), 0);
	ck_assert_int_eq(fi_av_set_insert(a, 4), 0);
	ck_assert_int_eq(fi_av_set_insert(a, 0), 0);
	ck_assert_int_eq(fi_av_set_insert(a, 4), -FI_EINVAL);
	ck_assert_int_eq(fi_av_set_insert(a, 10), -FI_EINVAL);
	ck_assert_int_eq(fi_av_set_insert(a, NONE), -FI_EINVAL);
	ck_assert_str_eq(members(a), "940");
	ck_assert_int_eq(fi_av_set_union(a, b), 0);
	ck_assert_str_eq(members(a), "94026");
	ck_assert_int_eq(fi_av_set_remove(a, 4), 0);
	ck_assert_int_eq(fi_av_set_remove(a, 4), -FI_EINVAL);
	ck_assert_int_eq(fi_av_set_remove(a, NONE), -FI_EINVAL);
	ck_assert_str_eq(members(a), "9026");
	ck_assert_int_eq(fi_av_set_intersect(b, a), 0);
	ck_assert_str_eq(members(b), "26");
	ck_assert_int_eq(fi_av_set_diff(a, b), 0);
	ck_assert_str_eq(members(a), "90");
	ck_assert_int_eq(fi_av_set_insert(a, 2),
			 0); /* the removal from `a` also cleared its membership bit */
	ck_assert_int_eq(fi_av_set_intersect(a, a), 0);
	ck_assert_str_eq(members(a), "902");
	ck_assert_int_eq(fi_av_set_diff(a, a), 0);
	ck_assert_str_eq(members(a), "");
	fi_close(&a->fid);
	fi_close(&b->fid);
	close_av(av);
}
END_TEST

START_TEST(sets_of_two_vectors_do_not_mix)
{
	struct fid_av *one = ten_entries(FI_AV_TABLE), *two = ten_entries(FI_AV_TABLE);
	struct fid_av_set *a = open_set(one, empty), *b = open_set(two, empty);

	ck_assert_int_eq(fi_av_set_union(a, b), -FI_EINVAL);
	ck_assert_int_eq(fi_av_set_intersect(a, b), -FI_EINVAL);
	ck_assert_int_eq(fi_av_set_diff(a, b), -FI_EINVAL);
	fi_close(&a->fid);
	fi_close(&b->fid);
	close_av(one);
	close_av(two);
}
END_TEST

START_TEST(large_sets_work)
{
	struct fid_av *av = open_av(FI_AV_TABLE, 0);
	struct fid_av_set *all, *half;

	for (unsigned int i = 0; i < MANY; i++)
		insert(av, i);
	all = open_set(av, SET(0, 0, 0, 0, FI_UNIVERSE));
	half = open_set(av, SET(0, MANY - 1, 2, MANY, 0));
	ck_assert_uint_eq(av_set_of(all)->members->count, MANY);
	ck_assert_int_eq(fi_av_set_diff(all, half), 0);
	ck_assert_uint_eq(av_set_of(all)->members->count, MANY / 2);
	ck_assert_int_eq(fi_av_set_union(half, all), 0);
	ck_assert_uint_eq(av_set_of(half)->members->count, MANY);
	fi_close(&all->fid);
	fi_close(&half->fid);
	close_av(av);
}
END_TEST

static void add_vector_tests(TCase *t)
{
	tcase_add_test(t, open_says_what_it_chose);
	tcase_add_test(t, open_refuses);
	tcase_add_test(t, table_counts_up_and_fills_holes);
	tcase_add_test(t, addresses_take_little_memory);
	tcase_add_loop_test(t, an_address_keeps_its_index, 0, 2);
	tcase_add_test(t, addresses_of_one_call_keep_their_index);
	tcase_add_test(t, find_agrees_with_a_simple_model);
	tcase_add_test(t, failures_are_reported_one_by_one);
	tcase_add_test(t, firewalled);
	tcase_add_test(t, insert_refuses);
	tcase_add_test(t, remove_refuses_and_goes_on);
	tcase_add_test(t, lookup_and_straddr_say_what_they_need);
	tcase_add_test(t, receive_contexts_are_stripped);
	tcase_add_test(t, user_ids_stand_for_entries);
	tcase_add_test(t, events_tell_of_failures_then_of_the_end);
	tcase_add_test(t, strings_come_as_pointers);
	tcase_add_test(t, strings_come_one_behind_the_other);
	tcase_add_test(t, mixed_sockaddrs_are_walked);
	tcase_add_test(t, services_are_resolved);
	tcase_add_test(t, ranges_go_service_by_service);
	tcase_add_test(t, names_are_shared_in_a_domain);
	tcase_add_test(t, close_waits_for_users);
	tcase_add_test(t, removal_reaches_the_workers);
}

static void add_set_tests(TCase *t)
{
	tcase_add_test(t, sets_begin_as_asked);
	tcase_add_test(t, sets_refuse);
	tcase_add_test(t, sets_keep_order);
	tcase_add_test(t, sets_of_two_vectors_do_not_mix);
	tcase_add_test(t, large_sets_work);
}

int main(void)
{
	Suite *suite = suite_create("core_av");
	TCase *vector = tcase_create("vector"), *set = tcase_create("set");

	tcase_add_checked_fixture(vector, setup, NULL);
	tcase_add_checked_fixture(set, setup, NULL);
	add_vector_tests(vector);
	add_set_tests(set);
	suite_add_tcase(suite, vector);
	suite_add_tcase(suite, set);
	return suite_run(suite);
}
