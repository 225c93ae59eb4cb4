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

struct cm_listener;

struct pep {
	struct fid_pep fid;
	struct eq_driver driver; /* hears requests while somebody reads the event queue */
	struct fabric *fabric;
	struct fi_info *info;         /* what it was opened with, our copy */
	struct lock lock;             /* guards the rest */
	struct eq *eq;                /* NULL until bound */
	struct addr name;             /* ADDR_NONE until one is given */
	struct cm_listener *listener; /* bound to the name, once somebody asked for that */
	bool listening;               /* the queue has the driver */
	bool spent;                   /* an active endpoint took its place */
	int backlog;
	unsigned int forks; /* forked_count of the process that opened it */
};

static inline struct pep *pep_of(struct fid_pep *fid)
{
	return (struct pep *)fid;
}

/* fi_ops_fabric.passive_ep; reads addr_format, src_addr and the endpoint type of `info`. */
int pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context);
/* The passive endpoint's address, for good, as src_addr of `info`. 0 or a negative error. */
int pep_give_name(struct fid_pep *fid, struct fi_info *info);
/* Binds it to its name. Locked. 0 or a negative error. */
int pep_bound(struct pep *pep);
/* Nobody gets in any more. No lock held. */
void pep_quit(struct pep *pep);

#endif
