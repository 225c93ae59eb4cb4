/* SPDX-License-Identifier: BSD-2-Clause */
/* The fabrics and domains that are open in this process, oldest first: fi_getinfo tells of them. */
#ifndef WEFT_CORE_OPENED_H
#define WEFT_CORE_OPENED_H

#include "core/domain.h"
#include "core/fabric.h"
#include "core/providers.h"

void opened_add_fabric(struct fabric *fabric);
void opened_remove_fabric(struct fabric *fabric);
void opened_add_domain(struct domain *dom);
void opened_remove_domain(struct domain *dom);

/*
 * What a hint means, or NULL where it names nothing that is open: an entry tells of open objects, and whoever
 * gives it back as hints may have closed them.
 */
struct fabric *opened_fabric_of(const struct fid_fabric *hint);
struct domain *opened_domain_of(const struct fid_domain *hint);

/* The first one that is of the row, or NULL. Valid until the application closes it. */
struct fabric *opened_fabric(const struct provider *v);
/* The first one on `fabric` with that name whose endpoints may be of the row, or NULL. */
struct domain *opened_domain(const struct fabric *fabric, const char *name,
			     const struct provider *v);

/* Endpoints of the row can be opened on it: queue pairs of a device belong to domains of their own. */
bool opened_suits(const struct domain *dom, const struct provider *v);

#endif
