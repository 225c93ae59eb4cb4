/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/mr_nic.h"

#include "base/log.h"
#include "info/ifaces.h"
#include "core/mr_table.h"
#include "info/rdma_ports.h"
#include "info/providers.h"
#include "link/link.h"

#define WRITERS  (FI_RECV | FI_READ | FI_REMOTE_WRITE) /* rights by which a device writes */
#define FIND_MAX 32 /* limit of regions searched, last used first */

/* Gets the address that endpoints of the domain most likely have. 0 or a negative error. */
static int mr_nic_address_of(const struct domain *dom, struct addr *at)
{
	const struct fi_info *info = dom->info;
	int err, family = info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;

	if (info->src_addr) {
		err = addr_from_user(at, provider_format(info), info->src_addr, info->src_addrlen);
		if (err || !addr_is_any(at))
			return err;
		family = at->kind == ADDR_IN6 ? AF_INET6 : AF_INET;
	}
	return ifaces_default(family, at);
}

/* What registers memory for the engine's transport, too. NULL: there are no such devices in this build. */
static const struct device_ops *mr_nic_devices(void)
{
	const struct transport *t = transport_of(PROVIDER_RC);

	return t ? t->device : NULL;
}

static bool mr_nic_wanted(const struct domain *dom)
{
	const struct provider *v = provider_of(dom->info);

	return !dom->device_ops && v && v->transports & PROVIDER_VERBS && mr_nic_devices() &&
	       mr_object_mode(dom, FI_MR_PROV_KEY) && mr_object_mode(dom, FI_MR_VIRT_ADDR);
}

static void look_for_device(struct domain *dom)
{
	struct rdma_port port;
	struct addr at;

	dom->nic_tried = true;
	if (!mr_nic_wanted(dom) || !rdma_ports_any() || mr_nic_address_of(dom, &at))
		return;
	if (at.kind != ADDR_STR && rdma_ports_find(&at, &port) &&
	    mr_nic_devices()->open(&at, &dom->nic))
		dom->nic = NULL;
	addr_free(&at);
}

bool mr_nic_open(struct domain *dom)
{
	if (domain_foreign(dom))
		return false;
	mr_nic_let_go(dom);
	if (!dom->nic && (!dom->nic_tried || dom->nic_lost))
		look_for_device(dom);
	return dom->nic && !mr_nic_devices()->removed(dom->nic);
}

void mr_nic_let_go(struct domain *dom)
{
	if (!dom->nic || dom->nic_uses || domain_foreign(dom) ||
	    !mr_nic_devices()->removed(dom->nic))
		return;
	mr_nic_close(dom);
	dom->nic_lost = true;
}

void mr_nic_close(struct domain *dom)
{
	if (dom->nic)
		mr_nic_devices()->close(dom->nic);
	dom->nic = NULL;
}

/*
 * Returns whether a device may have the region. Accesses that are counted, or to regions not yet
 * enabled, go through us.
 */
static bool mr_nic_suits(const struct region *r)
{
	return r->mr.enabled && r->mr.iov_count == 1 && r->mr.length &&
	       r->mr.length < SIZE_MAX / 2 && !(r->mr.flags & FI_RMA_EVENT);
}

struct device_region mr_nic_memory(const struct region *r)
{
	return (struct device_region){.memory = *r->mr.iov,
				      .access = r->mr.access,
				      .bare = !mr_object_mode(r->mr.dom, FI_MR_ALLOCATED)};
}

static void drop_use(struct domain *dom)
{
	dom->nic_uses--;
	mr_nic_let_go(dom);
}

void mr_nic_add(struct domain *dom, struct region *r)
{
	struct device_region region;
	struct device_memory mem;
	bool there;

	list_init(&r->in_nic);
	list_init(&r->further);
	if (!mr_nic_suits(r))
		return;
	domain_lock(dom);
	there = mr_nic_open(dom);
	dom->nic_uses += there;
	domain_unlock(dom);
	if (!there)
		return;
	region = mr_nic_memory(r);
	if (mr_nic_devices()->add(dom->nic, &region, &mem)) {
		domain_lock(dom);
		drop_use(dom);
		domain_unlock(dom);
		return;
	}
	r->mr.handle = mem.handle;
	r->mr.lkey = mem.lkey;
	r->mr.rkey = mem.rkey;
}

void mr_nic_enter(struct domain *dom, struct region *r)
{
	if (r->mr.handle)
		list_push_front(&dom->nic_regions, &r->in_nic);
}

void mr_nic_remove(struct domain *dom, struct region *r)
{
	struct device_memory mem = {r->mr.handle, r->mr.lkey, r->mr.rkey};
	int err;

	if (!mem.handle)
		return;
	list_remove(&r->in_nic);
	while (!list_empty(&r->further)) {
		struct mr_further *f = LIST_ENTRY(r->further.next, struct mr_further, in_region);

		f->remove(f);
	}
	r->mr.handle = NULL;
	err = mr_nic_devices()->remove(dom->nic, &mem);
	if (err)
		LOG_WARN(LOG_MR, "an RDMA device cannot deregister a region: %s",
			 fi_strerror(-err));
	drop_use(dom);
}

struct region *mr_nic_region(const struct domain *dom, uint64_t key)
{
	struct region *r = mr_table_find(dom->mrs, key);

	return r && r->mr.handle && mr_key_in_nic(key) ? r : NULL;
}

bool mr_nic_find(struct domain *dom, const struct iovec *memory, bool write, uint32_t *lkey)
{
	unsigned int looked = 0;

	LIST_EACH_SAFE (node, &dom->nic_regions) {
		struct region *r = LIST_ENTRY(node, struct region, in_nic);

		if (looked++ == FIND_MAX)
			break;
		if (!mr_object_covers(&r->mr, memory) || (write && !(r->mr.access & WRITERS)))
			continue;
		list_remove(node);
		list_push_front(&dom->nic_regions, node);
		*lkey = r->mr.lkey;
		return true;
	}
	return false;
}
