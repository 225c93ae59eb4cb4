/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses of an entry: from node and service, from hints, or those of this host.
 * fi_getinfo(3), and fi_shm(7) for names within a host.
 */
#ifndef WEFT_CORE_RESOLVE_H
#define WEFT_CORE_RESOLVE_H

#include <rdma/fabric.h>

#include "core/hints.h"
#include "core/views.h"

/* The arguments of fi_getinfo. */
struct query {
	uint32_t version;
	const char *node, *service;
	uint64_t flags;
	const struct fi_info *hints;
};

/*
 * Fills addr_format, src_addr, dest_addr and the name of the domain. 0, -FI_ENOMEM, or -FI_ENODATA
 * with a reason; what is filled belongs to `info` in any case.
 */
int resolve(const struct view *v, const struct query *q, struct fi_info *info, struct refusal *why);

#endif
