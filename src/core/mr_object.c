/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cntr/cntr.h"
#include "core/ep.h"
#include "base/fid.h"
#include "core/mr_nic.h"
#include "core/mr_table.h"
#include "core/mr_share.h"
#include "info/hints.h"
#include "link/link.h"

bool mr_object_mode(const struct domain *dom, int bit)
{
	return hints_mr_bits(dom->info->domain_attr->mr_mode) & bit;
}

bool mr_object_covers(const struct mr *mr, const struct iovec *range)
{
	uintptr_t at = (uintptr_t)range->iov_base;

	for (size_t i = 0; i < mr->iov_count; i++) {
		uintptr_t base = (uintptr_t)mr->iov[i].iov_base;
		size_t len = mr->iov[i].iov_len;

		if (at >= base && at - base <= len && range->iov_len <= len - (at - base))
			return true;
	}
	return false;
}

void mr_object_free(struct region *r)
{
	if (r->mr.iov != &r->one)
		free(r->mr.iov);
	fid_free(&r->mr.fid.fid);
}

/*
 * Waits for accesses under way, and removes the region from all tables. Domain locked. 0 or a
 * negative error: the region stays.
 */
static int mr_object_take_out(struct domain *dom, struct region *r)
{
	struct device_memory mem = {r->mr.handle, r->mr.lkey, r->mr.rkey};
	int err;

	if (dom->device_ops)
		return dom->device_ops->remove(dom->device, &mem);
	mr_share_remove(dom, r);
	err = driven_quiesce_all(dom);
	if (err) {
		mr_share_update(dom, r);
		return err;
	}
	mr_nic_remove(dom, r);
	mr_table_remove(dom->mrs, r);
	return 0;
}

/*
 * Lookups hold the domain's lock, so a region that is out of the table is not in use here. take_out
 * waits for peers that access the memory directly.
 */
static int mr_close(struct fid *fid)
{
	struct region *r = (struct region *)fid;
	struct domain *dom = r->mr.dom;
	int err;

	if (domain_foreign(dom))
		return 0;
	domain_lock(dom);
	if (r->subs > 0) {
		domain_unlock(dom);
		return LOG_REFUSE(-FI_EBUSY, LOG_MR, "region %#llx is the base of %d others",
				  (unsigned long long)r->mr.fid.key, r->subs);
	}
	err = mr_object_take_out(dom, r);
	if (err) {
		domain_unlock(dom);
		return err;
	}
	if (r->base)
		r->base->subs--;
	domain_unlock(dom);
	if (r->mr.cntr)
		ref_put(&r->mr.cntr->ref);
	mr_object_free(r);
	ref_put(&dom->ref);
	return 0;
}

static int mr_object_bind_cntr(struct region *r, struct cntr *cntr, uint64_t flags)
{
	int err;

	if (r->sealed)
		return -FI_EOPBADSTATE;
	/* A device does not report accesses of peers. */
	if (r->mr.dom->device_ops)
		return -FI_EOPNOTSUPP;
	if (flags == 0 || (flags & ~(FI_REMOTE_READ | FI_REMOTE_WRITE)))
		return -FI_EBADFLAGS;
	if (cntr->dom != r->mr.dom)
		return -FI_EDOMAIN;
	if (r->mr.cntr && r->mr.cntr != cntr)
		return -FI_EBUSY;
	err = cntr_join(cntr);
	if (err)
		return err;
	if (!r->mr.cntr)
		ref_get(&cntr->ref);
	r->mr.cntr = cntr;
	r->mr.cntr_flags |= flags;
	mr_nic_remove(r->mr.dom,
		      r); /* a device counts nothing: peers have to send requests instead */
	mr_share_update(r->mr.dom, r);
	return 0;
}

/* Without FI_MR_ENDPOINT the binding has no effect, and is permitted at any time. */
static int bind_ep(struct region *r, struct ep *ep, uint64_t flags)
{
	if (r->sealed && mr_object_mode(r->mr.dom, FI_MR_ENDPOINT))
		return -FI_EOPBADSTATE;
	if (flags != 0)
		return -FI_EBADFLAGS;
	if (ep->dom != r->mr.dom)
		return -FI_EDOMAIN;
	r->mr.ep = &ep->fid;
	return 0;
}

static int bind_any(struct region *r, struct fid *bfid, uint64_t flags)
{
	switch (bfid->fclass) {
	case FI_CLASS_CNTR:
		return mr_object_bind_cntr(r, (struct cntr *)bfid, flags);
	case FI_CLASS_EP:
	case FI_CLASS_SEP:
	case FI_CLASS_RX_CTX:
	case FI_CLASS_TX_CTX:
		return bind_ep(r, (struct ep *)bfid, flags);
	default:
		return -FI_EINVAL;
	}
}

static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct region *r = (struct region *)fid;
	int ret;

	if (!bfid)
		return -FI_EINVAL;
	domain_lock(r->mr.dom);
	ret = bind_any(r, bfid, flags);
	domain_unlock(r->mr.dom);
	if (ret)
		LOG_WARN(LOG_MR, "bind to an object of class %zu, flags %#llx: %s", bfid->fclass,
			 (unsigned long long)flags, fi_strerror(-ret));
	return ret;
}

static int mr_object_enable(struct region *r)
{
	struct domain *dom = r->mr.dom;
	bool lacks_ep = mr_object_mode(dom, FI_MR_ENDPOINT) && !r->mr.ep;

	if (lacks_ep)
		return LOG_REFUSE(-FI_EOPBADSTATE, LOG_MR,
				  "region %#llx must be bound to an endpoint before it is enabled",
				  (unsigned long long)r->mr.fid.key);
	domain_lock(dom);
	r->mr.enabled = true;
	r->sealed = true;
	mr_share_update(dom, r);
	domain_unlock(dom);
	return 0;
}

/* Returns the raw key, which is the key (8 bytes), and the base address. */
static int get_raw(const struct mr *mr, const struct fi_mr_raw_attr *arg)
{
	size_t room;

	if (arg->flags)
		return -FI_EBADFLAGS;
	if (mr->fid.key == FI_KEY_NOTAVAIL)
		return -FI_ENOKEY;
	if (!arg->key_size)
		return -FI_EINVAL;
	room = *arg->key_size;
	*arg->key_size = sizeof(mr->fid.key);
	if (room < sizeof(mr->fid.key))
		return -FI_ETOOSMALL;
	if (!arg->raw_key || !arg->base_addr)
		return -FI_EINVAL;
	memcpy(arg->raw_key, &mr->fid.key, sizeof(mr->fid.key));
	*arg->base_addr = mr->offset;
	return 0;
}

/* Only checks the arguments: new pages at old addresses need no refresh. */
static int mr_object_refresh(const struct mr *mr, const struct fi_mr_modify *arg)
{
	if (arg->flags)
		return -FI_EBADFLAGS;
	for (size_t i = 0; arg->attr.mr_iov && i < arg->attr.iov_count; i++) {
		if (!mr_object_covers(mr, &arg->attr.mr_iov[i]))
			return -FI_EINVAL;
	}
	return 0;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	struct region *r = (struct region *)fid;

	switch (command) {
	case FI_ENABLE:
		return mr_object_enable(r);
	case FI_GET_RAW_MR:
		return arg ? get_raw(&r->mr, arg) : -FI_EINVAL;
	case FI_REFRESH:
		return arg ? mr_object_refresh(&r->mr, arg) : -FI_EINVAL;
	default:
		return -FI_ENOSYS;
	}
}

struct fi_ops mr_object_ops = FID_OPS(mr_close, mr_bind, mr_control);
