/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that at most `backlog` connection requests wait in the event queue, the rest outside. */
#include <stdlib.h>

#include "base/forked.h"
#include "core/eq.h"
#include "api/pep.h"
#include "cm_raw.h"
#include "suite.h"

#define CLIENTS 9
#define ROOM    2

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_eq *eq;
static struct fid_pep *pep;
static struct addr name; /* the passive endpoint's */

static void set_backlog(int backlog)
{
	ck_assert_int_eq(fi_control(&pep->fid, FI_BACKLOG, &backlog), 0);
}

/* The listener's kernel queue takes more clients than the backlog. */
static void setup(void)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct fi_info *hints = fi_allocinfo();
	size_t len = sizeof(in);

	ck_assert_ptr_nonnull(hints);
	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = strdup("weft");
	hints->addr_format = FI_SOCKADDR_IN;
	hints->src_addr = malloc(len);
	hints->src_addrlen = len;
	memcpy(hints->src_addr, &in, len);
	ck_assert_int_eq(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(hints);
	ck_assert_int_eq(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	ck_assert_int_eq(fi_eq_open(fabric, &attr, &eq, NULL), 0);
	ck_assert_int_eq(fi_passive_ep(fabric, info, &pep, NULL), 0);
	ck_assert_int_eq(fi_pep_bind(pep, &eq->fid, 0), 0);
	ck_assert_int_eq(fi_listen(pep), 0);
	ck_assert_int_eq(fi_getname(&pep->fid, &in, &len), 0);
	ck_assert_int_eq(addr_from_user(&name, FI_SOCKADDR_IN, &in, len), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(fi_close(&pep->fid), 0);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
}

static void ask(int socks[CLIENTS], bool inside)
{
	struct wire_hello hello = raw_hello(HELLO_REQUEST, 0);

	for (int i = 0; i < CLIENTS; i++) {
		ck_assert_int_ge(socks[i] = raw_connect(&name, inside), 0);
		raw_send(socks[i], &hello, inside);
	}
}

static void leave(const int socks[CLIENTS], bool inside)
{
	for (int i = 0; i < CLIENTS; i++) {
		if (inside)
			forked_close(socks[i]);
		else
			close(socks[i]);
	}
}

/* Sleeps until a request comes, reads and rejects it. */
static void read_one(void)
{
	struct fi_eq_cm_entry entry;
	uint32_t event = 0;

	ck_assert_int_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), 2000, 0), sizeof(entry));
	ck_assert_uint_eq(event, FI_CONNREQ);
	ck_assert_int_eq(fi_reject(pep, entry.info->handle, NULL, 0), 0);
	fi_freeinfo(entry.info);
}

/* Checks that at most `most` requests wait, whatever makes progress, and all are read at last. */
static void come_by(size_t most, bool inside)
{
	int socks[CLIENTS];

	ask(socks, inside);
	for (int left = CLIENTS; left > 0; left--) {
		for (int round = 0; round < 20; round++) {
			eq_progress(eq_of(eq));
			ck_assert_uint_le(eq_of(eq)->count, most);
		}
		read_one();
	}
	eq_progress(eq_of(eq));
	ck_assert_uint_eq(eq_of(eq)->count, 0);
	leave(socks, inside);
}

START_TEST(as_many_as_there_is_room)
{
	set_backlog(ROOM);
	come_by(ROOM, _i);
}
END_TEST

/* A backlog of 0 counts as 1. */
START_TEST(at_least_one)
{
	set_backlog(0);
	come_by(1, _i);
}
END_TEST

/* Each passive endpoint on a queue has a backlog of its own. */
START_TEST(each_its_own)
{
	struct fid_pep *other;
	int socks[2][CLIENTS];

	set_backlog(ROOM);
	ask(socks[0], _i);
	while (eq_of(eq)->count < ROOM)
		eq_progress(eq_of(eq));
	other = pep;
	ck_assert_int_eq(fi_passive_ep(fabric, info, &pep, NULL), 0);
	ck_assert_int_eq(fi_pep_bind(pep, &eq->fid, 0), 0);
	ck_assert_int_eq(fi_listen(pep), 0);
	set_backlog(ROOM);
	name = pep_of(pep)->name;
	ask(socks[1], _i);
	while (eq_of(eq)->count < 2 * ROOM)
		eq_progress(eq_of(eq));
	ck_assert_int_eq(fi_close(&other->fid), 0);
	ck_assert_uint_eq(eq_of(eq)->count, ROOM);
	leave(socks[0], _i);
	leave(socks[1], _i);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_pep");
	TCase *tcase = tcase_create("pep");

	tcase_set_timeout(tcase, 20);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, as_many_as_there_is_room, 0, 2);
	tcase_add_loop_test(tcase, at_least_one, 0, 2);
	tcase_add_loop_test(tcase, each_its_own, 0, 2);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
