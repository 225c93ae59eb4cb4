/* SPDX-License-Identifier: BSD-2-Clause */
/* Fabrics and access domains: opening, binding, closing, queries. fi_fabric(3), fi_domain(3). */
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/ep.h"
#include "api/pep.h"
#include "atomic/atomic.h"
#include "base/addr.h"
#include "base/fid.h"
#include "base/forked.h"
#include "base/log.h"
#include "cntr/cntr.h"
#include "coll/coll.h"
#include "core/av.h"
#include "core/eq.h"
#include "core/fabric.h"
#include "core/mr.h"
#include "core/mr_nic.h"
#include "core/wait.h"
#include "core/workers.h"
#include "hook/hook.h"
#include "info/external.h"
#include "info/job_key.h"
#include "info/opened.h"
#include "info/providers.h"
#include "xfer/engine.h"
#include "link/link.h"

static int domain_close(struct fid *fid)
{
	struct domain *dom = (struct domain *)fid;

	if (domain_foreign(dom))
		return 0;
	if (ref_busy(&dom->ref)) {
		LOG_INFO(LOG_DOMAIN, "close: %d objects are still open on the domain", dom->ref);
		return -FI_EBUSY;
	}
	opened_remove(&dom->opened.link);
	progress_stop(dom);
	mr_table_close(dom);
	mr_nic_close(dom);
	if (dom->device_ops)
		dom->device_ops->close(dom->device);
	if (dom->eq)
		ref_put(&dom->eq->ref);
	ref_put(&dom->fabric->ref);
	fi_freeinfo(dom->info);
	shard_close_all(dom);
	fid_free(fid);
	return 0;
}

static int domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct domain *dom = (struct domain *)fid;

	if (!bfid || bfid->fclass != FI_CLASS_EQ || flags & ~FI_REG_MR)
		return LOG_REFUSE(-FI_EINVAL, LOG_DOMAIN,
				  "bind: class %zu with flags %#llx: only an event queue binds",
				  bfid ? bfid->fclass : 0, (unsigned long long)flags);
	if (dom->eq)
		return -FI_EINVAL;
	if (((struct eq *)bfid)->fabric != dom->fabric)
		return LOG_REFUSE(
			-FI_EINVAL, LOG_DOMAIN,
			"bind: domain and event queue have different fabrics: open both on one");
	dom->eq = (struct eq *)bfid;
	dom->eq_flags = flags;
	ref_get(&dom->eq->ref);
	return 0;
}

static int domain_control(struct fid *fid, int command, void *arg)
{
	struct domain *dom = (struct domain *)fid;

	/* Deferred work needs the engine; a device has none. */
	if (dom->device_ops && command != FI_MAP_RAW_MR && command != FI_UNMAP_KEY)
		return -FI_ENOSYS;
	switch (command) {
	case FI_MAP_RAW_MR:
	case FI_UNMAP_KEY:
		return mr_domain_control(command, arg);
	case FI_QUEUE_WORK:
		return defer_queue(dom, arg);
	case FI_CANCEL_WORK:
		return defer_cancel_work(dom, arg);
	case FI_FLUSH_WORK:
		return defer_flush(dom, arg);
	default:
		return -FI_ENOSYS;
	}
}

static int query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			struct fi_atomic_attr *attr, uint64_t flags)
{
	const uint64_t forms = FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC;
	enum atomic_form form = flags & FI_FETCH_ATOMIC     ? ATOMIC_FETCH
				: flags & FI_COMPARE_ATOMIC ? ATOMIC_COMPARE
							    : ATOMIC_BASE;
	const struct device_ops *device = domain_of(domain)->device_ops;

	if (!attr || flags & ~(forms | FI_TAGGED) || (flags & forms) == forms)
		return -FI_EINVAL;
	if (device)
		return device->atomic((int)form, (int)datatype, (int)op, &attr->count, &attr->size);
	return xfer_atomic_valid(form, datatype, op, attr);
}

static int query_collective(struct fid_domain *fid, enum fi_collective_op coll,
			    struct fi_collective_attr *attr, uint64_t flags)
{
	const struct fi_info *info = domain_of(fid)->info;
	const struct provider *provider = provider_of(info);

	if (provider && !(provider->caps & FI_COLLECTIVE))
		return -FI_EOPNOTSUPP;
	return coll_query(coll, attr, flags);
}

static struct fi_ops domain_fi_ops = FID_OPS(domain_close, domain_bind, domain_control);

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = av_open,
	.cq_open = cq_open,
	.endpoint = ep_open,
	.scalable_ep = sep_open,
	.cntr_open = cntr_open,
	.poll_open = poll_open,
	.stx_ctx = sep_stx_open,
	.srx_ctx = sep_srx_open,
	.query_atomic = query_atomic,
	.query_collective = query_collective,
	.endpoint2 = ep_open2,
	.xpu_ctx = fid_no_call_2_7,
};

