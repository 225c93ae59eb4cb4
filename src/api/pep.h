/* SPDX-License-Identifier: BSD-2-Clause */
/* Passive endpoints reserve an address and listen. fi_endpoint(3), fi_cm(3). */
#ifndef WEFT_API_PEP_H
#define WEFT_API_PEP_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#include "api/cm.h"
#include "base/addr.h"
#include "base/lock.h"
#include "core/eq.h"
#include "core/fabric.h"

struct pep {
	struct fid_pep fid;
	struct eq_driver driver; /* accepts connection requests when the event queue is read */
	struct fabric *fabric;
	struct fi_info *info;        /* our copy of what pep_open was given */
	struct lock lock;            /* guards the fields below */
	struct eq *eq;               /* NULL until bound */
	struct addr name;            /* ADDR_NONE until set, or chosen by cm_open */
	struct cm_listener listener; /* bound to `name` when first needed */
	bool bound;
	bool listening; /* the driver is in the event queue */
	bool spent;     /* an active endpoint took over the name */
	int backlog;
	unsigned int forks; /* forked_count of the process that opened it */
};

static inline struct pep *pep_of(struct fid_pep *fid)
{
	return (struct pep *)fid;
}

/* fi_ops_fabric.passive_ep. Uses addr_format, src_addr and the endpoint type of `info`. */
int pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context);
/*
 * Passes the passive endpoint's address to an active endpoint, as src_addr of `info`; the passive
 * one is unusable from then on. 0 or a negative error.
 */
int pep_give_name(struct fid_pep *fid, struct fi_info *info);

#endif
