/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which bus a network interface's description names, on invented hosts and on this one. */
#include <limits.h>
#include <net/if.h>
#include <rdma/fabric.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "info/ifaces.h"
#include "suite.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static char sys[PATH_MAX];

static void setup(void)
{
	char path[PATH_MAX + 32];

	strcpy(sys, "/tmp/info_nic.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(sys));
	snprintf(path, sizeof(path), "%s/class", sys);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	strcat(path, "/net");
	ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void teardown(void)
{
	static const char *const parts[] = {"/class/net/eth0", "/class/net", "/class", ""};
	char path[PATH_MAX + 32];

	for (int i = 0; i < COUNT(parts); i++) {
		snprintf(path, sizeof(path), "%s%s", sys, parts[i]);
		remove(path);
	}
}

static const struct {
	const char *device; /* where the link of eth0 leads; NULL: there is none */
	enum fi_bus_type type;
	struct fi_pci_attr pci;
} hosts[] = {
	{"../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0", FI_BUS_PCI, {0, 0, 3, 0}},
	{"../../devices/pci0000:00/0000:00:1c.0/0000:3b:00.1/net/eth0",
	 FI_BUS_PCI,
	 {0, 0x3b, 0, 1}},
	{"../../devices/pci0001:ae/0001:ae:10.7/0001:af:1f.7/net/eth0",
	 FI_BUS_PCI,
	 {1, 0xaf, 0x1f, 7}},
	{"../../devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/net/eth0",
	 FI_BUS_PCI,
	 {0, 0, 0x14, 0}},
	{"../../devices/pci10000:e0/10000:e0:01.0/net/eth0", FI_BUS_UNKNOWN, {0}},
	{"../../devices/virtual/net/eth0", FI_BUS_UNKNOWN, {0}},
	{"../../devices/platform/soc/fe300000.ethernet/net/eth0", FI_BUS_UNKNOWN, {0}},
	{"eth0", FI_BUS_UNKNOWN, {0}},
	{NULL, FI_BUS_UNKNOWN, {0}},
};

START_TEST(invented)
{
	char path[PATH_MAX + 32];
	struct fi_bus_attr bus;

	snprintf(path, sizeof(path), "%s/class/net/eth0", sys);
	if (hosts[_i].device)
		ck_assert_int_eq(symlink(hosts[_i].device, path), 0);
	bus = nic_bus(sys, "eth0");
	ck_assert_int_eq(bus.bus_type, hosts[_i].type);
	ck_assert_uint_eq(bus.attr.pci.domain_id, hosts[_i].pci.domain_id);
	ck_assert_uint_eq(bus.attr.pci.bus_id, hosts[_i].pci.bus_id);
	ck_assert_uint_eq(bus.attr.pci.device_id, hosts[_i].pci.device_id);
	ck_assert_uint_eq(bus.attr.pci.function_id, hosts[_i].pci.function_id);
}
END_TEST

/* What an entry says of an interface is what the kernel says, and so does its copy. */
START_TEST(own_host)
{
	struct fi_info *list, *copy;

	ck_assert_int_eq(fi_getinfo(FI_VERSION(2, 6), NULL, NULL, 0, NULL, &list), 0);
	for (struct fi_info *i = list; i; i = i->next) {
		struct fi_bus_attr bus;

		if (!i->nic)
			continue;
		bus = nic_bus("/sys", i->nic->device_attr->name);
		ck_assert_int_eq(i->nic->bus_attr->bus_type, bus.bus_type);
		copy = fi_dupinfo(i);
		ck_assert_ptr_nonnull(copy);
		ck_assert_mem_eq(copy->nic->bus_attr, i->nic->bus_attr, sizeof(bus));
		fi_freeinfo(copy);
	}
	fi_freeinfo(list);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("info_nic");
	TCase *tc = tcase_create("nic");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, invented, 0, COUNT(hosts));
	tcase_add_test(tc, own_host);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
