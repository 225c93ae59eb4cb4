/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of endpoints; connections belong to endpoint types there are none of yet. fi_cm(3). */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/ep.h"
#include "xfer/xfer.h"

static int ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct ep *ep = (struct ep *)fid;
	int err;

	if (!addrlen || (*addrlen && !addr))
		return -FI_EINVAL;
	lock_take(&ep->dom->lock);
	err = ep_port(ep);
	if (!err)
		err = addr_to_user(port_name(ep->port), addr, addrlen);
	lock_give(&ep->dom->lock);
	return err;
}

/* Only before anything made the endpoint listen. */
static int ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct ep *ep = (struct ep *)fid;
	void *copy;

	if (!addr || !addrlen || ep->base != ep)
		return -FI_EINVAL;
	if (ep->port)
		return -FI_EOPBADSTATE;
	copy = malloc(addrlen);
	if (!copy)
		return -FI_ENOMEM;
	memcpy(copy, addr, addrlen);
	free(ep->info->src_addr);
	ep->info->src_addr = copy;
	ep->info->src_addrlen = addrlen;
	return 0;
}

static int no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	(void)ep, (void)addr, (void)addrlen;
	return -FI_ENOTCONN;
}

static int no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	(void)ep, (void)addr, (void)param, (void)paramlen;
	return -FI_ENOSYS;
}

static int no_listen(struct fid_pep *pep)
{
	(void)pep;
	return -FI_ENOSYS;
}

static int no_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	(void)ep, (void)param, (void)paramlen;
	return -FI_ENOSYS;
}

static int no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	(void)pep, (void)handle, (void)param, (void)paramlen;
	return -FI_ENOSYS;
}

static int no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)ep, (void)flags;
	return -FI_ENOSYS;
}

static int no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		   void *context)
{
	(void)ep, (void)addr, (void)flags, (void)mc, (void)context;
	return -FI_ENOSYS;
}

struct fi_ops_cm ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = no_getpeer,
	.connect = no_connect,
	.listen = no_listen,
	.accept = no_accept,
	.reject = no_reject,
	.shutdown = no_shutdown,
	.join = no_join,
};
