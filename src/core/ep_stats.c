/* SPDX-License-Identifier: BSD-2-Clause */
/* What an endpoint keeps for its peers: struct fi_weft_stats. */
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_weft.h>
#include <string.h>

#include "base/fid.h"
#include "core/ep.h"
#include "link/engine.h"

static int stats_read(struct fid *fid, struct fi_weft_stats *stats, size_t size)
{
	struct fi_weft_stats all = {.size = size < sizeof(all) ? size : sizeof(all)};
	struct ep *ep = (struct ep *)fid;
	int err = 0;

	if (!stats || size < sizeof(stats->size))
		return -FI_EINVAL;
	domain_lock(ep->dom);
	if (ep->worker)
		worker_stats(ep->worker, &all);
	else
		err = -FI_EOPBADSTATE;
	domain_unlock(ep->dom);
	if (!err)
		memcpy(stats, &all, all.size);
	return err;
}

static const struct fi_weft_ops_stats stats_ops = {
	.size = sizeof(stats_ops),
	.read = stats_read,
};

int ep_stats_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	if (!name || strcmp(name, FI_WEFT_STATS) != 0)
		return fid_no_ops_open(fid, name, flags, ops, context);
	if (!ops || flags)
		return -FI_EINVAL;
	*ops = (void *)(uintptr_t)&stats_ops;
	return 0;
}