/* Opens the RDMA device of the entry's address, if the provider is rc. */
static int open_device(struct domain *dom)
{
	const struct provider *v = provider_of(dom->info);
	const struct transport *t = transport_of(PROVIDER_RC);
	struct addr at;
	int err;

	if (!v || v->transports != PROVIDER_RC)
		return 0;
	if (!t)
		return -FI_ENOSYS;
	if (!dom->info->src_addr)
		return LOG_REFUSE(
			-FI_EINVAL, LOG_DOMAIN,
			"info->src_addr has to name an address of an RDMA device: fi_info -p verbs -v lists them");
	err = addr_from_user(&at, provider_format(dom->info), dom->info->src_addr,
			     dom->info->src_addrlen);
	if (err)
		return err;
	err = t->device->open(&at, &dom->device);
	if (!err)
		dom->device_ops = t->device;
	addr_free(&at);
	return err;
}

static const struct domain_calls calls = {
	.install = ep_install,
	.run_due = defer_run,
	.groups = &coll_groups,
	.av_inserted = worker_reach_entry,
	.av_removing = worker_forget_entry,
	.av_renamed = worker_forget_id,
};

static void domain_open_init_lists(struct domain *dom)
{
	list_init(&dom->callees);
	list_init(&dom->queues);
	list_init(&dom->workers);
	list_init(&dom->sets);
	list_init(&dom->waiting);
	list_init(&dom->joined);
	list_init(&dom->nic_regions);
}

/*
 * Does one thread at a time use the domain? Readers of event queues, which belong to no domain,
 * progress FI_EP_MSG endpoints and joins of groups.
 */
static bool needs_no_lock(const struct fi_info *info)
{
	const struct fi_domain_attr *attr = info->domain_attr;

	return attr->threading == FI_THREAD_DOMAIN && attr->data_progress != FI_PROGRESS_AUTO &&
	       !(info->ep_attr && info->ep_attr->type == FI_EP_MSG) &&
	       !(info->caps & FI_COLLECTIVE);
}

static bool has_thread(const struct fi_domain_attr *attr)
{
	return attr->data_progress == FI_PROGRESS_AUTO ||
	       attr->control_progress == FI_PROGRESS_AUTO;
}

static int domain_open_check_info(const struct fabric *fabric, const struct fi_info *info)
{
	if (!info || !info->domain_attr || !info->fabric_attr)
		return -FI_EINVAL;
	return job_key_check_domain(info, fabric->fid.api_version);
}

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
		       void *context)
{
	const struct fi_domain_attr *attr = info ? info->domain_attr : NULL;
	struct domain *dom;
	int err = out ? domain_open_check_info(fabric_of(fabric), info) : -FI_EINVAL;

	if (err)
		return err;
	dom = calloc(1, sizeof(*dom));
	if (!dom)
		return -FI_ENOMEM;
	dom->fabric = fabric_of(fabric);
	dom->forks = forked_count();
	dom->rarely = WORKERS_RARELY;
	dom->calls = &calls;
	domain_open_init_lists(dom);
	err = shard_open_main(dom);
	if (err)
		goto free_dom;
	dom->info = fi_dupinfo(info);
	err = dom->info ? 0 : -FI_ENOMEM;
	if (err)
		goto close_shards;
	dom->max_keys = job_key_vector_max(dom->info, domain_api(dom));
	err = open_device(dom);
	if (err)
		goto free_info;
	err = mr_table_open(dom);
	if (err)
		goto close_device;
	dom->unlocked = needs_no_lock(info);
	dom->splits = !dom->unlocked && !dom->device_ops;
	dom->fid.fid = (struct fid){FI_CLASS_DOMAIN, context, &domain_fi_ops};
	dom->fid.ops = &domain_ops;
	dom->fid.mr = (struct fi_ops_mr *)&mr_ops;
	if (has_thread(attr) && (err = progress_start(dom)))
		goto close_mrs;
	ref_get(&dom->fabric->ref);
	dom->opened = (struct opened_domain){.fid = &dom->fid,
					     .fabric = &dom->fabric->opened,
					     .info = dom->info,
					     .device = dom->device_ops != NULL,
					     .forks = dom->forks};
	opened_add_domain(&dom->opened);
	*out = &dom->fid;
	return 0;
close_mrs:
	mr_table_close(dom);
close_device:
	if (dom->device_ops)
		dom->device_ops->close(dom->device);
free_info:
	fi_freeinfo(dom->info);
close_shards:
	shard_close_all(dom);
free_dom:
	free(dom);
	return err;
}

static int domain_open2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
			uint64_t flags, void *context)
{
	if (flags & ~FI_PEER)
		return LOG_REFUSE(-FI_EINVAL, LOG_DOMAIN, "fi_domain2: unknown flags %#llx",
				  (unsigned long long)flags);
	if (flags)
		return LOG_REFUSE(-FI_ENOSYS, LOG_DOMAIN, "fi_domain2: FI_PEER: no peers here");
	return domain_open(fabric, info, out, context);
}

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
	opened_remove(&fab->opened.link);
	free(fab->name);
	free(fab->prov_name);
	fid_free(fid);
	return 0;
}

static struct fi_ops fid_ops = FID_OPS(fabric_close, fid_no_bind, fid_no_control);

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = domain_open,
	.passive_ep = pep_open,
	.eq_open = eq_open,
	.wait_open = wait_set_open,
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
