/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabrics and domains that are open in this process, oldest first: the entries of fi_getinfo name them. An
 * object embeds what is said of it here.
 */
#ifndef WEFT_INFO_OPENED_H
#define WEFT_INFO_OPENED_H

#include <rdma/fi_domain.h>
#include <stdbool.h>

#include "base/list.h"
#include "info/providers.h"

/* The strings are the object's. */
struct opened_fabric {
	struct list link;
	struct fid_fabric *fid;
	const char *name, *prov_name;
};

struct opened_domain {
	struct list link;
	struct fid_domain *fid;
	const struct opened_fabric *fabric;
	const char *name;   /* of the domain its entry was for, or NULL */
	bool device;        /* its endpoints are queue pairs of a device */
	unsigned int forks; /* forked_count of the process that opened it */
};

void opened_add_fabric(struct opened_fabric *fabric);
void opened_remove_fabric(struct opened_fabric *fabric);
void opened_add_domain(struct opened_domain *dom);
void opened_remove_domain(struct opened_domain *dom);

/*
 * What a hint means, or NULL where it names nothing that is open: the application may give back an entry whose
 * objects it has closed.
 */
const struct opened_fabric *opened_fabric_of(const struct fid_fabric *hint);
const struct opened_domain *opened_domain_of(const struct fid_domain *hint);

/* The first one that is of the row, or NULL. Valid until the application closes it. */
const struct opened_fabric *opened_fabric(const struct provider *v);
/* The first one on `fabric` with that name whose endpoints may be of the row, or NULL. */
const struct opened_domain *opened_domain(const struct opened_fabric *fabric, const char *name,
					  const struct provider *v);

/* Endpoints of the row can be opened on it: queue pairs of a device belong to domains of their own. */
bool opened_suits(const struct opened_domain *dom, const struct provider *v);

#endif
