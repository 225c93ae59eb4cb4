/* SPDX-License-Identifier: BSD-2-Clause */
/* Passive endpoints: an address reserved, and listened at. fi_endpoint(3), fi_cm(3). */
#ifndef WEFT_CORE_PEP_H
#define WEFT_CORE_PEP_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#include "base/addr.h"
#include "base/lock.h"
#include "core/eq.h"
#include "core/fabric.h"

#define PEP_CM_DATA_MAX 256 /* bytes of user data with a connection request */

struct pep {
	struct fid_pep fid;
	struct fabric *fabric;
	struct lock lock; /* guards the rest */
	struct eq *eq;    /* NULL until bound */
	uint32_t format;  /* of addresses, as in the fi_info */
	struct addr name; /* ADDR_NONE until one is given */
	int backlog;
};

static inline struct pep *pep_of(struct fid_pep *fid)
{
	return (struct pep *)fid;
}

/* fi_ops_fabric.passive_ep; reads addr_format, src_addr and the endpoint type of `info`. */
int pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context);

#endif
