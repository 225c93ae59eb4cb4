/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This host's network interfaces and addresses, from the kernel, best first; routes to other hosts.
 * configure selects ifaces_nl.c if libnl is installed, else ifaces_plain.c.
 */
#ifndef WEFT_INFO_IFACES_H
#define WEFT_INFO_IFACES_H

#include <net/if.h>
#include <rdma/fabric.h>
#include <stdbool.h>

#include "base/addr.h"

/* In ascending order of preference for reaching other hosts. */
enum iface_kind {
	IFACE_LOOPBACK,
	IFACE_VIRTUAL, /* tun, tap, dummy, wireguard, vxlan, ... */
	IFACE_BRIDGE,  /* of containers or virtual machines: no port is an IFACE_NIC */
	IFACE_VETH,    /* inside a container */
	IFACE_NIC,     /* hardware, or a vlan, bond or bridge on top of hardware */
};

struct iface {
	char name[IF_NAMESIZE];
	int index;
	int master;          /* index of the bridge or bond that has it as a port; 0: none */
	uint8_t kind;        /* enum iface_kind */
	bool up;             /* enabled */
	bool running;        /* enabled and with a carrier */
	bool far;            /* the default route leads here */
	bool away;           /* on a NUMA node without a processor of ours: ifaces_near_first */
	unsigned int type;   /* ARPHRD_ of <net/if_arp.h> */
	size_t mtu;          /* bytes */
	uint64_t speed;      /* bits per second; 0: unknown */
	char hw_address[64]; /* as text; "" if there is none */
};

struct iface_addr {
	struct addr addr;   /* port 0; with the scope if link-local */
	uint8_t prefix;     /* length (bits) of the network prefix */
	bool unsettled;     /* tentative or deprecated: not to be used */
	unsigned int of;    /* index into struct ifaces.iface */
	unsigned int place; /* position in the kernel's list */
};

struct ifaces {
	struct iface *iface;
	size_t count;
	struct iface_addr *addr; /* best first, after ifaces_read and ifaces_rank */
	size_t addr_count;
};

/* Fills *all, to be freed with ifaces_free; empty if the kernel tells nothing. 0 or -FI_ENOMEM. */
int ifaces_read(struct ifaces *all);
void ifaces_free(struct ifaces *all);

/*
 * Sorts addresses, and finds bridges on hardware. First come addresses that other hosts can reach:
 * hardware before virtual interfaces, then by speed, default route, IPv4 before IPv6. Then come
 * loopback, addresses valid on one link only, and last addresses that are not usable.
 */
void ifaces_rank(struct ifaces *all);

/*
 * Sorts addresses anew: of interfaces alike in kind and speed, those come first whose device is on a NUMA node with a
 * processor that this thread may run on, or for which the kernel names no node. `sys`: where sysfs is.
 */
void ifaces_near_first(struct ifaces *all, const char *sys);

/* Has an interface with these IFF_ flags of the kernel a carrier? True as soon as it has come up. */
bool ifaces_running(unsigned int flags);

/* May the address be chosen by default? Its interface has a carrier, and it is not `unsettled`. */
bool ifaces_usable(const struct ifaces *all, const struct iface_addr *a);

static inline const struct iface *ifaces_of(const struct ifaces *all, const struct iface_addr *a)
{
	return &all->iface[a->of];
}

/* Is the interface `name` in a comma list of names? NULL is an empty list. */
bool ifaces_named(const char *list, const char *name);
/*
 * Returns the next address from index *at on and advances *at. `family`: AF_UNSPEC is any. `name`:
 * the address's interface, or a comma list of some, which must be up; NULL: any usable address. Returns NULL at the end.
 */
const struct iface_addr *ifaces_next(const struct ifaces *all, int family, const char *name,
				     size_t *at);

/* Returns the interface with this address, preferably the one called `name`; NULL: none. */
const struct iface *ifaces_holding(const struct ifaces *all, const struct addr *a,
				   const char *name);

/*
 * Sets kind, ip and scope of *from to the source address for packets to `to`. Returns false if
 * there is no route or it implies no source.
 */
bool ifaces_route(const struct ifaces *all, const struct addr *to, struct addr *from);

/*
 * Sets *a to the address to announce to other hosts: the best one, of the interfaces in FI_TCP_IFACE if
 * that is set; loopback if there is no other. `family` as above, port 0. Returns 0, -FI_ENOMEM, or
 * -FI_EADDRNOTAVAIL: no such interface is up with such an address.
 */
int ifaces_default(int family, struct addr *a);

/* ---- The description of a network card in fi_info, fi_getinfo(3): nic.c ---- */

/*
 * Returns a description with all attributes, empty; or NULL. Its strings must be from malloc:
 * closing frees them, but not prov_attr. Supports FI_DUP.
 */
struct fid_nic *nic_new(void);

/* Returns a network interface's description: its name, bus and link; NULL: no memory. */
struct fid_nic *nic_of(const struct iface *iface);

/*
 * Returns the bus of a network interface. It may be that of a device further up, as of a virtio device, which is
 * behind a PCI device. FI_BUS_UNKNOWN: it is on none, or the kernel does not tell. `sys`: where sysfs is.
 */
struct fi_bus_attr nic_bus(const char *sys, const char *name);

/* ---- Between ifaces.c and the file configure chose ------------------------------------------- */

/* Append an entry, zeroed; NULL: no memory. */
struct iface *ifaces_add(struct ifaces *all);
struct iface_addr *ifaces_add_addr(struct ifaces *all);

/* Returns the interface of this kernel index, or NULL. */
struct iface *ifaces_at(const struct ifaces *all, int index);

/* Fills in everything except speed, far and the order. */
int ifaces_ask(struct ifaces *all);

/* Asks the kernel's routes for the source address; `to` is not link-local. */
bool ifaces_ask_route(const struct addr *to, struct addr *from);

#endif
