/* SPDX-License-Identifier: BSD-2-Clause */
/* Which interfaces FI_WEFT_RAILS stands for, in a network of the test's own with three wires. */
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"
#include "xfer/worker.h"
#include "conn/rails.h"

static struct rails rails;

static struct addr address(unsigned int wire)
{
	struct addr a = {.kind = ADDR_IN, .port = 4711, .ip = {10, 99, (uint8_t)wire, 1}};

	return a;
}

/* Finds the interfaces of the endpoint on wire 1 with this setting. Returns how many there are beside its own. */
static uint32_t found(const char *setting)
{
	struct addr name = address(1);

	if (setting)
		setenv("FI_WEFT_RAILS", setting, 1);
	memset(&rails, 0, sizeof(rails));
	rails_find(&rails, &name);
	return rails.count > 1 ? rails.count - 1 : 0;
}

static bool is_wire(uint32_t rail, unsigned int wire)
{
	struct addr a = address(wire);

	return !memcmp(rails.rail[rail].addr.ip, a.ip, sizeof(a.ip)) &&
	       rails.rail[rail].prefix == 24;
}

/* The settings are read once by a process: each is a test of its own. */
static const struct {
	const char *setting;
	uint32_t count;
} counts[] = {
	{NULL, 0},   {"auto", 2},      {"1", 0},
	{"2", 1},    {"4", 2},         {"9", 2},
	{"0", 0},    {"-1", 0},        {"99999999999999999999", 2},
	{"eth2", 1}, {"eth0,eth2", 2}, {"eth9", 0},
	{"eth", 0},  {"2eth", 0},
};

START_TEST(settings)
{
	ck_assert_uint_eq(found(counts[_i].setting), counts[_i].count);
	if (counts[_i].count) { /* the endpoint's own is the first */
		ck_assert(is_wire(0, 1));
		ck_assert_uint_eq(rails.rail[0].addr.port, 4711);
	}
}
END_TEST

START_TEST(named)
{
	ck_assert_uint_eq(found("eth2"), 1);
	ck_assert(is_wire(1, 2));
}
END_TEST

/* FI_TCP_IFACE limits those that are found by their speed, not those that are named. */
static const struct {
	const char *only, *setting;
	uint32_t count;
} limits[] = {
	{"eth1", "auto", 0}, {"eth1", "2", 0},           {"eth0,eth1", "auto", 1},
	{"eth1", "eth2", 1}, {"eth2,eth1,eth0", "4", 2},
};

START_TEST(limited)
{
	setenv("FI_TCP_IFACE", limits[_i].only, 1);
	ck_assert_uint_eq(found(limits[_i].setting), limits[_i].count);
}
END_TEST

/* The own address is one of a link, which another interface has, too: that is no rail, but one with a network is. */
START_TEST(of_a_link)
{
	struct addr name = {.kind = ADDR_IN6, .port = 4711, .ip = {0xfe, 0x80, [15] = 7}};
	static const uint8_t other[16] = {0xfd, 0x99, [15] = 1};

	setenv("FI_WEFT_RAILS", "auto", 1);
	name.scope = if_nametoindex("eth1");
	rails_find(&rails, &name);
	ck_assert_uint_eq(rails.count, 2);
	ck_assert_uint_eq(rails.rail[0].addr.scope, name.scope);
	ck_assert_mem_eq(rails.rail[0].addr.ip, name.ip, sizeof(name.ip));
	ck_assert_mem_eq(rails.rail[1].addr.ip, other, sizeof(other));
}
END_TEST

START_TEST(translated)
{
	setenv("FI_WEFT_ADVERTISE", "10.0.0.7", 1);
	ck_assert_uint_eq(found("auto"), 0);
}
END_TEST

START_TEST(loopback)
{
	struct addr name = {.kind = ADDR_IN, .ip = {127, 0, 0, 1}};

	rails_find(&rails, &name);
	ck_assert_uint_eq(rails.count, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conn_rails");
	TCase *tcase = tcase_create("rails");

	if (unshare(CLONE_NEWNET) ||
	    system("exec 2>/dev/null; for i in 0 1 2; do ip link add eth$i type veth peer name far$i && "
		   "ip addr add 10.99.$i.1/24 dev eth$i && ip link set far$i up && ip link set eth$i up "
		   "|| exit 1; done")) {
		printf("no network of our own here\n");
		return 77;
	}
	tcase_add_loop_test(tcase, settings, 0, sizeof(counts) / sizeof(counts[0]));
	tcase_add_test(tcase, named);
	tcase_add_loop_test(tcase, limited, 0, sizeof(limits) / sizeof(limits[0]));
	if (!system("exec 2>/dev/null; ip addr add fe80::7/64 dev eth0 nodad && ip addr add fe80::7/64 dev eth1 "
		    "nodad && ip addr add fd99::1/64 dev eth2 nodad"))
		tcase_add_test(tcase, of_a_link);
	tcase_add_test(tcase, translated);
	tcase_add_test(tcase, loopback);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
