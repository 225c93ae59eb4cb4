/* SPDX-License-Identifier: BSD-2-Clause */
#include <net/if_arp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fid.h"
#include "info/ifaces.h"
#include "info/tostr.h"

/* The object and its attributes in one allocation. */
struct nic {
	struct fid_nic fid;
	struct fi_device_attr device;
	struct fi_bus_attr bus;
	struct fi_link_attr link;
};

#define STRINGS 8

/* Lists the pointers to all strings of a description. */
static void nic_strings(struct nic *nic, char **at[STRINGS])
{
	at[0] = &nic->device.name;
	at[1] = &nic->device.device_id;
	at[2] = &nic->device.device_version;
	at[3] = &nic->device.vendor_id;
	at[4] = &nic->device.driver;
	at[5] = &nic->device.firmware;
	at[6] = &nic->link.address;
	at[7] = &nic->link.network_type;
}

static int nic_close(struct fid *fid)
{
	struct nic *nic = (struct nic *)fid;
	char **at[STRINGS];

	nic_strings(nic, at);
	for (int i = 0; i < STRINGS; i++)
		free(*at[i]);
	free(nic);
	return 0;
}

static int nic_dup(struct nic *from, struct fid_nic **copy)
{
	struct fid_nic *to = nic_new();
	char **old[STRINGS], **new[STRINGS];

	if (!to)
		return -FI_ENOMEM;
	*to->bus_attr = from->bus;
	to->link_attr->mtu = from->link.mtu;
	to->link_attr->speed = from->link.speed;
	to->link_attr->state = from->link.state;
	nic_strings(from, old);
	nic_strings((struct nic *)to, new);
	for (int i = 0; i < STRINGS; i++) {
		*new[i] = *old[i] ? strdup(*old[i]) : NULL;
		if (!*new[i] && *old[i]) {
			nic_close(&to->fid);
			return -FI_ENOMEM;
		}
	}
	*copy = to;
	return 0;
}

static int nic_control(struct fid *fid, int command, void *arg)
{
	return command == FI_DUP ? nic_dup((struct nic *)fid, arg) : -FI_ENOSYS;
}

static int nic_tostr(const struct fid *fid, char *buf, size_t len)
{
	struct text t;

	if (!len)
		return -FI_ETOOSMALL;
	text_init(&t, buf, len);
	tostr_nic(&t, (const struct fid_nic *)fid);
	return 0;
}

static struct fi_ops nic_ops = {
	.size = sizeof(struct fi_ops),
	.close = nic_close,
	.bind = fid_no_bind,
	.control = nic_control,
	.ops_open = fid_no_ops_open,
	.tostr = nic_tostr,
	.ops_set = fid_no_ops_set,
};

struct fid_nic *nic_new(void)
{
	struct nic *nic = calloc(1, sizeof(*nic));

	if (!nic)
		return NULL;
	nic->fid.fid.fclass = FI_CLASS_NIC;
	nic->fid.fid.ops = &nic_ops;
	nic->fid.device_attr = &nic->device;
	nic->fid.bus_attr = &nic->bus;
	nic->fid.link_attr = &nic->link;
	return &nic->fid;
}

static const char *network_type(unsigned int arp_type)
{
	switch (arp_type) {
	case ARPHRD_ETHER:
		return "Ethernet";
	case ARPHRD_INFINIBAND:
		return "InfiniBand";
	default:
		return NULL;
	}
}

/* Copies `text` unless it is NULL or "". False: no memory. */
static bool nic_keep(char **member, const char *text)
{
	if (!text || !*text)
		return true;
	*member = strdup(text);
	return *member;
}

/* Reads an address as sysfs writes it, "0000:00:03.0", from a whole name. */
static bool read_pci(const char *name, struct fi_pci_attr *pci)
{
	unsigned int domain, bus, device, function;
	int end = 0;

	if (sscanf(name, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) != 4 ||
	    name[end] || domain > UINT16_MAX)
		return false;
	*pci = (struct fi_pci_attr){(uint16_t)domain, (uint8_t)bus, (uint8_t)device,
				    (uint8_t)function};
	return true;
}

struct fi_bus_attr nic_bus(const char *sys, const char *name)
{
	struct fi_bus_attr bus = {.bus_type = FI_BUS_UNKNOWN};
	char path[PATH_MAX], device[PATH_MAX], *folder;
	ssize_t len;

	/* The link's text is the path of the device, below all those it is behind. */
	snprintf(path, sizeof(path), "%s/class/net/%s", sys, name);
	len = readlink(path, device, sizeof(device) - 1);
	device[len < 0 ? 0 : len] = '\0';
	while (bus.bus_type == FI_BUS_UNKNOWN && (folder = strrchr(device, '/'))) {
		if (read_pci(folder + 1, &bus.attr.pci))
			bus.bus_type = FI_BUS_PCI;
		*folder = '\0';
	}
	return bus;
}

struct fid_nic *nic_of(const struct iface *iface)
{
	struct fid_nic *nic = nic_new();
	struct fi_link_attr *link;

	if (!nic)
		return NULL;
	*nic->bus_attr = nic_bus("/sys", iface->name);
	link = nic->link_attr;
	link->mtu = iface->mtu;
	link->speed = iface->speed;
	link->state = iface->up && iface->running ? FI_LINK_UP : FI_LINK_DOWN;
	if (nic_keep(&nic->device_attr->name, iface->name) &&
	    nic_keep(&link->address, iface->hw_address) &&
	    nic_keep(&link->network_type, network_type(iface->type)))
		return nic;
	nic_close(&nic->fid);
	return NULL;
}
