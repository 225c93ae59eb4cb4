/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_getname and fi_setname of endpoints of every type. fi_cm(3). */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/ep_cm.h"
#include "info/providers.h"
#include "link/engine.h"

int ep_name_get(fid_t fid, void *addr, size_t *addrlen)
{
	struct ep *ep = (struct ep *)fid;
	int err;

	if (!addrlen || (*addrlen && !addr))
		return -FI_EINVAL;
	domain_lock(ep->dom);
	err = ep_worker(ep);
	if (!err)
		err = addr_to_format(worker_name(ep->worker), provider_format(ep->base->info), addr,
				     addrlen);
	domain_unlock(ep->dom);
	return err;
}

/* Returns -FI_EADDRINUSE if the worker has another string than the one asked for. */
static int check_name(const struct ep *ep, const void *wanted, size_t wanted_len)
{
	const struct addr *name = worker_name(ep->worker);
	struct addr a;
	int err = addr_from_user(&a, provider_format(ep->info), wanted, wanted_len);

	if (err)
		return err;
	err = name->kind != ADDR_STR || strcmp(name->str, a.str) == 0 ? 0 : -FI_EADDRINUSE;
	addr_free(&a);
	return err;
}

/* Opens the worker under the name of ep->info, to report a name in use at once. Locked. */
static int ep_name_take_name(struct ep *ep)
{
	int err = ep_worker(ep);

	if (err)
		return err;
	err = check_name(ep, ep->info->src_addr, ep->info->src_addrlen);
	if (err)
		ep_drop_worker(ep);
	return err;
}

/* An FI_EP_MSG endpoint binds only when it connects. */
static int ep_name_set_name(struct ep *ep, void *addr, size_t addrlen)
{
	struct fi_info *info = ep->info;
	void *old = info->src_addr;
	size_t old_len = info->src_addrlen;
	int err;

	if (ep->worker)
		return -FI_EOPBADSTATE;
	info->src_addr = addr;
	info->src_addrlen = addrlen;
	err = ep->cm ? 0 : ep_name_take_name(ep);
	if (err) {
		info->src_addr = old;
		info->src_addrlen = old_len;
		return err;
	}
	free(old);
	return 0;
}

/* Permitted only before the endpoint has a worker. */
int ep_name_set(fid_t fid, void *addr, size_t addrlen)
{
	struct ep *ep = (struct ep *)fid;
	void *copy;
	int err;

	if (!addr || !addrlen || ep->base != ep)
		return -FI_EINVAL;
	copy = malloc(addrlen);
	if (!copy)
		return -FI_ENOMEM;
	memcpy(copy, addr, addrlen);
	domain_lock(ep->dom);
	err = ep_name_set_name(ep, copy, addrlen);
	domain_unlock(ep->dom);
	if (err)
		free(copy);
	return err;
}
