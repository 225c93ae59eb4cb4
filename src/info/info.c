/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "info/info.h"
#include "info/job_key.h"

static const struct info_sizes present = {
	sizeof(struct fi_info),
	sizeof(struct fi_tx_attr),
	sizeof(struct fi_ep_attr),
	sizeof(struct fi_domain_attr),
};

/* Each function replaces pointer *p to the original by one to a copy. False: no memory. */

static bool own_string(char **p)
{
	const char *from = *p;

	*p = from ? strdup(from) : NULL;
	return *p || !from;
}

static bool own_bytes(void **p, size_t len)
{
	const void *from = *p;

	*p = NULL;
	if (!from || !len)
		return true;
	*p = malloc(len);
	if (*p)
		memcpy(*p, from, len);
	return *p;
}

/* The size FI_AV_AUTH_KEY means: no key. For one that is there all the same an empty byte stands, as it is refused. */
static bool own_key(uint8_t **p, size_t len)
{
	static uint8_t none;
	void *key = *p && len == FI_AV_AUTH_KEY ? &none : *p;
	bool good = own_bytes(&key, key == &none ? sizeof(none) : len);

	*p = key;
	return good;
}

/* Allocates `size` zeroed bytes and copies the first `used` from `from`; NULL if `from` is NULL. */
static void *info_grown(const void *from, size_t used, size_t size)
{
	void *to = from ? calloc(1, size) : NULL;

	return to ? memcpy(to, from, used) : NULL;
}

static bool own_ep_attr(struct fi_ep_attr **p, size_t used)
{
	const struct fi_ep_attr *from = *p;
	struct fi_ep_attr *to = info_grown(from, used, sizeof(*to));

	*p = to;
	return to ? own_key(&to->auth_key, to->auth_key_size) : !from;
}

static bool own_domain_attr(struct fi_domain_attr **p, size_t used)
{
	const struct fi_domain_attr *from = *p;
	struct fi_domain_attr *to = info_grown(from, used, sizeof(*to));
	bool name, key;

	*p = to;
	if (!to)
		return !from;
	name = own_string(&to->name);
	key = own_key(&to->auth_key, to->auth_key_size);
	return name && key;
}

static bool own_fabric_attr(struct fi_fabric_attr **p)
{
	const struct fi_fabric_attr *from = *p;
	struct fi_fabric_attr *to = info_grown(from, sizeof(*to), sizeof(*to));
	bool name, prov_name;

	*p = to;
	if (!to)
		return !from;
	name = own_string(&to->name);
	prov_name = own_string(&to->prov_name);
	return name && prov_name;
}

/* Omits a NIC that does not support copying. */
static bool own_nic(struct fid_nic **p)
{
	struct fid_nic *from = *p;
	int ret;

	*p = NULL;
	if (!from || !from->fid.ops)
		return true;
	ret = from->fid.ops->control(&from->fid, FI_DUP, p);
	if (ret && ret != -FI_ENOSYS)
		LOG_WARN(LOG_CORE, "copying the NIC of an fi_info: %s", fi_strerror(ret));
	return !ret || ret == -FI_ENOSYS;
}

/* Replaces all pointers of `info`, a flat copy. Continues after failures, so fi_freeinfo works. */
static bool own_info(struct fi_info *info, const struct info_sizes *sizes)
{
	bool good = own_bytes(&info->src_addr, info->src_addrlen);
	const void *tx = info->tx_attr, *rx = info->rx_attr;

	good &= own_bytes(&info->dest_addr, info->dest_addrlen);
	info->tx_attr = info_grown(tx, sizes->tx_attr, sizeof(*info->tx_attr));
	info->rx_attr = info_grown(rx, sizeof(*info->rx_attr), sizeof(*info->rx_attr));
	good &= (info->tx_attr || !tx) && (info->rx_attr || !rx);
	good &= own_ep_attr(&info->ep_attr, sizes->ep_attr);
	good &= own_domain_attr(&info->domain_attr, sizes->domain_attr);
	good &= own_fabric_attr(&info->fabric_attr);
	good &= own_nic(&info->nic);
	return good;
}

struct fi_info *info_copy(const struct fi_info *from, const struct info_sizes *sizes)
{
	struct fi_info *to = info_grown(from, sizes->info, sizeof(*to));

	if (!to)
		return NULL;
	to->next = NULL;
	if (!own_info(to, sizes)) {
		fi_freeinfo(to);
		return NULL;
	}
	return to;
}

struct fi_info *info_dup(const struct fi_info *from)
{
	return info_copy(from, &present);
}

struct fi_info *info_blank(void)
{
	struct fi_tx_attr tx = {0};
	struct fi_rx_attr rx = {0};
	struct fi_ep_attr ep = {0};
	struct fi_domain_attr domain = {0};
	struct fi_fabric_attr fabric = {0};
	struct fi_info info = {.tx_attr = &tx,
			       .rx_attr = &rx,
			       .ep_attr = &ep,
			       .domain_attr = &domain,
			       .fabric_attr = &fabric};

	return info_dup(&info);
}

static void free_attrs(struct fi_info *info)
{
	if (info->ep_attr)
		job_key_free(info->ep_attr->auth_key);
	if (info->domain_attr) {
		free(info->domain_attr->name);
		job_key_free(info->domain_attr->auth_key);
	}
	if (info->fabric_attr) {
		free(info->fabric_attr->name);
		free(info->fabric_attr->prov_name);
	}
	free(info->tx_attr);
	free(info->rx_attr);
	free(info->ep_attr);
	free(info->domain_attr);
	free(info->fabric_attr);
}

void fi_freeinfo(struct fi_info *info)
{
	while (info) {
		struct fi_info *next = info->next;

		free(info->src_addr);
		free(info->dest_addr);
		free_attrs(info);
		if (info->nic && info->nic->fid.ops)
			info->nic->fid.ops->close(&info->nic->fid);
		free(info);
		info = next;
	}
}
