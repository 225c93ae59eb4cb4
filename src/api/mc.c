/* SPDX-License-Identifier: BSD-2-Clause */

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "api/ep.h"
#include "base/fid.h"
#include "base/log.h"
#include "info/providers.h"
#include "xfer/engine.h"

struct mc {
	struct fid_mc fid;
	struct ep *ep; /* never an alias */
};

static int mc_close(struct fid *fid)
{
	struct mc *mc = (struct mc *)fid;
	struct domain *dom = mc->ep->dom;

	if (domain_foreign(dom))
		return 0;
	domain_lock(dom);
	dgram_leave(mc->ep->worker, mc->fid.fi_addr);
	domain_unlock(dom);
	if (mc->ep->eq)
		eq_forget(mc->ep->eq, fid);
	ref_put(&mc->ep->ref);
	fid_free(fid);
	return 0;
}

static struct fi_ops mc_fi_ops = FID_OPS(mc_close, fid_no_bind, fid_no_control);

/* Sets *ways to the directions of the membership: those of `flags`, else all of the endpoint. 0 or a negative error. */
static int mc_ways_of(const struct ep *ep, uint64_t flags, uint64_t *ways)
{
	uint64_t able = ep->info->caps & (FI_SEND | FI_RECV);

	if (!(ep->info->caps & FI_MULTICAST))
		return -FI_ENOSYS;
	if (flags & ~(FI_SEND | FI_RECV))
		return -FI_EBADFLAGS;
	if (!able)
		able = FI_SEND | FI_RECV;
	if (flags & ~able)
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
				  "fi_join: the endpoint has no capability to %s",
				  flags & ~able & FI_SEND ? "send" : "receive");
	*ways = flags ? flags : able;
	return 0;
}

static int mc_join_locked(struct mc *mc, const void *addr, uint64_t ways)
{
	struct addr group;
	int err = addr_from_user(&group, provider_format(mc->ep->info), addr, 0);

	if (err)
		return err;
	err = ep_worker(mc->ep);
	if (!err)
		err = dgram_join(mc->ep->worker, &group, ways, &mc->fid.fi_addr);
	addr_free(&group);
	return err;
}

/* Posts FI_JOIN_COMPLETE: the join is complete already. */
static int mc_announce(struct mc *mc)
{
	struct fi_eq_entry entry = {.fid = &mc->fid.fid, .context = mc->fid.fid.context};

	return eq_post(mc->ep->eq, FI_JOIN_COMPLETE, &entry, sizeof(entry));
}

static struct mc *mc_new(struct ep *ep, void *context)
{
	struct mc *mc = calloc(1, sizeof(*mc));

	if (!mc)
		return NULL;
	mc->fid.fid = (struct fid){FI_CLASS_MC, context, &mc_fi_ops};
	mc->ep = ep;
	return mc;
}

int mc_join(struct fid_ep *fid, const void *addr, uint64_t flags, struct fid_mc **out,
	    void *context)
{
	struct ep *ep = ep_of(fid)->base;
	struct mc *mc;
	uint64_t ways;
	int err;

	if (flags & FI_COLLECTIVE)
		return coll_join(ep, addr, flags, out, context);
	err = mc_ways_of(ep, flags, &ways);
	if (err)
		return err;
	if (!addr || !out)
		return -FI_EINVAL;
	if (!ep->eq)
		return LOG_REFUSE(
			-FI_ENOEQ, LOG_EP_CTRL,
			"fi_join: no event queue is bound to the endpoint: call fi_ep_bind with one first");
	mc = mc_new(ep, context);
	if (!mc)
		return -FI_ENOMEM;
	domain_lock(ep->dom);
	err = mc_join_locked(mc, addr, ways);
	domain_unlock(ep->dom);
	if (err) {
		free(mc);
		return err;
	}
	ref_get(&ep->ref);
	err = mc_announce(mc);
	if (err) {
		mc_close(&mc->fid.fid);
		return err;
	}
	*out = &mc->fid;
	return 0;
}
