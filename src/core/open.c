/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of the library itself that fi_open gives by name. fi_provider(3) */
#include <rdma/fabric.h>
#include <rdma/fi_ext.h>
#include <stdbool.h>
#include <string.h>

#include "base/log.h"
#include "core/fid.h"

/* ---- "logging": messages go to callbacks of the application ---- */

static struct fi_ops_log *log_ops; /* atomic; of the last import, the application's for ever */
static int log_open;               /* atomic */

static struct fi_ops_log *callbacks(void)
{
	return __atomic_load_n(&log_ops, __ATOMIC_ACQUIRE); /* pairs with logging_bind */
}

static bool sink_enabled(const char *prov, int level, int subsys)
{
	struct fi_provider who = {.name = prov};

	return callbacks()->enabled(&who, (enum fi_log_level)level, (enum fi_log_subsys)subsys, 0);
}

static void sink_write(const struct log_place *place, const char *msg)
{
	struct fi_provider who = {.name = place->prov};

	callbacks()->log(&who, (enum fi_log_level)place->level, (enum fi_log_subsys)place->subsys,
			 place->func, place->line, msg);
}

static const struct log_sink sink = {sink_enabled, sink_write};

static int logging_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fid_logging *theirs = (struct fid_logging *)bfid;

	(void)fid;
	if (flags)
		return -FI_EBADFLAGS;
	if (!bfid || bfid->fclass != FI_CLASS_LOG || !theirs->ops ||
	    theirs->ops->size < sizeof(struct fi_ops_log) || !theirs->ops->enabled ||
	    !theirs->ops->log)
		return -FI_EINVAL;
	__atomic_store_n(&log_ops, theirs->ops, __ATOMIC_RELEASE);
	log_redirect(&sink);
	return 0;
}

static int logging_close(struct fid *fid)
{
	(void)fid;
	__atomic_store_n(&log_open, 0, __ATOMIC_RELEASE);
	return 0;
}

static struct fi_ops logging_ops = {
	.size = sizeof(struct fi_ops),
	.close = logging_close,
	.bind = logging_bind,
	.control = fid_no_control,
	.ops_open = fid_no_ops_open,
	.tostr = fid_no_tostr,
	.ops_set = fid_no_ops_set,
};

static struct fid logging = {.fclass = FI_CLASS_LOG, .ops = &logging_ops};

static int open_logging(size_t attr_len, uint64_t flags, struct fid **fid, void *context)
{
	if (attr_len)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	if (__atomic_exchange_n(&log_open, 1, __ATOMIC_ACQ_REL))
		return -FI_EALREADY;
	logging.context = context;
	*fid = &logging;
	return 0;
}

/*
 * There is no "mr_cache": memory is copied by the processor, nothing of it is registered behind the
 * application's back.
 */
EXTERNALLY_VISIBLE int fi_open(uint32_t version, const char *name, void *attr, size_t attr_len,
			       uint64_t flags, struct fid **fid, void *context)
{
	(void)attr;
	if (!name || !fid)
		return -FI_EINVAL;
	if (FI_VERSION_GE(fi_version(), version) && strcmp(name, "logging") == 0)
		return open_logging(attr_len, flags, fid, context);
	LOG_INFO(LOG_CORE, "fi_open: no object \"%.60s\" for version %u.%u", name,
		 FI_MAJOR(version), FI_MINOR(version));
	return -FI_ENOSYS;
}
