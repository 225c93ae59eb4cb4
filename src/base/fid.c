/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/log.h"
#include "base/fid.h"

int fid_no_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	return LOG_REFUSE(-FI_ENOSYS, LOG_CORE,
			  "nothing can be bound to an object of class %zu (class %zu, flags %#llx)",
			  fid->fclass, other ? other->fclass : 0, (unsigned long long)flags);
}

int fid_no_control(struct fid *fid, int command, void *arg)
{
	(void)arg;
	LOG_INFO(LOG_CORE, "an object of class %zu has no control %d", fid->fclass, command);
	return -FI_ENOSYS;
}

int fid_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	(void)flags, (void)ops, (void)context;
	LOG_INFO(LOG_CORE, "an object of class %zu has no operations \"%s\"", fid->fclass,
		 name ? name : "");
	return -FI_ENOSYS;
}

int fid_no_tostr(const struct fid *fid, char *buf, size_t len)
{
	(void)fid, (void)buf, (void)len;
	return -FI_ENOSYS;
}

int fid_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	(void)flags, (void)ops, (void)context;
	LOG_INFO(LOG_CORE, "operations \"%s\" of an object of class %zu cannot be replaced",
		 name ? name : "", fid->fclass);
	return -FI_ENOSYS;
}

static int closed_close(struct fid *fid)
{
	return LOG_REFUSE(-FI_EINVAL, LOG_CORE, "close: the object at %p has been closed before",
			  (void *)fid);
}

static int closed_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	(void)other, (void)flags;
	return LOG_REFUSE(-FI_EINVAL, LOG_CORE, "bind: the object at %p has been closed before",
			  (void *)fid);
}

static int closed_control(struct fid *fid, int command, void *arg)
{
	(void)arg;
	return LOG_REFUSE(-FI_EINVAL, LOG_CORE,
			  "control %d: the object at %p has been closed before", command,
			  (void *)fid);
}

static struct fi_ops closed_ops = FID_OPS(closed_close, closed_bind, closed_control);

void fid_free(struct fid *fid)
{
	struct fi_ops *volatile *ops =
		&fid->ops; /* volatile: else not written, as nobody may read it */

	*ops = &closed_ops;
	free(fid);
}

int fid_no_call_2_7(void)
{
	return -FI_ENOSYS;
}
