/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "api/domain_open.h"
#include "api/pep.h"
#include "base/fid.h"
#include "base/forked.h"
#include "base/log.h"
#include "core/eq.h"
#include "core/fabric.h"
#include "core/wait.h"
#include "hook/hook.h"
#include "info/external.h"
#include "info/opened.h"
#include "info/providers.h"

static int fabric_close(struct fid *fid)
{
	struct fabric *fab = fabric_of((struct fid_fabric *)fid);

	if (fab->forks != forked_count())
		return 0;
	if (ref_busy(&fab->ref))
		return LOG_REFUSE(
			-FI_EBUSY, LOG_FABRIC,
			"a fabric with %d open objects cannot be closed: close these first",
			fab->ref);
	opened_remove_fabric(&fab->opened);
	free(fab->name);
	free(fab->prov_name);
	fid_free(fid);
	return 0;
}

static int fabric_wait_open(struct fid_fabric *fid, struct fi_wait_attr *attr,
			    struct fid_wait **set)
{
	return wait_set_open(fabric_of(fid), attr, set);
}

static struct fi_ops fid_ops = FID_OPS(fabric_close, fid_no_bind, fid_no_control);

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = domain_open,
	.passive_ep = pep_open,
	.eq_open = eq_open,
	.wait_open = fabric_wait_open,
	.trywait = wait_try_all,
	.domain2 = domain_open2,
};

static struct fabric *new_fabric(const struct fi_fabric_attr *attr)
{
	struct fabric *fab = calloc(1, sizeof(*fab));

	if (!fab)
		return NULL;
	fab->name = strdup(attr->name);
	if (!fab->name)
		goto free_fabric;
	fab->prov_name = strdup(attr->prov_name);
	if (fab->prov_name)
		return fab;
	free(fab->name);
free_fabric:
	free(fab);
	return NULL;
}

/* Returns whether fi_getinfo reports such a fabric and provider. */
static bool fabric_known(const struct fi_fabric_attr *attr)
{
	if (!provider_find(attr->prov_name))
		return LOG_REFUSE(false, LOG_FABRIC,
				  "fi_fabric: there is no provider \"%s\": fi_info -l lists them",
				  attr->prov_name);
	for (size_t i = 0; i < provider_count; i++) {
		if (strcmp(providers[i].fabric, attr->name) == 0)
			return true;
	}
	return LOG_REFUSE(false, LOG_FABRIC, "fi_fabric: there is no fabric \"%s\"", attr->name);
}

/* A fabric of an external provider. From here on its objects are the provider's alone. */
static int open_external(const struct fi_provider *prov, struct fi_fabric_attr *attr,
			 struct fid_fabric **fabric, void *context)
{
	int ret = prov->fabric(attr, fabric, context);

	if (ret)
		LOG_WARN(LOG_FABRIC, "fi_fabric: \"%s\" of provider %s: %s", attr->name, prov->name,
			 fi_strerror(ret));
	return ret;
}

static int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	const struct fi_provider *external;
	struct fabric *fab;

	if (!attr || !attr->name || !attr->prov_name || !fabric)
		return -FI_EINVAL;
	external = provider_find(attr->prov_name) ? NULL : external_find(attr->prov_name);
	if (external)
		return open_external(external, attr, fabric, context);
	if (!fabric_known(attr))
		return -FI_ENODEV;
	fab = new_fabric(attr);
	if (!fab)
		return -FI_ENOMEM;
	fab->fid.fid = (struct fid){FI_CLASS_FABRIC, context, &fid_ops};
	fab->fid.ops = &fabric_ops;
	fab->fid.api_version = attr->api_version;
	fab->forks = forked_count();
	fab->opened = (struct opened_fabric){
		.fid = &fab->fid, .name = fab->name, .prov_name = fab->prov_name};
	opened_add_fabric(&fab->opened);
	*fabric = &fab->fid;
	return 0;
}

static int open_hooked(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	int ret = fabric_open(attr, fabric, context);

	if (!ret)
		hook_fabric(*fabric);
	return ret;
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return open_hooked(attr, fabric, context);
}

int fi_fabric2(struct fi_info *info, struct fid_fabric **fabric, uint64_t flags, void *context)
{
	if (!info || flags)
		return -FI_EINVAL;
	return open_hooked(info->fabric_attr, fabric, context);
}
