/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/open_cache.h"

#include "base/fid.h"
#include "base/log.h"
#include "base/monitor.h"

/* fi_import_fid: takes a memory monitor of the application, which stays when this object closes. */
static int cache_bind(struct fid *fid, struct fid *monitor, uint64_t flags)
{
	(void)fid;
	if (flags)
		return LOG_REFUSE(-FI_EINVAL, LOG_MR, "mr_cache: flags %#llx of an import",
				  (unsigned long long)flags);
	return monitor_import((struct fid_mem_monitor *)monitor);
}

static int open_cache_close(struct fid *fid)
{
	(void)fid;
	return 0;
}

static struct fi_ops cache_ops = FID_OPS(open_cache_close, cache_bind, fid_no_control);

int open_cache(size_t attr_len, uint64_t flags, struct fid **fid)
{
	static struct fid cache = {.fclass = FI_CLASS_MR_CACHE, .ops = &cache_ops};

	if (attr_len || flags)
		LOG_WARN(LOG_MR, "fi_open \"mr_cache\": attributes of %zu bytes, flags %#llx",
			 attr_len, (unsigned long long)flags);
	if (attr_len)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	*fid = &cache;
	return 0;
}
