/* SPDX-License-Identifier: BSD-2-Clause */
/* IP addresses of both ends, and which interface a source belongs to. */
#ifndef WEFT_CORE_RESOLVE_IP_H
#define WEFT_CORE_RESOLVE_IP_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "core/resolve.h"

struct ip {
	socklen_t len; /* 0: not known */
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
};

/*
 * All of them: *family is AF_UNSPEC until something settles it, then all must agree; false with a
 * reason.
 */

/* A socket address of the hints; `hint` names it. */
bool resolve_ip_read(struct ip *ip, const char *hint, const void *addr, size_t len, int *family,
		     struct refusal *why);

/* Node and service, one of which is there; IPv4 comes first. May ask a name server. */
bool resolve_ip_lookup(const struct query *q, int *family, struct ip *ip, struct refusal *why);

/*
 * Completes the source: an address without host, or none at all, becomes the one the system would
 * use towards `dest`, else that of the first interface that is up, loopback coming last. `asked`
 * is the interface it must belong to, or NULL; `iface` the one it belongs to, "" when it is none
 * of this host.
 */
bool resolve_ip_source(struct ip *src, const struct ip *dest, int family, const char *asked,
		       char *iface, struct refusal *why);

#endif
