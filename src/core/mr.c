/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/iov.h"
#include "base/log.h"
#include "core/av.h"
#include "core/eq.h"
#include "core/mr_nic.h"
#include "core/mr_share.h"
#include "core/mr_table.h"
#include "info/rules.h"
#include "link/link.h"

#define ACCESS                                                                                     \
	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_COLLECTIVE)

/* Accepted flags. All but FI_RMA_EVENT only describe the memory, and have no effect here. */
#define FLAGS (FI_RMA_EVENT | FI_RMA_PMEM | FI_HMEM_DEVICE_ONLY | FI_HMEM_HOST_ALLOC)

/* Sums the bytes of all segments. -FI_EINVAL: no segment, too many, or beyond the address space; logs which. */
static int total_length(const struct iovec *iov, size_t count, size_t *total)
{
	if (!count || IOV_ADD_UP(iov, iov_len, count, RULES_IOV_MAX, total))
		return LOG_REFUSE(-FI_EINVAL, LOG_MR, "registration of %zu segments", count);
	for (size_t i = 0; i < count; i++) {
		uintptr_t base = (uintptr_t)iov[i].iov_base;

		/* NULL with SIZE_MAX is the whole address space. */
		if (iov[i].iov_len <= SIZE_MAX - base)
			continue;
		return LOG_REFUSE(-FI_EINVAL, LOG_MR,
				  "registration of %zu bytes at %#lx: not in the address space",
				  iov[i].iov_len, (unsigned long)base);
	}
	return 0;
}

static int check_no_key(const struct domain *dom, const struct fi_mr_attr *attr)
{
	if (FI_VERSION_LT(domain_api(dom), FI_VERSION(1, 5)) || !attr->auth_key_size)
		return 0;
	return LOG_REFUSE(-FI_EINVAL, LOG_MR,
			  "a region has no key of its own: auth_key_size is %zu",
			  attr->auth_key_size);
}

/*
 * FI_AV_AUTH_KEY: the region names the address vector that has its keys. Peers of all of them may access it; src_addr
 * counts in domains with FI_DIRECTED_RECV. fi_mr(3)
 */
static int check_vector(const struct domain *dom, const struct fi_mr_attr *attr)
{
	const struct fi_mr_auth_key *keys = (const struct fi_mr_auth_key *)attr->auth_key;
	uint64_t caps = dom->info->caps | dom->info->domain_attr->caps;

	if (attr->auth_key_size != sizeof(*keys) || !keys || !keys->av ||
	    av_of(keys->av)->dom != dom)
		return LOG_REFUSE(-FI_EINVAL, LOG_MR,
				  "FI_AV_AUTH_KEY: auth_key has to be a struct fi_mr_auth_key with "
				  "an address vector of the domain: use fi_mr_regattr");
	if (caps & FI_DIRECTED_RECV && keys->src_addr != FI_ADDR_UNSPEC)
		return LOG_REFUSE(-FI_EOPNOTSUPP, LOG_MR,
				  "src_addr %#llx: a region is not limited to one peer",
				  (unsigned long long)keys->src_addr);
	return 0;
}

/* Checks the attributes. An application built for an older API has no later members: they are not read. */
static int mr_check_attr(const struct domain *dom, const struct fi_mr_attr *attr, uint64_t flags)
{
	if (flags & FI_MR_SINGLE_USE)
		return LOG_REFUSE(
			-FI_EOPNOTSUPP, LOG_MR,
			"FI_MR_SINGLE_USE is not supported: register without it, and close the region after its use");
	if (flags & FI_AUTH_KEY && dom->max_keys)
		return LOG_REFUSE(
			-FI_EOPNOTSUPP, LOG_MR,
			"FI_AUTH_KEY: a region is not limited to one key: register without it");
	if (flags & ~FLAGS)
		return LOG_REFUSE(-FI_EBADFLAGS, LOG_MR, "registration with unknown flags %#llx",
				  (unsigned long long)(flags & ~FLAGS));
	if (attr->offset != 0)
		return LOG_REFUSE(-FI_EINVAL, LOG_MR,
				  "registration with offset %llu, which must be 0",
				  (unsigned long long)attr->offset);
	if (attr->access & ~ACCESS)
		LOG_INFO(LOG_MR, "access rights %#llx are unknown and ignored",
			 (unsigned long long)(attr->access & ~ACCESS));
	return dom->max_keys ? check_vector(dom, attr) : check_no_key(dom, attr);
}

static struct region *mr_base_of(const struct domain *dom, const struct fi_mr_attr *attr)
{
	if (FI_VERSION_LT(domain_api(dom), FI_VERSION(2, 0)) || !attr->base_mr)
		return NULL;
	return (struct region *)attr->base_mr;
}

/* Returns whether all segments lie inside the base region. */
static bool mr_inside(const struct iovec *iov, size_t count, const struct mr *mr)
{
	for (size_t i = 0; i < count; i++) {
		if (!mr_object_covers(mr, &iov[i]))
			return false;
	}
	return true;
}

