/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the order of addresses, on invented hosts, and that the kernel's interfaces are read
 * right.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "info/ifaces.h"
#include "suite.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static struct ifaces host;

static void teardown(void)
{
	ifaces_free(&host);
}

static struct iface *add(const char *name, enum iface_kind kind)
{
	struct iface *i = ifaces_add(&host);

	ck_assert_ptr_nonnull(i);
	strcpy(i->name, name);
	i->index = (int)host.count;
	i->kind = (uint8_t)kind;
	i->up = i->running = true;
	return i;
}

/* Adds an address to the interface added last. */
static struct iface_addr *has(const char *text)
{
	struct iface_addr *a = ifaces_add_addr(&host);

	ck_assert_ptr_nonnull(a);
	ck_assert_int_eq(addr_parse(&a->addr, text), 0);
	a->of = (unsigned int)host.count - 1;
	return a;
}

static void add_lo(void)
{
	add("lo", IFACE_LOOPBACK);
	has("fi_sockaddr_in://127.0.0.1:0");
	has("fi_sockaddr_in6://[::1]:0");
}

static const struct addr *at(size_t n)
{
	ck_assert_uint_lt(n, host.addr_count);
	return &host.addr[n].addr;
}

/* Checks the order of addresses, each written as its interface's name and family: "lo4 lo6". */
static void order_is(const char *want)
{
	char got[256] = "";

	ifaces_rank(&host);
	for (size_t n = 0; n < host.addr_count; n++) {
		if (n)
			strcat(got, " ");
		strcat(got, ifaces_of(&host, &host.addr[n])->name);
		strcat(got, at(n)->kind == ADDR_IN ? "4" : "6");
	}
	ck_assert_str_eq(got, want);
}

/* Flags of a veth as the kernel shows them: without a peer, just after the carrier came, and later. */
START_TEST(a_link_that_just_came_up)
{
	ck_assert(!ifaces_running(IFF_BROADCAST | IFF_MULTICAST | IFF_UP));
	ck_assert(ifaces_running(0x11003));
	ck_assert(ifaces_running(0x11043));
	ck_assert(!ifaces_running(0x31003)); /* waits for its authentication */
	ck_assert(ifaces_running(IFF_UP | IFF_RUNNING));
}
END_TEST

START_TEST(hardware_comes_first)
{
	add_lo();
	add("docker0", IFACE_BRIDGE);
	has("fi_sockaddr_in://172.17.0.1:0");
	add("tailscale0", IFACE_VIRTUAL);
	has("fi_sockaddr_in://100.64.0.7:0");
	add("eth0", IFACE_NIC)->up = false;
	has("fi_sockaddr_in://10.0.0.1:0");
	add("veth0", IFACE_VETH);
	has("fi_sockaddr_in://172.18.0.1:0");
	add("eth1", IFACE_NIC);
	has("fi_sockaddr_in6://[2001:db8::5]:0");
	has("fi_sockaddr_in://10.1.0.1:0");
	order_is("eth14 eth16 veth04 docker04 tailscale04 lo4 lo6 eth04");
}
END_TEST

START_TEST(loopback_alone)
{
	add("eth0", IFACE_NIC)->running = false;
	has("fi_sockaddr_in://10.0.0.1:0");
	add_lo();
	order_is("lo4 lo6 eth04");
}
END_TEST

START_TEST(speed_then_route)
{
	add("mgmt", IFACE_NIC)->speed = 1000000000;
	host.iface[0].far = true;
	has("fi_sockaddr_in://10.0.0.1:0");
	add("data", IFACE_NIC)->speed = 100000000000;
	has("fi_sockaddr_in://10.1.0.1:0");
	add("slow", IFACE_NIC);
	has("fi_sockaddr_in://10.2.0.1:0");
	add("home", IFACE_NIC)->far = true;
	has("fi_sockaddr_in://10.3.0.1:0");
	order_is("data4 mgmt4 home4 slow4");
}
END_TEST

/* Equal addresses keep the order of interface indexes. */
START_TEST(equals_keep_their_order)
{
	add("b", IFACE_NIC)->index = 7;
	has("fi_sockaddr_in://10.0.0.9:0");
	has("fi_sockaddr_in://10.0.0.1:0");
	add("a", IFACE_NIC)->index = 3;
	has("fi_sockaddr_in://10.9.0.1:0");
	order_is("a4 b4 b4");
	ck_assert_uint_eq(at(1)->ip[3], 9);
	ck_assert_uint_eq(at(2)->ip[3], 1);
}
END_TEST

