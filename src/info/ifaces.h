/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network interfaces of this host as the kernel tells of them: addresses, the best one first,
 * and the way to another host. configure takes ifaces_nl.c where libnl is, else ifaces_plain.c.
 */
#ifndef WEFT_INFO_IFACES_H
#define WEFT_INFO_IFACES_H

#include <net/if.h>
#include <stdbool.h>

#include "base/addr.h"

/* The further down, the better as a way to other hosts. */
enum iface_kind {
	IFACE_LOOPBACK,
	IFACE_VIRTUAL, /* tun, tap, dummy, wireguard, vxlan, ... */
	IFACE_BRIDGE,  /* of containers or virtual machines: none of its ports is an IFACE_NIC */
	IFACE_VETH,    /* a container's own */
	IFACE_NIC,     /* hardware, or what stands on it: vlan, bond, bridge */
};

struct iface {
	char name[IF_NAMESIZE];
	int index;
	int master;          /* index of the bridge or bond it is a port of; 0: of none */
	uint8_t kind;        /* enum iface_kind */
	bool up;             /* switched on */
	bool running;        /* and with a carrier */
	bool far;            /* packets for hosts far away leave here */
	unsigned int type;   /* ARPHRD_ of <net/if_arp.h> */
	size_t mtu;          /* bytes */
	uint64_t speed;      /* bits a second; 0: not known */
	char hw_address[64]; /* as text; "": none */
};

struct iface_addr {
	struct addr addr;   /* port 0; the scope of a link-local one is set */
	uint8_t prefix;     /* bits of the network's part */
	bool unsettled;     /* may not be used yet, or should not any more */
	unsigned int of;    /* its interface: index in struct ifaces.iface */
	unsigned int place; /* as the kernel told them */
};

struct ifaces {
	struct iface *iface;
	size_t count;
	struct iface_addr *addr; /* after ifaces_read and ifaces_rank the best ones come first */
	size_t addr_count;
};

/* Fills *all, which is freed with ifaces_free. Where the kernel does not tell, it is empty. 0 or -FI_ENOMEM. */
int ifaces_read(struct ifaces *all);
void ifaces_free(struct ifaces *all);

/*
 * Puts addresses in order, and sees which bridges stand on hardware. First those other hosts can
 * use: hardware before what is virtual, then by speed, by where the default route goes, and IPv4
 * before IPv6. Then loopback; then addresses good on one link only; last what is not up.
 */
void ifaces_rank(struct ifaces *all);

/* Will an address, of an interface that nobody named, do? */
bool ifaces_usable(const struct ifaces *all, const struct iface_addr *a);

static inline const struct iface *ifaces_of(const struct ifaces *all, const struct iface_addr *a)
{
	return &all->iface[a->of];
}

/*
 * The next address from the one at *at on, which is moved past it: of a family (AF_UNSPEC: any) and
 * of the interface of that name, which is up; without a name, of any that is usable. NULL: no more.
 */
const struct iface_addr *ifaces_next(const struct ifaces *all, int family, const char *name,
				     size_t *at);

/* The interface that has this address, rather the one named if several have; NULL: none has. */
const struct iface *ifaces_holding(const struct ifaces *all, const struct addr *a,
				   const char *name);

/*
 * The address this host would send from to `to`: kind, ip and scope of *from are set. False: there
 * is no route, or it does not tell.
 */
bool ifaces_route(const struct ifaces *all, const struct addr *to, struct addr *from);

/*
 * The address of this host others are best told, of the interface FI_TCP_IFACE names if it does:
 * that of the best interface, loopback's where there is none. Family as above. Port 0.
 * 0, -FI_ENOMEM, or -FI_EADDRNOTAVAIL: no such interface is up with such an address.
 */
int ifaces_default(int family, struct addr *a);

/* ---- Between ifaces.c and the file configure chose ---- */

/* Room for one more, cleared; NULL: no memory. */
struct iface *ifaces_add(struct ifaces *all);
struct iface_addr *ifaces_add_addr(struct ifaces *all);

/* The one of this kernel index, or NULL. */
struct iface *ifaces_at(const struct ifaces *all, int index);

/* Fills everything but speed, far and the order. */
int ifaces_ask(struct ifaces *all);

/* The source address by the kernel's routes, for `to` that is not link-local. */
bool ifaces_ask_route(const struct addr *to, struct addr *from);

#endif
