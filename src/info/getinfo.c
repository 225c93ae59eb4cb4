/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/env.h"
#include "base/log.h"
#include "info/info.h"
#include "info/external.h"
#include "info/hints.h"
#include "info/job_key.h"
#include "info/opened.h"
#include "info/rdma_ports.h"
#include "info/resolve.h"
#include "info/providers.h"
#include "link/link.h"

static const struct fi_fabric_attr *fabric_hints(const struct query *q)
{
	return q->hints ? q->hints->fabric_attr : NULL;
}

static bool match_name(const struct provider *v, const struct query *q, struct refusal *why)
{
	const struct fi_fabric_attr *asked = fabric_hints(q);
	const char *prov = asked ? asked->prov_name : NULL, *user = env_get()->provider;

	why->of_name = !provider_offered(v, prov);
	if (why->of_name && user)
		return hints_refuse(why,
				    "fabric_attr->prov_name: \"%.100s\" asked, \"%.100s\" "
				    "by FI_PROVIDER",
				    prov ? prov : "", user);
	if (why->of_name)
		return hints_refuse(why, "fabric_attr->prov_name: \"%.100s\" asked",
				    prov ? prov : "");
	if (asked && asked->name && strcmp(asked->name, v->fabric) != 0)
		return hints_refuse(why, "fabric_attr->name: \"%.100s\" asked, \"%s\" offered",
				    asked->name, v->fabric);
	return true;
}

/* The open fabric in the hints; NULL: none. */
static const struct opened_fabric *fabric_asked(const struct query *q)
{
	return fabric_hints(q) ? opened_fabric_of(fabric_hints(q)->fabric) : NULL;
}

static const struct opened_domain *getinfo_domain_asked(const struct query *q)
{
	const struct fi_domain_attr *attr = q->hints ? q->hints->domain_attr : NULL;

	return attr ? opened_domain_of(attr->domain) : NULL;
}

static bool match_objects(const struct provider *v, const struct query *q, struct refusal *why)
{
	const struct opened_domain *dom = getinfo_domain_asked(q);
	const struct opened_fabric *fabric = fabric_asked(q);

	if (!fabric && dom)
		fabric = dom->fabric;
	if (fabric &&
	    (strcmp(fabric->name, v->fabric) != 0 || strcmp(fabric->prov_name, v->name) != 0))
		return hints_refuse(why, "fabric_attr->fabric: is \"%.60s\" of \"%.60s\"",
				    fabric->name, fabric->prov_name);
	if (dom && (dom->fabric != fabric || !opened_suits(dom, v)))
		return hints_refuse(why, "domain_attr->domain: is of %s",
				    dom->fabric != fabric ? "another fabric" : "other endpoints");
	return true;
}

/* Puts open objects into the entries: those in the hints, else the oldest that suit. */
static void fill_objects(const struct provider *v, const struct query *q, struct fi_info *first)
{
	const struct opened_domain *asked = getinfo_domain_asked(q), *dom;
	const struct opened_fabric *fabric = fabric_asked(q);

	if (!fabric)
		fabric = asked ? asked->fabric : opened_fabric(v);
	for (struct fi_info *info = first; fabric && info; info = info->next) {
		dom = asked ? asked : opened_domain(fabric, info, v);
		info->fabric_attr->fabric = fabric->fid;
		info->domain_attr->domain = dom ? dom->fid : NULL;
	}
}

static int fill_names(const struct provider *v, const struct query *q, struct fi_info *info)
{
	struct fi_fabric_attr *attr = info->fabric_attr;

	attr->prov_name = strdup(v->name);
	attr->name = strdup(v->fabric);
	if (!attr->prov_name || !attr->name)
		return -FI_ENOMEM;
	attr->prov_version = INFO_RELEASE;
	attr->api_version = q->version;
	info->handle = q->hints ? q->hints->handle : NULL;
	return 0;
}