/* Writes a line to a file below a folder of the test, which stands for sysfs. */
static void tell(const char *folder, const char *name, const char *line)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "mkdir -p %s/$(dirname %s)", folder, name);
	ck_assert_int_eq(system(path), 0);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file, "%s\n", line);
	fclose(file);
}

#define NODE_OF(name) "class/net/" name "/device/numa_node"

/*
 * On a host of two nodes the process may run on one processor of the second. Interfaces there, or anywhere, come before equally
 * fast ones on the first; faster ones stay before all.
 */
START_TEST(near_then_route)
{
	char folder[] = "/tmp/weft_sys.XXXXXX", command[64];
	cpu_set_t before, one;
	int cpu = 0;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	snprintf(command, sizeof(command), "1021-1022,%d,1023", cpu);
	tell(folder, "devices/system/node/node1/cpulist", command);
	tell(folder, "devices/system/node/node0/cpulist", "1000-1020");
	add("away", IFACE_NIC)->far = true;
	has("fi_sockaddr_in://10.0.0.1:0");
	tell(folder, NODE_OF("away"), "0");
	add("near", IFACE_NIC);
	has("fi_sockaddr_in://10.1.0.1:0");
	tell(folder, NODE_OF("near"), "1");
	add("none", IFACE_NIC);
	has("fi_sockaddr_in://10.2.0.1:0");
	tell(folder, NODE_OF("none"), "-1");
	add("bond", IFACE_NIC);
	has("fi_sockaddr_in://10.3.0.1:0");
	add("odd", IFACE_NIC);
	has("fi_sockaddr_in://10.4.0.1:0");
	tell(folder, NODE_OF("odd"), "7"); /* of which nothing is known */
	add("fast", IFACE_NIC)->speed = 100000000000;
	has("fi_sockaddr_in://10.5.0.1:0");
	tell(folder, NODE_OF("fast"), "0");
	order_is("fast4 away4 near4 none4 bond4 odd4");
	ifaces_near_first(&host, folder);
	order_is("fast4 near4 none4 bond4 odd4 away4");
	ck_assert_int_eq(sched_setaffinity(0, sizeof(before), &before), 0);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

/* If not 0: a kernel that knows so many processors, and lets the thread run on the last one alone. */
static size_t processors;

/* Stands for that of libc. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	long len;

	memset(set, 0, size);
	if (!processors) {
		len = syscall(SYS_sched_getaffinity, pid, size, set);
		return len < 0 ? -1 : 0;
	}
	if (size * 8 < processors) {
		errno = EINVAL;
		return -1;
	}
	CPU_SET_S(processors - 1, size, set);
	return 0;
}

/* More processors than the set of usual size holds. */
START_TEST(near_of_many)
{
	char folder[] = "/tmp/weft_sys.XXXXXX", command[64];

	processors = 5000;
	ck_assert_ptr_nonnull(mkdtemp(folder));
	tell(folder, "devices/system/node/node0/cpulist", "0-2499,5000-9999999999");
	tell(folder, "devices/system/node/node1/cpulist", "2500-4999");
	add("away", IFACE_NIC);
	has("fi_sockaddr_in://10.0.0.1:0");
	tell(folder, NODE_OF("away"), "0");
	add("near", IFACE_NIC);
	has("fi_sockaddr_in://10.1.0.1:0");
	tell(folder, NODE_OF("near"), "1");
	order_is("away4 near4");
	ifaces_near_first(&host, folder);
	order_is("near4 away4");
	processors = 0;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

/* A link-local address comes last even on the fastest interface: it is useless to other hosts. */
START_TEST(link_local_comes_last)
{
	add("eth0", IFACE_NIC)->speed = 100000000000;
	has("fi_sockaddr_in6://[fe80::1%1]:0");
	has("fi_sockaddr_in://169.254.3.4:0");
	add("docker0", IFACE_BRIDGE);
	has("fi_sockaddr_in://172.17.0.1:0");
	add_lo();
	order_is("docker04 lo4 lo6 eth04 eth06");
}
END_TEST

START_TEST(pending_addresses_wait)
{
	add("eth0", IFACE_NIC);
	has("fi_sockaddr_in6://[2001:db8::1]:0")->unsettled = true;
	has("fi_sockaddr_in6://[2001:db8::2]:0");
	order_is("eth06 eth06");
	ck_assert_uint_eq(at(0)->ip[15], 2);
	ck_assert(ifaces_usable(&host, &host.addr[0]));
	ck_assert(!ifaces_usable(&host, &host.addr[1]));
}
END_TEST

/* br0 has the hardware eth0 as a port, docker0 only a container. */
START_TEST(bridges_on_hardware_are_hardware)
{
	int br0;

	add("docker0", IFACE_BRIDGE);
	has("fi_sockaddr_in://172.17.0.1:0");
	br0 = add("br0", IFACE_BRIDGE)->index;
	has("fi_sockaddr_in://10.0.0.1:0");
	add("veth1", IFACE_VETH)->master = 1;
	has("fi_sockaddr_in://172.18.0.1:0");
	add("eth0", IFACE_NIC)->master = br0;
	order_is("br04 veth14 docker04");
}
END_TEST

/* Returns the number of addresses of `family` on the interface `name` (NULL: any). */
static size_t count_of(int family, const char *name)
{
	size_t place = 0, n = 0;

	while (ifaces_next(&host, family, name, &place))
		n++;
	return n;
}

START_TEST(only_what_fits_is_given)
{
	add_lo();
	add("eth0", IFACE_NIC);
	has("fi_sockaddr_in://10.0.0.1:0");
	has("fi_sockaddr_in6://[2001:db8::1]:0");
	add("eth1", IFACE_NIC)->up = false;
	has("fi_sockaddr_in://10.1.0.1:0");
	add("eth2", IFACE_NIC)->running = false;
	has("fi_sockaddr_in://10.2.0.1:0");
	ifaces_rank(&host);
	ck_assert_uint_eq(count_of(AF_UNSPEC, NULL), 4);
	ck_assert_uint_eq(count_of(AF_INET, NULL), 2);
	ck_assert_uint_eq(count_of(AF_INET6, "eth0"), 1);
	ck_assert_uint_eq(count_of(AF_UNSPEC, "eth1"), 0);
	ck_assert_uint_eq(count_of(AF_UNSPEC, "eth2"), 1);
	ck_assert_uint_eq(count_of(AF_UNSPEC, "eth"), 0);
}
END_TEST

static const char *holder(const char *text, const char *name)
{
	const struct iface *i;
	struct addr a;

	ck_assert_int_eq(addr_parse(&a, text), 0);
	i = ifaces_holding(&host, &a, name);
	return i ? i->name : "none";
}

START_TEST(addresses_have_their_interface)
{
	add("eth0", IFACE_NIC);
	has("fi_sockaddr_in://10.0.0.1:0");
	has("fi_sockaddr_in6://[fe80::1%1]:0");
	add("eth1", IFACE_NIC);
	has("fi_sockaddr_in://10.0.0.1:0");
	has("fi_sockaddr_in6://[fe80::1%2]:0");
	add_lo();
	ifaces_rank(&host);
	ck_assert_str_eq(holder("fi_sockaddr_in://10.0.0.1:5", NULL), "eth0");
	ck_assert_str_eq(holder("fi_sockaddr_in://10.0.0.1:5", "eth1"), "eth1");
	ck_assert_str_eq(holder("fi_sockaddr_in6://[fe80::1%2]:0", NULL), "eth1");
	ck_assert_str_eq(holder("fi_sockaddr_in6://[fe80::1]:0", "eth1"), "eth1");
	ck_assert_str_eq(holder("fi_sockaddr_in://127.3.2.1:0", NULL), "lo");
	ck_assert_str_eq(holder("fi_sockaddr_in://10.0.0.2:0", NULL), "none");
}
END_TEST

START_TEST(link_local_goes_by_its_scope)
{
	struct addr to, from;

	add("eth0", IFACE_NIC);
	has("fi_sockaddr_in6://[fe80::1%1]:0");
	add("eth1", IFACE_NIC);
	has("fi_sockaddr_in6://[fe80::2%2]:0");
	ifaces_rank(&host);
	ck_assert_int_eq(addr_parse(&to, "fi_sockaddr_in6://[fe80::9%2]:5"), 0);
	ck_assert(ifaces_route(&host, &to, &from));
	ck_assert_uint_eq(from.ip[15], 2);
	to.scope = 3;
	ck_assert(!ifaces_route(&host, &to, &from));
	to.scope = 0;
	ck_assert(!ifaces_route(&host, &to, &from));
}
END_TEST

/* ---- This host ---- */

/* Compares with getifaddrs, which asks the kernel by itself. */
START_TEST(same_as_getifaddrs)
{
	struct ifaddrs *list;
	size_t count = 0;
	struct addr a;

	ck_assert_int_eq(ifaces_read(&host), 0);
	ck_assert_int_eq(getifaddrs(&list), 0);
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		const struct iface *found;

		if (!i->ifa_addr || addr_from_user(&a, FI_SOCKADDR, i->ifa_addr, 0))
			continue;
		count++;
		found = ifaces_holding(&host, &a, i->ifa_name);
		ck_assert_ptr_nonnull(found);
		ck_assert_str_eq(found->name, i->ifa_name);
		ck_assert_int_eq(found->index, (int)if_nametoindex(i->ifa_name));
		ck_assert_int_eq(found->up, !!(i->ifa_flags & IFF_UP));
		ck_assert_int_eq(found->running, !!(i->ifa_flags & IFF_RUNNING));
		ck_assert_int_eq(found->kind == IFACE_LOOPBACK, !!(i->ifa_flags & IFF_LOOPBACK));
		ck_assert_uint_ge(found->mtu, 576);
	}
	ck_assert_uint_eq(host.addr_count, count);
	freeifaddrs(list);
}
END_TEST

START_TEST(default_is_the_first)
{
	const int families[] = {AF_INET, AF_INET6, AF_UNSPEC};
	struct addr a;

	ck_assert_int_eq(ifaces_read(&host), 0);
	for (int n = 0; n < COUNT(families); n++) {
		const struct iface_addr *best;
		size_t place = 0;

		ck_assert_int_eq(ifaces_default(families[n], &a), 0);
		best = ifaces_next(&host, families[n], NULL, &place);
		if (best)
			ck_assert(addr_equal(&a, &best->addr));
		else
			ck_assert_uint_eq(a.ip[a.kind == ADDR_IN ? 3 : 15], 1);
		ck_assert_uint_eq(a.port, 0);
	}
}
END_TEST

/* The environment is read once, so each case needs a process of its own. */
START_TEST(the_user_chooses)
{
	struct addr a;

	setenv("FI_TCP_IFACE", "lo", 1);
	ck_assert_int_eq(ifaces_read(&host), 0);
	if (ifaces_at(&host, (int)if_nametoindex("lo"))->up) {
		ck_assert_int_eq(ifaces_default(AF_INET, &a), 0);
		ck_assert_uint_eq(a.ip[0], IN_LOOPBACKNET);
	}
}
END_TEST

START_TEST(names_in_a_list)
{
	ck_assert(ifaces_named("eth0", "eth0"));
	ck_assert(ifaces_named("eth10,eth1,eth0", "eth1"));
	ck_assert(ifaces_named("eth10,eth1,eth0", "eth0"));
	ck_assert(!ifaces_named("eth10,eth1", "eth"));
	ck_assert(!ifaces_named("eth10", "eth1"));
	ck_assert(!ifaces_named("", "eth1"));
	ck_assert(!ifaces_named(NULL, "eth1"));
}
END_TEST

/* The first that is up counts, in the order of rank. */
START_TEST(the_user_chooses_some)
{
	struct addr a;

	setenv("FI_TCP_IFACE", "nosuch0,lo", 1);
	ck_assert_int_eq(ifaces_read(&host), 0);
	if (ifaces_at(&host, (int)if_nametoindex("lo"))->up) {
		ck_assert_int_eq(ifaces_default(AF_INET, &a), 0);
		ck_assert_uint_eq(a.ip[0], IN_LOOPBACKNET);
	}
}
END_TEST

START_TEST(the_user_is_wrong)
{
	struct addr a;

	setenv("FI_TCP_IFACE", "nosuch0", 1);
	ck_assert_int_eq(ifaces_default(AF_UNSPEC, &a), -FI_EADDRNOTAVAIL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("info_ifaces");
	TCase *rank = tcase_create("rank"), *ours = tcase_create("ours");

	unsetenv("FI_TCP_IFACE");
	tcase_add_checked_fixture(rank, NULL, teardown);
	tcase_add_test(rank, a_link_that_just_came_up);
	tcase_add_test(rank, hardware_comes_first);
	tcase_add_test(rank, loopback_alone);
	tcase_add_test(rank, speed_then_route);
	tcase_add_test(rank, near_then_route);
	tcase_add_test(rank, near_of_many);
	tcase_add_test(rank, equals_keep_their_order);
	tcase_add_test(rank, link_local_comes_last);
	tcase_add_test(rank, pending_addresses_wait);
	tcase_add_test(rank, bridges_on_hardware_are_hardware);
	tcase_add_test(rank, only_what_fits_is_given);
	tcase_add_test(rank, addresses_have_their_interface);
	tcase_add_test(rank, link_local_goes_by_its_scope);
	tcase_add_checked_fixture(ours, NULL, teardown);
	tcase_add_test(ours, same_as_getifaddrs);
	tcase_add_test(ours, default_is_the_first);
	tcase_add_test(ours, the_user_chooses);
	tcase_add_test(ours, names_in_a_list);
	tcase_add_test(ours, the_user_chooses_some);
	tcase_add_test(ours, the_user_is_wrong);
	suite_add_tcase(suite, rank);
	suite_add_tcase(suite, ours);
	return suite_run(suite);
}
