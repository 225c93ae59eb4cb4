/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"
#include "base/fid.h"

int fid_no_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	LOG_WARN(LOG_CORE,
		 "nothing can be bound to an object of class %zu (class %zu, flags %#llx)",
		 fid->fclass, other ? other->fclass : 0, (unsigned long long)flags);
	return -FI_ENOSYS;
}

int fid_no_control(struct fid *fid, int command, void *arg)
{
	(void)arg;
	LOG_INFO(LOG_CORE, "an object of class %zu has no control %d", fid->fclass, command);
	return -FI_ENOSYS;
}

int fid_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	(void)flags;
	(void)ops;
	(void)context;
	LOG_INFO(LOG_CORE, "an object of class %zu has no operations \"%s\"", fid->fclass,
		 name ? name : "");
	return -FI_ENOSYS;
}

int fid_no_tostr(const struct fid *fid, char *buf, size_t len)
{
	(void)fid;
	(void)buf;
	(void)len;
	return -FI_ENOSYS;
}

int fid_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	(void)flags;
	(void)ops;
	(void)context;
	LOG_INFO(LOG_CORE, "operations \"%s\" of an object of class %zu cannot be replaced",
		 name ? name : "", fid->fclass);
	return -FI_ENOSYS;
}

int fid_no_call_2_7(void)
{
	return -FI_ENOSYS;
}