/* FI_AV_AUTH_KEY is granted: then there are no keys in hints. fi_domain(3), fi_endpoint(3) */
static bool match_vector_keys(const struct query *q, struct refusal *why)
{
	if (FI_VERSION_LT(q->version, FI_VERSION(1, 20)))
		return hints_refuse(why, "domain_attr->auth_key_size: FI_AV_AUTH_KEY before 1.20");
	if (q->hints->domain_attr->auth_key)
		return hints_refuse(why, "domain_attr->auth_key: not NULL with FI_AV_AUTH_KEY");
	if (q->hints->ep_attr && q->hints->ep_attr->auth_key_size)
		return hints_refuse(why, "ep_attr->auth_key_size: not 0 with FI_AV_AUTH_KEY");
	return true;
}

/* Where a length is granted, the hints have the key. */
static bool match_keys(const struct query *q, const struct fi_info *info, struct refusal *why)
{
	if (info->domain_attr->auth_key_size == FI_AV_AUTH_KEY)
		return match_vector_keys(q, why);
	if (info->ep_attr->auth_key_size && !q->hints->ep_attr->auth_key)
		return hints_refuse(why, "ep_attr->auth_key: NULL");
	if (info->domain_attr->auth_key_size && !q->hints->domain_attr->auth_key)
		return hints_refuse(why, "domain_attr->auth_key: NULL");
	return true;
}

static int getinfo_fill(const struct provider *v, const struct query *q, struct fi_info *info,
			struct refusal *why)
{
	const struct opened_domain *dom = getinfo_domain_asked(q);
	const char *open_name = dom ? dom->info->domain_attr->name : NULL;
	int ret;

	if (!hints_match(v, q->version, q->hints, info, why) ||
	    (dom && !opened_match(dom, q->version, q->hints, info, why)))
		return -FI_ENODATA;
	if (!match_keys(q, info, why))
		return -FI_ENODATA;
	ret = fill_names(v, q, info);
	if (!ret)
		ret = job_key_copy(info, q->hints);
	if (!ret)
		ret = resolve(v, q, info, why);
	if (!ret && open_name && strcmp(open_name, info->domain_attr->name) != 0) {
		hints_refuse(why,
			     "domain_attr->domain: is \"%.60s\", the address belongs to \"%s\"",
			     open_name, info->domain_attr->name);
		ret = -FI_ENODATA;
	}
	if (!ret)
		fill_objects(v, q, info);
	return ret;
}

static int new_entry(const struct provider *v, const struct query *q, struct fi_info **entry,
		     struct refusal *why)
{
	struct fi_info *info;
	int ret;

	if (!match_name(v, q, why) || !match_objects(v, q, why))
		return -FI_ENODATA;
	info = info_blank();
	if (!info)
		return -FI_ENOMEM;
	ret = getinfo_fill(v, q, info, why);
	if (ret) {
		fi_freeinfo(info);
		return ret;
	}
	*entry = info;
	return 0;
}

/* Omits providers that were not named if another one was, and repeated reasons. */
static void getinfo_explain(const struct refusal *why)
{
	bool meant = false;

	for (size_t i = 0; i < provider_count; i++)
		meant |= !why[i].of_name;
	if (!meant) {
		LOG_INFO(LOG_CORE, "no provider has such a name: %s", why[0].text);
		return;
	}
	LOG_INFO(LOG_CORE, "no entry matches the hints");
	for (size_t i = 0; i < provider_count; i++) {
		if (why[i].of_name)
			continue;
		if (i && strcmp(providers[i].name, providers[i - 1].name) == 0 &&
		    strcmp(why[i].text, why[i - 1].text) == 0)
			continue;
		LOG_INFO(LOG_CORE, "%s: %s", providers[i].name, why[i].text);
	}
}

/* Do the hints name a fabric or a domain that is, or was, open? */
static bool names_object(const struct query *q)
{
	const struct fi_domain_attr *dom = q->hints ? q->hints->domain_attr : NULL;

	return (fabric_hints(q) && fabric_hints(q)->fabric) || (dom && dom->domain);
}

/*
 * Entries of the rows, then of external providers. With an object of ours in the hints the external ones
 * are not asked. One that is not is theirs, or one of ours that was closed: then they are asked first,
 * and the rows if none of them answers.
 */
