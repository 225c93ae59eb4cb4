/* SPDX-License-Identifier: BSD-2-Clause */
/* IP addresses of both ends, and which interface a source belongs to. */
#ifndef WEFT_INFO_RESOLVE_IP_H
#define WEFT_INFO_RESOLVE_IP_H

#include <stdbool.h>

#include "info/ifaces.h"
#include "info/resolve.h"

/*
 * What one call of fi_getinfo says of IP addresses and what the system makes of it: found out when
 * the first provider asks, good for all of them. Zero to begin with.
 */
struct ip_ends {
	bool known;  /* the rest has been found out; `err` tells how it went */
	bool logged; /* the log knows which source was chosen */
	int err;
	struct refusal why;
	bool strings;     /* addresses of the hints are strings */
	int family;       /* AF_UNSPEC: nothing settles it */
	struct addr src;  /* ADDR_NONE: not said; its port may be there all the same */
	struct addr dest; /* ADDR_NONE: not said */
	struct addr
		from; /* where the kernel would send to dest from; ADDR_NONE: it does not tell */
	struct ifaces net;
};

/* A source address and the interface it belongs to, of ends->net; NULL: none of this host's. */
struct ip_source {
	struct addr addr;
	const struct iface *iface;
};

/*
 * Finds everything out. A name server may be asked; IPv4 comes before IPv6. 0, -FI_ENOMEM, or
 * -FI_ENODATA with a reason.
 */
int resolve_ip_ends(struct ip_ends *ends, const struct query *q, struct refusal *why);
void resolve_ip_forget(struct ip_ends *ends);

/*
 * The source of an entry: what was said, or where that leaves the host open (or all of it), what
 * the kernel would use towards the destination, else this host's best address. `asked` is the
 * interface it must belong to, or NULL: FI_TCP_IFACE may name one then. False with a reason.
 */
bool resolve_ip_source(struct ip_ends *ends, const char *asked, struct ip_source *source,
		       struct refusal *why);
/* Was its host left open? */
bool resolve_ip_is_open(const struct ip_ends *ends);

/*
 * Another address that would do as well as `first`, of the same interface where that was asked for,
 * from number *at on; *at begins with 0. False: no more.
 */
bool resolve_ip_other(const struct ip_ends *ends, const char *asked, const struct ip_source *first,
		      size_t *at, struct ip_source *other);

/* For a row that stays inside: addresses that are said are of this host, and no interface is. */
bool resolve_ip_inside(const struct query *q, const char *domain, struct refusal *why);

#endif
