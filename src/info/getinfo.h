/* SPDX-License-Identifier: BSD-2-Clause */
/* The query behind fi_getinfo of every symbol version. */
#ifndef WEFT_INFO_GETINFO_H
#define WEFT_INFO_GETINFO_H

#include <rdma/fabric.h>

/*
 * fi_getinfo(3), for hints whose structures have the present size. The caller has refused versions
 * that it does not serve, and info == NULL.
 */
int getinfo_query(uint32_t version, const char *node, const char *service, uint64_t flags,
		  const struct fi_info *hints, struct fi_info **info);

#endif