static int getinfo_entries(const struct query *q, struct fi_info **list)
{
	bool named = names_object(q), ours = fabric_asked(q) || getinfo_domain_asked(q);
	struct refusal why[PROVIDER_MAX];
	struct fi_info *first = NULL, **next = &first;
	int ret;

	if (named && !ours)
		external_entries(q, &first);
	if (first) {
		*list = first;
		return 0;
	}
	for (size_t i = 0; i < provider_count; i++) {
		ret = new_entry(&providers[i], q, next, &why[i]);
		if (ret == -FI_ENODATA)
			continue;
		if (ret) {
			fi_freeinfo(first);
			return ret;
		}
		while (*next)
			next = &(*next)->next;
	}
	if (!named)
		external_entries(q, next);
	if (!first)
		getinfo_explain(why);
	*list = first;
	return first ? 0 : -FI_ENODATA;
}

/* Is the provider's hardware present? RDMA devices may appear and disappear. */
static bool getinfo_present(const struct provider *v)
{
	return !provider_needs_rdma(v) || (transport_of(v->transports) && rdma_ports_any());
}

/* Appends an entry with only the name and versions, and moves *next behind it. 0 or -FI_ENOMEM. */
static int getinfo_add_name(struct fi_info ***next, const char *name, uint32_t prov_version,
			    uint32_t api)
{
	struct fi_info *info = info_blank();

	if (!info)
		return -FI_ENOMEM;
	**next = info;
	*next = &info->next;
	info->fabric_attr->prov_version = prov_version;
	info->fabric_attr->api_version = api;
	info->fabric_attr->prov_name = strdup(name);
	return info->fabric_attr->prov_name ? 0 : -FI_ENOMEM;
}

/* Is the row the first of its name, offered to applications, and present? */
static bool names_provider(const struct provider *v)
{
	return provider_find(v->name) == v && provider_offered(v, v->name) && getinfo_present(v);
}

/* FI_PROV_ATTR_ONLY: one entry per provider name. */
static int getinfo_names(uint32_t api, struct fi_info **list)
{
	struct fi_info *first = NULL, **next = &first;
	size_t count;
	const struct external *ext = external_all(&count);
	int ret = 0;

	for (size_t i = 0; i < provider_count && !ret; i++) {
		if (names_provider(&providers[i]))
			ret = getinfo_add_name(&next, providers[i].name, INFO_RELEASE, api);
	}
	for (size_t i = 0; i < count && !ret; i++) {
		if (provider_name_offered(ext[i].prov->name, NULL))
			ret = getinfo_add_name(&next, ext[i].prov->name, ext[i].prov->version, api);
	}
	if (ret) {
		fi_freeinfo(first);
		return ret;
	}
	*list = first;
	return first ? 0 : -FI_ENODATA;
}

#define GETINFO_FLAGS (FI_NUMERICHOST | FI_SOURCE | FI_PROV_ATTR_ONLY | FI_RESCAN)

int getinfo_query(uint32_t version, const char *node, const char *service, uint64_t flags,
		  const struct fi_info *hints, struct fi_info **info)
{
	struct ip_ends ends = {.known = false};
	struct query q = {version, node, service, flags, hints, &ends};
	int ret;

	if (flags & ~GETINFO_FLAGS)
		LOG_INFO(LOG_CORE, "fi_getinfo: flags %#llx are unknown and have no effect",
			 (unsigned long long)(flags & ~GETINFO_FLAGS));
	if ((flags & FI_SOURCE) && !node && !service) {
		LOG_INFO(LOG_CORE, "FI_SOURCE needs a node or a service");
		ret = -FI_ENODATA;
	} else if (flags & FI_PROV_ATTR_ONLY) {
		ret = getinfo_names(version, info);
	} else {
		ret = getinfo_entries(&q, info);
		resolve_ip_forget(&ends);
	}
	/* As fi_getinfo(3) says; other calls leave the result alone on failure. */
	if (ret == -FI_ENODATA)
		*info = NULL;
	return ret;
}