static int set_segments(struct region *r, const struct iovec *iov, size_t count)
{
	r->mr.iov = &r->one;
	if (count > 1)
		r->mr.iov = malloc(count * sizeof(*iov));
	if (!r->mr.iov)
		return -FI_ENOMEM;
	memcpy(r->mr.iov, iov, count * sizeof(*iov));
	r->mr.iov_count = count;
	return 0;
}

static int new_region(struct domain *dom, const struct fi_mr_attr *attr, uint64_t flags,
		      struct region **region)
{
	struct region *r = calloc(1, sizeof(*r));

	if (!r)
		return -FI_ENOMEM;
	if (set_segments(r, attr->mr_iov, attr->iov_count)) {
		free(r);
		return -FI_ENOMEM;
	}
	r->mr.fid = (struct fid_mr){
		.fid = {FI_CLASS_MR, attr->context, &mr_object_ops},
		.mem_desc = r,
		.key = FI_KEY_NOTAVAIL,
	};
	r->mr.dom = dom;
	r->mr.access = attr->access & ACCESS;
	r->mr.flags = flags;
	r->mr.offset = mr_object_mode(dom, FI_MR_VIRT_ADDR) ? (uintptr_t)r->mr.iov[0].iov_base : 0;
	r->mr.enabled = !mr_object_mode(dom, FI_MR_ENDPOINT) &&
			!(mr_object_mode(dom, FI_MR_RMA_EVENT) && (flags & FI_RMA_EVENT));
	r->base = mr_base_of(dom, attr);
	*region = r;
	return 0;
}

/* Registers the region with the domain's device; the table does not have it. */
static int enter_device(struct domain *dom, struct region *r, const struct fi_mr_dmabuf *dmabuf)
{
	struct device_region region = {
		.memory = *r->mr.iov, .access = r->mr.access, .dmabuf = dmabuf};
	struct device_memory mem;
	int ret;

	if (r->mr.iov_count != 1)
		return -FI_EINVAL;
	ret = dom->device_ops->add(dom->device, &region, &mem);
	if (ret)
		return ret;
	r->mr.handle = mem.handle;
	r->mr.lkey = mem.lkey;
	r->mr.rkey = mem.rkey;
	if (mr_is_remote(&r->mr))
		r->mr.fid.key = mem.rkey;
	domain_lock(dom);
	if (r->base)
		r->base->subs++;
	domain_unlock(dom);
	ref_get(&dom->ref);
	return 0;
}

static int mr_enter(struct domain *dom, struct region *r, uint64_t key)
{
	int ret;

	mr_nic_add(dom, r);
	domain_lock(dom);
	ret = mr_table_add(dom->mrs, r, mr_object_mode(dom, FI_MR_PROV_KEY), &key);
	if (ret)
		mr_nic_remove(dom, r);
	if (!ret)
		mr_nic_enter(dom, r);
	if (!ret)
		mr_share_update(dom, r);
	if (!ret && r->base)
		r->base->subs++;
	domain_unlock(dom);
	if (ret)
		LOG_WARN(LOG_MR, "key %#llx: %s", (unsigned long long)key, fi_strerror(-ret));
	else
		ref_get(&dom->ref);
	return ret;
}

/* Posts FI_MR_COMPLETE if the domain is bound with FI_REG_MR; *mr is set before. */
static int mr_announce(struct domain *dom, struct region *r)
{
	struct fi_eq_entry entry = {.fid = &r->mr.fid.fid, .context = r->mr.fid.fid.context};

	if (!dom->eq || !(dom->eq_flags & FI_REG_MR))
		return 0;
	return eq_post(dom->eq, FI_MR_COMPLETE, &entry, sizeof(entry));
}

/* `dmabuf`: describes the memory, or NULL. */
static int reg_memory(struct domain *dom, const struct fi_mr_attr *attr, uint64_t flags,
		      const struct fi_mr_dmabuf *dmabuf, struct fid_mr **mr)
{
	struct region *r;
	size_t length;
	int ret = mr_check_attr(dom, attr, flags);

	if (!ret)
		ret = total_length(attr->mr_iov, attr->iov_count, &length);
	if (ret)
		return ret;
	if (mr_base_of(dom, attr) &&
	    !mr_inside(attr->mr_iov, attr->iov_count, &mr_base_of(dom, attr)->mr))
		return LOG_REFUSE(
			-FI_EINVAL, LOG_MR,
			"registration: the %zu segments are not inside base_mr, of key %#llx",
			attr->iov_count, (unsigned long long)mr_base_of(dom, attr)->mr.fid.key);
	ret = new_region(dom, attr, flags, &r);
	if (ret)
		return ret;
	r->mr.length = length;
	ret = dom->device_ops ? enter_device(dom, r, dmabuf)
			      : mr_enter(dom, r, attr->requested_key);
	if (ret) {
		mr_object_free(r);
		return ret;
	}
	*mr = &r->mr.fid;
	ret = mr_announce(dom, r);
	if (ret)
		mr_object_ops.close(&r->mr.fid.fid);
	return ret;
}

