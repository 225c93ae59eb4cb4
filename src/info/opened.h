/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabrics and domains open in this process, oldest first; fi_getinfo names them in its entries.
 * Each object embeds its struct below.
 */
#ifndef WEFT_INFO_OPENED_H
#define WEFT_INFO_OPENED_H

#include <rdma/fi_domain.h>
#include <stdbool.h>

#include "base/list.h"
#include "info/hints.h"
#include "info/providers.h"

/* The object owns the strings. */
struct opened_fabric {
	struct list link;
	struct fid_fabric *fid;
	const char *name, *prov_name;
};

struct opened_domain {
	struct list link;
	struct fid_domain *fid;
	const struct opened_fabric *fabric;
	const struct fi_info *info; /* the entry it was opened with; has a domain_attr */
	bool device;                /* its endpoints are queue pairs of a device */
	unsigned int forks;         /* forked_count of the process that opened it */
};

void opened_add_fabric(struct opened_fabric *fabric);
void opened_add_domain(struct opened_domain *dom);
/* Removes a fabric or a domain, by its `link`. */
void opened_remove(struct list *link);

/*
 * Return the open object that a hint refers to, else NULL: an application may pass an entry whose
 * objects it has closed.
 */
const struct opened_fabric *opened_fabric_of(const struct fid_fabric *hint);
const struct opened_domain *opened_domain_of(const struct fid_domain *hint);

/* Returns the oldest fabric of this row, or NULL. Valid until the application closes it. */
const struct opened_fabric *opened_fabric(const struct provider *v);
/* Returns the oldest domain on `fabric` that endpoints of this entry of the row can be opened on, or NULL. */
const struct opened_domain *opened_domain(const struct opened_fabric *fabric,
					  const struct fi_info *entry, const struct provider *v);

/* Can endpoints of the row be opened on `dom`? Device queue pairs need their own domains. */
bool opened_suits(const struct opened_domain *dom, const struct provider *v);

/*
 * Gives `entry` those attributes of a domain in which it may differ from other domains of its name, where
 * `hints` leave the choice. Returns false, with a reason, if the domain has not what the hints ask for.
 */
bool opened_match(const struct opened_domain *dom, uint32_t api, const struct fi_info *hints,
		  struct fi_info *entry, struct refusal *why);

#endif
