/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/pep.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "base/forked.h"
#include "base/log.h"
#include "base/fid.h"
#include "api/refused.h"
#include "info/job_key.h"
#include "info/providers.h"

int pep_bound(struct pep *pep)
{
	int err = pep->bound ? 0 : cm_open(&pep->listener, pep->info, &pep->name);

	pep->bound = !err;
	return err;
}

void pep_quit(struct pep *pep)
{
	if (pep->listening)
		eq_del_driver(pep->eq, &pep->driver);
	pep->listening = false;
	if (pep->bound)
		cm_close(&pep->listener);
	pep->bound = false;
}

int pep_give_name(struct fid_pep *fid, struct fi_info *info)
{
	struct pep *pep = pep_of(fid);
	size_t len;
	int err;

	lock_take(&pep->lock);
	err = pep->spent ? -FI_EINVAL : pep_bound(pep);
	if (!err)
		pep->spent = true;
	lock_give(&pep->lock);
	if (err)
		return err;
	pep_quit(pep);
	free(info->src_addr);
	len = addr_format_len(&pep->name, provider_format(info));
	info->src_addr = malloc(len);
	info->src_addrlen = info->src_addr ? len : 0;
	if (!info->src_addr)
		return -FI_ENOMEM;
	return addr_to_format(&pep->name, provider_format(info), info->src_addr, &len);
}

static int pep_close(struct fid *fid)
{
	struct pep *pep = pep_of((struct fid_pep *)fid);

	if (pep->forks != forked_count())
		return 0;
	pep_quit(pep);
	if (pep->eq) {
		eq_forget(pep->eq, fid);
		ref_put(&pep->eq->ref);
	}
	ref_put(&pep->fabric->ref);
	addr_free(&pep->name);
	fi_freeinfo(pep->info);
	fid_free(fid);
	return 0;
}

static int pep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct pep *pep = pep_of((struct fid_pep *)fid);
	struct eq *eq = (struct eq *)other;
	int ret = -FI_EINVAL;

	if (!other || other->fclass != FI_CLASS_EQ || flags || eq->fabric != pep->fabric)
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
				  "a passive endpoint is bound to an event queue of its fabric, "
				  "without flags (class %zu, flags %#llx)",
				  other ? other->fclass : 0, (unsigned long long)flags);
	lock_take(&pep->lock);
	if (!pep->eq) {
		pep->eq = eq;
		ref_get(&eq->ref);
		ret = 0;
	}
	lock_give(&pep->lock);
	if (ret)
		LOG_WARN(LOG_EP_CTRL,
			 "the passive endpoint has an event queue already: bind one only");
	return ret;
}

static int pep_control(struct fid *fid, int command, void *arg)
{
	struct pep *pep = pep_of((struct fid_pep *)fid);

	if (command != FI_BACKLOG)
		return fid_no_control(fid, command, arg);
	if (!arg || *(int *)arg < 0)
		return -FI_EINVAL;
	lock_take(&pep->lock);
	pep->backlog = *(int *)arg;
	lock_give(&pep->lock);
	return 0;
}

static struct fi_ops fid_ops = FID_OPS(pep_close, pep_bind, pep_control);

static int pep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	size_t room;

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	if (!value || !len)
		return -FI_EINVAL;
	room = *len;
	*len = sizeof(size_t);
	if (room < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)value = cm_data_most(pep_of((struct fid_pep *)fid)->info);
	return 0;
}

static int pep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	(void)fid;
	(void)value;
	return LOG_REFUSE(-FI_ENOPROTOOPT, LOG_EP_CTRL,
			  "a passive endpoint has no option %d of level %d to set (%zu bytes)",
			  name, level, len);
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = refused_cancel,
	.getopt = pep_getopt,
	.setopt = pep_setopt,
	.tx_ctx = refused_tx_ctx,
	.rx_ctx = refused_rx_ctx,
	.rx_size_left = refused_rx_size_left,
	.tx_size_left = refused_tx_size_left,
	.export_xpu = fid_no_call_2_7,
};

static int pep_check_info(const struct fi_info *info)
{
	if (!info || !info->ep_attr)
		return -FI_EINVAL;
	if (info->ep_attr->type == FI_EP_MSG)
		return 0;
	return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
			  "a passive endpoint is of type FI_EP_MSG, not %d",
			  (int)info->ep_attr->type);
}

int pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **fid, void *context)
{
	struct pep *pep;
	int ret = fid ? pep_check_info(info) : -FI_EINVAL;

	if (ret)
		return ret;
	pep = calloc(1, sizeof(*pep));
	if (!pep)
		return -FI_ENOMEM;
	pep->info = fi_dupinfo(info);
	if (!pep->info)
		ret = -FI_ENOMEM;
	else if (info->src_addr)
		ret = addr_from_user(&pep->name, provider_format(info), info->src_addr,
				     info->src_addrlen);
	if (!ret)
		ret = job_key_resolve(pep->info, NULL, fabric_of(fabric)->fid.api_version);
	if (ret)
		goto free_pep;
	lock_init(&pep->lock);
	list_init(&pep->driver.link);
	pep->driver.progress = pep_cm_progress;
	pep->backlog = SOMAXCONN;
	pep->forks = forked_count();
	pep->fabric = fabric_of(fabric);
	ref_get(&pep->fabric->ref);
	pep->fid.fid = (struct fid){FI_CLASS_PEP, context, &fid_ops};
	pep->fid.ops = &ep_ops;
	pep->fid.cm = &pep_cm_ops;
	*fid = &pep->fid;
	return 0;
free_pep:
	addr_free(&pep->name);
	fi_freeinfo(pep->info);
	free(pep);
	return ret;
}
