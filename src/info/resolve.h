/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Determines the addresses of an entry: from node and service, from hints, or from this host's
 * interfaces. fi_getinfo(3), and fi_shm(7) for names within a host.
 */
#ifndef WEFT_INFO_RESOLVE_H
#define WEFT_INFO_RESOLVE_H

#include <rdma/fabric.h>

#include "info/hints.h"
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

#endif
