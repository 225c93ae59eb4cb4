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

void opened_remove(struct list *node)
{
	forked_take(FORKED_OPENED);
	list_remove(node);
	forked_give(FORKED_OPENED);
}

void opened_add_fabric(struct opened_fabric *fabric)
{
	opened_add(&fabrics, &fabric->link);
}

void opened_add_domain(struct opened_domain *dom)
{
	opened_add(&domains, &dom->link);
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

static bool has_vector_keys(const struct fi_domain_attr *attr)
{
	return attr->auth_key_size == FI_AV_AUTH_KEY;
}

/* One thread drives a domain, for both kinds of progress. */
static bool drives_itself(const struct fi_domain_attr *attr)
{
	return attr->data_progress == FI_PROGRESS_AUTO ||
	       attr->control_progress == FI_PROGRESS_AUTO;
}

/* Does the domain have what the entry says? Returns false with a reason. */
static bool opened_gives(const struct opened_domain *dom, const struct fi_info *entry,
			 struct refusal *why)
{
	const struct fi_domain_attr *has = dom->info->domain_attr, *attr = entry->domain_attr;

	if (drives_itself(attr) && !drives_itself(has))
		return hints_refuse(why,
				    "domain_attr->domain: was opened without FI_PROGRESS_AUTO");
	/* A device's regions are alike, however they were asked for. */
	if (!dom->device && hints_mr_bits(attr->mr_mode) != hints_mr_bits(has->mr_mode))
		return hints_refuse_value(why, "domain_attr->domain: mr_mode", FI_TYPE_MR_MODE,
					  (uint64_t)attr->mr_mode, (uint64_t)has->mr_mode);
	if (has_vector_keys(attr) != has_vector_keys(has))
		return hints_refuse(why, "domain_attr->domain: was opened %s FI_AV_AUTH_KEY",
				    has_vector_keys(has) ? "with" : "without");
	return true;
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

/* ---- What a domain was opened with is what its endpoints have, whatever later hints ask for ---- */

static void adopt_mr_mode(int has, uint32_t api, int asked, struct fi_domain_attr *entry)
{
	if (asked == FI_MR_BASIC || asked == FI_MR_SCALABLE)
		return;
	if (FI_VERSION_LT(api, FI_VERSION(1, 5)) && asked == FI_MR_UNSPEC)
		entry->mr_mode = has ? FI_MR_BASIC : FI_MR_SCALABLE;
	else if (!(has & ~asked))
		entry->mr_mode = has;
}

static void adopt_keys(const struct fi_domain_attr *has, uint32_t api, struct fi_domain_attr *entry)
{
	if (!has_vector_keys(has) || entry->auth_key_size || FI_VERSION_LT(api, FI_VERSION(1, 20)))
		return;
	entry->auth_key_size = FI_AV_AUTH_KEY;
	if (has->max_ep_auth_key)
		entry->max_ep_auth_key = has->max_ep_auth_key;
}

/*
 * Any threading level is given: an endpoint that is opened with more than its domain promised makes the
 * domain take locks (domain_admit).
 */
bool opened_match(const struct opened_domain *dom, uint32_t api, const struct fi_info *hints,
		  struct fi_info *entry, struct refusal *why)
{
	const struct fi_domain_attr *has = dom->info->domain_attr, *asked = hints->domain_attr;
	struct fi_domain_attr *attr = entry->domain_attr;

	if (!asked->threading && has->threading)
		attr->threading = has->threading;
	if (!asked->data_progress && has->data_progress)
		attr->data_progress = has->data_progress;
	if (!asked->control_progress && has->control_progress)
		attr->control_progress = has->control_progress;
	if (!dom->device)
		adopt_mr_mode(hints_mr_bits(has->mr_mode), api, asked->mr_mode, attr);
	adopt_keys(has, api, attr);
	return opened_gives(dom, entry, why);
}
