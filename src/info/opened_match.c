/* SPDX-License-Identifier: BSD-2-Clause */
/* What a domain was opened with is what its endpoints have, whatever later hints ask for. */
#include "info/opened.h"

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

bool opened_gives(const struct opened_domain *dom, const struct fi_info *entry, struct refusal *why)
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
