/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Determines the addresses of an entry: from node and service, from hints, or from this host's
 * interfaces. fi_getinfo(3), and fi_shm(7) for names within a host.
 */
#ifndef WEFT_INFO_RESOLVE_H
#define WEFT_INFO_RESOLVE_H

#include <rdma/fabric.h>

#include "info/hints.h"
#include "info/ifaces.h"
#include "info/providers.h"

struct ip_ends;

/* The arguments of fi_getinfo, and results shared by all providers. */
struct query {
	uint32_t version;
	const char *node, *service;
	uint64_t flags;
	const struct fi_info *hints;
	struct ip_ends *ends;
};

/*
 * Fills in addr_format, src_addr, dest_addr, nic and the domain name of `info`. Links entries for
 * further addresses of this host behind it. Returns 0, -FI_ENOMEM, or -FI_ENODATA with a reason.
 * `info` owns what was filled in, also on failure.
 */
int resolve(const struct provider *v, const struct query *q, struct fi_info *info,
	    struct refusal *why);

/* ---- IP addresses of both ends, and the interface of a source address: resolve_ip.c ---- */

/*
 * IP addresses of one fi_getinfo call, as given and as resolved. Determined for the first provider
 * that needs them, then shared by all. Zero at first.
 */
struct ip_ends {
	bool known;  /* the other members are valid; `err` is the result */
	bool logged; /* the chosen source was logged */
	int err;
	struct refusal why;
	bool all;         /* the source is all interfaces: a wildcard, or a port without a node */
	bool strings;     /* the hints' addresses are strings */
	int family;       /* AF_UNSPEC: undetermined */
	struct addr src;  /* ADDR_NONE: not given; a port may be given all the same */
	struct addr dest; /* ADDR_NONE: not given */
	/* Source the kernel would use to reach dest; ADDR_NONE: unknown */
	struct addr from;
	struct ifaces net;
};

/* A source address and its interface in ends->net; NULL: not an address of this host. */
struct ip_source {
	struct addr addr;
	const struct iface *iface;
};

/*
 * Resolves everything, if needed with a name server; IPv4 comes before IPv6. Returns 0, -FI_ENOMEM,
 * or -FI_ENODATA with a reason.
 */
int resolve_ip_ends(struct ip_ends *ends, const struct query *q, struct refusal *why);
void resolve_ip_forget(struct ip_ends *ends);

/*
 * Chooses the source of an entry: the given one; if its host is open, the address that the kernel
 * would use to reach the destination; else this host's best address. `asked` is the required
 * interface or NULL (then FI_TCP_IFACE may name some). Returns false with a reason.
 */
bool resolve_ip_source(struct ip_ends *ends, const char *asked, struct ip_source *source,
		       struct refusal *why);
/*
 * For endpoints that listen on all interfaces if the application gives none: makes the chosen source
 * the wildcard address, of no interface. False: it is to be one interface's.
 */
bool resolve_ip_all(const struct ip_ends *ends, const char *asked, struct ip_source *source);
/* Does an addr_format of hints permit IP addresses? */
bool resolve_ip_format(uint32_t format);
/* Was the host of the source not given? */
bool resolve_ip_is_open(const struct ip_ends *ends);

/*
 * Finds another source address like `first`, of interface `asked` unless NULL, from index *at on;
 * *at starts at 0. Returns false if there are no more.
 */
bool resolve_ip_other(const struct ip_ends *ends, const char *asked, const struct ip_source *first,
		      size_t *at, struct ip_source *other);

/* For rows that stay inside: given addresses must be this host's, no interface may be asked for. */
bool resolve_ip_inside(const struct query *q, const char *domain, struct refusal *why);

#endif
