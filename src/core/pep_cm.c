/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"
#include "core/pep.h"
#include "core/pep_cm.h"

static int pep_cm_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct pep *pep = pep_of((struct fid_pep *)fid);
	struct addr name, old;
	int ret;

	if (!addr || !addrlen)
		return -FI_EINVAL;
	ret = addr_from_user(&name, pep->format, addr, addrlen);
	if (ret)
		return ret;
	lock_take(&pep->lock);
	old = pep->name;
	pep->name = name;
	lock_give(&pep->lock);
	addr_free(&old);
	return 0;
}

static int pep_cm_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct pep *pep = pep_of((struct fid_pep *)fid);
	int ret = -FI_EADDRNOTAVAIL;

	if (!addrlen || (*addrlen && !addr))
		return -FI_EINVAL;
	lock_take(&pep->lock);
	if (pep->name.kind != ADDR_NONE)
		ret = addr_to_user(&pep->name, addr, addrlen);
	lock_give(&pep->lock);
	if (ret == -FI_EADDRNOTAVAIL)
		LOG_WARN(LOG_EP_CTRL, "fi_getname: the passive endpoint was given no address");
	return ret;
}

static int pep_cm_listen(struct fid_pep *fid)
{
	struct pep *pep = pep_of(fid);
	bool bound;

	lock_take(&pep->lock);
	bound = pep->eq != NULL;
	lock_give(&pep->lock);
	if (!bound) {
		LOG_WARN(LOG_EP_CTRL, "fi_listen: the passive endpoint has no event queue");
		return -FI_ENOEQ;
	}
	LOG_WARN(LOG_EP_CTRL, "fi_listen: no transport here accepts connections of FI_EP_MSG");
	return -FI_ENOSYS;
}

static int pep_cm_reject(struct fid_pep *fid, fid_t handle, const void *param, size_t paramlen)
{
	(void)fid;
	(void)handle;
	(void)param;
	(void)paramlen;
	LOG_WARN(LOG_EP_CTRL, "fi_reject: no transport here accepts connections of FI_EP_MSG");
	return -FI_ENOSYS;
}

static int no_getpeer(struct fid_ep *fid, void *addr, size_t *addrlen)
{
	(void)fid;
	(void)addr;
	(void)addrlen;
	return -FI_ENOSYS;
}

static int no_connect(struct fid_ep *fid, const void *addr, const void *param, size_t paramlen)
{
	(void)fid;
	(void)addr;
	(void)param;
	(void)paramlen;
	return -FI_ENOSYS;
}

static int no_accept(struct fid_ep *fid, const void *param, size_t paramlen)
{
	(void)fid;
	(void)param;
	(void)paramlen;
	return -FI_ENOSYS;
}

static int no_shutdown(struct fid_ep *fid, uint64_t flags)
{
	(void)fid;
	(void)flags;
	return -FI_ENOSYS;
}

static int no_join(struct fid_ep *fid, const void *addr, uint64_t flags, struct fid_mc **mc,
		   void *context)
{
	(void)fid;
	(void)addr;
	(void)flags;
	(void)mc;
	(void)context;
	return -FI_ENOSYS;
}

struct fi_ops_cm pep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = pep_cm_setname,
	.getname = pep_cm_getname,
	.getpeer = no_getpeer,
	.connect = no_connect,
	.listen = pep_cm_listen,
	.accept = no_accept,
	.reject = pep_cm_reject,
	.shutdown = no_shutdown,
	.join = no_join,
};
