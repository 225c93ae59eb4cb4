/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/opened.h"

#include <string.h>

#include "base/forked.h"

/* FORKED_OPENED guards both lists, not the objects: an application must not close objects in use. */
static struct list fabrics = {&fabrics, &fabrics}; /* struct opened_fabric.link */
static struct list domains = {&domains, &domains}; /* struct opened_domain.link */

static void opened_add(struct list *all, struct list *node)
{
	forked_take(FORKED_OPENED);
	list_push(all, node);
	forked_give(FORKED_OPENED);
}

static void opened_take(struct list *node)
{
	forked_take(FORKED_OPENED);
	list_remove(node);
	forked_give(FORKED_OPENED);
}

void opened_add_fabric(struct opened_fabric *fabric)
{
	opened_add(&fabrics, &fabric->link);
}

void opened_remove_fabric(struct opened_fabric *fabric)
{
	opened_take(&fabric->link);
}

void opened_add_domain(struct opened_domain *dom)
{
	opened_add(&domains, &dom->link);
}

void opened_remove_domain(struct opened_domain *dom)
{
	opened_take(&dom->link);
}

const struct opened_fabric *opened_fabric_of(const struct fid_fabric *hint)
{
	struct opened_fabric *found = NULL;

	forked_take(FORKED_OPENED);
	LIST_EACH (node, &fabrics)
		if (LIST_ENTRY(node, struct opened_fabric, link)->fid == hint)
			found = LIST_ENTRY(node, struct opened_fabric, link);
	forked_give(FORKED_OPENED);
	return found;
}

const struct opened_domain *opened_domain_of(const struct fid_domain *hint)
{
	struct opened_domain *found = NULL;

	forked_take(FORKED_OPENED);
	LIST_EACH (node, &domains)
		if (LIST_ENTRY(node, struct opened_domain, link)->fid == hint)
			found = LIST_ENTRY(node, struct opened_domain, link);
	forked_give(FORKED_OPENED);
	return found;
}

const struct opened_fabric *opened_fabric(const struct provider *v)
{
	struct opened_fabric *found = NULL;

	forked_take(FORKED_OPENED);
	LIST_EACH_OF (struct opened_fabric, fabric, &fabrics, link) {
		if (!found && strcmp(fabric->name, v->fabric) == 0 &&
		    strcmp(fabric->prov_name, v->name) == 0)
			found = fabric;
	}
	forked_give(FORKED_OPENED);
	return found;
}

bool opened_suits(const struct opened_domain *dom, const struct provider *v)
{
	return dom->device == (v->transports == PROVIDER_RC);
}

static bool opened_is_wanted(const struct opened_domain *dom, const struct opened_fabric *fabric,
			     const struct fi_info *entry, const struct provider *v)
{
	const char *name = dom->info->domain_attr->name;
	struct refusal unused;

	return dom->fabric == fabric && dom->forks == forked_count() && name &&
	       strcmp(name, entry->domain_attr->name) == 0 && opened_suits(dom, v) &&
	       opened_gives(dom, entry, &unused);
}

const struct opened_domain *opened_domain(const struct opened_fabric *fabric,
					  const struct fi_info *entry, const struct provider *v)
{
	struct opened_domain *found = NULL;

	forked_take(FORKED_OPENED);
	LIST_EACH_OF (struct opened_domain, dom, &domains, link) {
		if (!found && opened_is_wanted(dom, fabric, entry, v))
			found = dom;
	}
	forked_give(FORKED_OPENED);
	return found;
}