/* Registers memory of another device. Only an RDMA device can access it. fi_mr(3) of 1.20 */
static int reg_dmabuf(struct domain *dom, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **mr)
{
	const struct fi_mr_dmabuf *dmabuf = attr->dmabuf;
	struct fi_mr_attr plain = *attr;
	struct iovec memory;

	if (!dom->device_ops || FI_VERSION_LT(domain_api(dom), FI_VERSION(1, 20)))
		return LOG_REFUSE(-FI_EBADFLAGS, LOG_MR,
				  "FI_MR_DMABUF needs an FI_EP_MSG domain of verbs and API 1.20");
	if (!dmabuf || dmabuf->fd < 0)
		return -FI_EINVAL;
	memory = (struct iovec){(char *)dmabuf->base_addr + dmabuf->offset, dmabuf->len};
	plain.mr_iov = &memory;
	plain.iov_count = 1;
	return reg_memory(dom, &plain, flags & ~FI_MR_DMABUF, dmabuf, mr);
}

static int reg_attr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		    struct fid_mr **mr)
{
	struct domain *dom = domain_of((struct fid_domain *)fid);

	if (fid->fclass != FI_CLASS_DOMAIN || !attr || !mr)
		return -FI_EINVAL;
	if (flags & FI_MR_DMABUF)
		return reg_dmabuf(dom, attr, flags, mr);
	return reg_memory(dom, attr, flags, NULL, mr);
}

static int reg_vector(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		      uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		      void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
	};

	return reg_attr(fid, &attr, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		  uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};

	return reg_vector(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

const struct fi_ops_mr mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = reg_vector,
	.regattr = reg_attr,
};

/* Does a region that grants `r` allow the access? 0 or a negative error, logged. */
static int mr_check_grant(const struct mr_grant *r, uint64_t addr, size_t len, uint64_t access)
{
	uint64_t at = addr - r->offset; /* wraps below the region, and is then too big */

	if (access & ~r->access) {
		LOG_INFO(LOG_MR, "key %#llx: access %#llx wanted, %#llx granted",
			 (unsigned long long)r->key, (unsigned long long)access,
			 (unsigned long long)r->access);
		return -FI_EACCES;
	}
	if (at > r->length || len > r->length - at) {
		LOG_INFO(LOG_MR, "key %#llx: %zu bytes at %#llx, the region has %zu at %#llx",
			 (unsigned long long)r->key, len, (unsigned long long)addr, r->length,
			 (unsigned long long)r->offset);
		return -FI_EINVAL;
	}
	return 0;
}

struct mr *mr_granted(const struct domain *dom, uint64_t key, uint64_t addr, size_t len,
		      uint64_t access)
{
	struct region *r = mr_table_find(dom->mrs, key);
	uint64_t at;

	if (!r || !r->mr.enabled || access & ~r->mr.access)
		return NULL;
	at = addr - r->mr.offset; /* wraps as in `check` */
	return at <= r->mr.length && len <= r->mr.length - at ? &r->mr : NULL;
}

int mr_check(struct domain *dom, uint64_t key, uint64_t addr, size_t len, uint64_t access,
	     struct mr **mr)
{
	const struct region *r;

	*mr = mr_granted(dom, key, addr, len, access);
	if (*mr)
		return 0;
	r = mr_table_find(dom->mrs, key);
	if (!r || !r->mr.enabled) {
		LOG_INFO(LOG_MR, "key %#llx: %s", (unsigned long long)key,
			 r ? "region not enabled" : "no such region");
		return -FI_ENOKEY;
	}
	return mr_check_grant(&(struct mr_grant){key, r->mr.access, r->mr.offset, r->mr.length},
			      addr, len, access);
}

int mr_check_past(struct domain *dom, uint64_t key, uint64_t addr, size_t len, uint64_t access,
		  struct mr **mr)
{
	const struct mr_grant *closed = mr_table_closed(dom->mrs, key);

	if (mr_table_find(dom->mrs, key) || !closed)
		return mr_check(dom, key, addr, len, access, mr);
	*mr = NULL;
	return mr_check_grant(closed, addr, len, access);
}

bool mr_closed_lately(const struct domain *dom, uint64_t key)
{
	return mr_table_closed(dom->mrs, key);
}

/* Copies the raw key, which is the key. Nothing has to be unmapped. */
static int map_raw(const struct fi_mr_map_raw *arg)
{
	if (arg->flags)
		return -FI_EBADFLAGS;
	if (!arg->raw_key || !arg->key || arg->key_size != sizeof(*arg->key))
		return -FI_EINVAL;
	memcpy(arg->key, arg->raw_key, sizeof(*arg->key));
	return 0;
}

int mr_domain_control(int command, void *arg)
{
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_MAP_RAW_MR)
		return map_raw(arg);
	return command == FI_UNMAP_KEY ? 0 : -FI_ENOSYS;
}
