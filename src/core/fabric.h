/* SPDX-License-Identifier: BSD-2-Clause */
/* The fabric object of fi_fabric. fi_fabric(3). */
#ifndef WEFT_CORE_FABRIC_H
#define WEFT_CORE_FABRIC_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include "info/opened.h"

struct fabric {
	struct fid_fabric fid; /* api_version: as passed to fi_getinfo */
	char *name;
	char *prov_name;
	int ref;            /* atomic: open domains, event queues, passive endpoints, wait sets */
	unsigned int forks; /* forked_count of the process that opened it */
	struct opened_fabric opened;
};

static inline struct fabric *fabric_of(struct fid_fabric *fid)
{
	return (struct fabric *)fid;
}

/* Reference counts of all objects: a parent is busy while it has children. */
static inline void ref_get(int *ref)
{
	__atomic_fetch_add(ref, 1, __ATOMIC_RELAXED);
}

static inline void ref_put(int *ref)
{
	__atomic_fetch_sub(ref, 1, __ATOMIC_RELEASE); /* pairs with the acquire in ref_busy */
}

static inline int ref_busy(int *ref)
{
	return __atomic_load_n(ref, __ATOMIC_ACQUIRE) != 0;
}

#endif
