/* SPDX-License-Identifier: BSD-2-Clause */
/* What external providers say to fi_getinfo. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "info/external.h"

/* Bits of the providers that this thread asks: one that layers over others asks fi_getinfo. */
static __thread uint32_t asking;
_Static_assert(EXTERNAL_MAX <= 32, "a bit of `asking` each");

static bool is_asked(const struct external *ext, uint32_t bit, const struct query *q)
{
	const struct fi_fabric_attr *attr = q->hints ? q->hints->fabric_attr : NULL;

	if (asking & bit || !provider_name_offered(ext->prov->name, attr ? attr->prov_name : NULL))
		return false;
	if (!FI_VERSION_LT(ext->prov->fi_version, q->version))
		return true;
	return LOG_REFUSE(false, LOG_CORE,
			  "%s: interface version %u.%u requested, this provider has %u.%u",
			  ext->prov->name, FI_MAJOR(q->version), FI_MINOR(q->version),
			  FI_MAJOR(ext->prov->fi_version), FI_MINOR(ext->prov->fi_version));
}

/*
 * The provider that made an entry names in it those below itself, if any: its own name is added. -FI_ENOMEM
 * or 0.
 */
static int external_info_add_name(char **layers, const char *name)
{
	const char *last = *layers ? strrchr(*layers, ';') : NULL;
	const char *top = last ? last + 1 : *layers;
	char *all;

	if (top && strcasecmp(top, name) == 0)
		return 0;
	if (asprintf(&all, "%s%s%s", top ? *layers : "", top ? ";" : "", name) < 0)
		return -FI_ENOMEM;
	free(*layers);
	*layers = all;
	return 0;
}

/* Completes the entries of a provider. 0, -FI_ENOMEM, or -FI_EINVAL if they lack a part. */
static int external_info_complete(const struct fi_provider *prov, uint32_t version,
				  struct fi_info *list)
{
	for (; list; list = list->next) {
		if (!list->fabric_attr || !list->domain_attr || !list->ep_attr || !list->tx_attr ||
		    !list->rx_attr)
			return LOG_REFUSE(-FI_EINVAL, LOG_CORE, "%s: an entry lacks attributes",
					  prov->name);
		if (external_info_add_name(&list->fabric_attr->prov_name, prov->name))
			return -FI_ENOMEM;
		list->fabric_attr->prov_version = prov->version;
		list->fabric_attr->api_version = version;
	}
	return 0;
}

/* Returns the entries of a provider; NULL: none, for a reason that is logged. */
static struct fi_info *external_info_ask(const struct fi_provider *prov, uint32_t bit,
					 const struct query *q)
{
	struct fi_info *list = NULL;
	int ret;

	asking |= bit;
	ret = prov->getinfo(q->version, q->node, q->service, q->flags, q->hints, &list);
	asking &= ~bit;
	if (ret) {
		LOG_INFO(LOG_CORE, "%s: no entry: %s (%d)", prov->name, fi_strerror(ret), ret);
		return NULL;
	}
	ret = external_info_complete(prov, q->version, list);
	if (!ret)
		return list;
	LOG_WARN(LOG_CORE, "%s: its entries are left out: %s", prov->name, fi_strerror(ret));
	fi_freeinfo(list);
	return NULL;
}

void external_entries(const struct query *q, struct fi_info **list)
{
	size_t count;
	const struct external *ext = external_all(&count);

	*list = NULL;
	for (size_t i = 0; i < count; i++, ext++) {
		if (!is_asked(ext, 1U << i, q))
			continue;
		*list = external_info_ask(ext->prov, 1U << i, q);
		while (*list)
			list = &(*list)->next;
	}
}
