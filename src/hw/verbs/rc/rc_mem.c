/* SPDX-License-Identifier: BSD-2-Clause */
/* Device of an rc domain: memory, limits, texts of errors. */
#include <errno.h>
#include <stdlib.h>

#define LOG_PROV "verbs"
#include "base/forked.h"
#include "base/log.h"
#include "link/link.h"
#include "hw/verbs/rc/rc.h"

static int device_open(const struct addr *at, void **device)
{
	struct verbs_path *path = calloc(1, sizeof(*path));
	int err;

	if (!path)
		return -FI_ENOMEM;
	err = verbs_dev_open(at, path);
	if (err)
		free(path);
	else
		*device = path;
	return err;
}

static void device_close(void *device)
{
	verbs_dev_close(device);
	free(device);
}

static bool device_removed(void *device)
{
	const struct verbs_path *path = device;

	verbs_news_nodes(path->dev);
	return verbs_dev_removed(path->dev);
}

/* Remote writes require local write access, too. */
static int rc_mem_access_of(const struct verbs_dev *dev, uint64_t access)
{
	int bits = 0;

	if (access & (FI_RECV | FI_READ | FI_REMOTE_WRITE))
		bits |= IBV_ACCESS_LOCAL_WRITE;
	if (access & FI_REMOTE_READ)
		bits |= IBV_ACCESS_REMOTE_READ;
	if (access & FI_REMOTE_WRITE)
		bits |= IBV_ACCESS_REMOTE_WRITE;
	if (access & FI_REMOTE_WRITE && dev->attr.atomic_cap != IBV_ATOMIC_NONE)
		bits |= IBV_ACCESS_REMOTE_ATOMIC;
	return bits;
}

/* Memory without pages needs on-demand paging, which is slower than a registration of pages. */
static struct ibv_mr *add_memory(struct verbs_dev *dev, const struct device_region *region)
{
	unsigned int access = (unsigned int)rc_mem_access_of(dev, region->access);
	struct ibv_mr *mr;

	if (region->bare && !dev->pages) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (region->bare)
		return verbs_mem_register(dev, &region->memory, access | IBV_ACCESS_ON_DEMAND);
	mr = verbs_mem_register(dev, &region->memory, access);
	if (!mr && errno == EFAULT && dev->pages)
		mr = verbs_mem_register(dev, &region->memory, access | IBV_ACCESS_ON_DEMAND);
	return mr;
}

static int memory_add(void *device, const struct device_region *region, struct device_memory *mem)
{
	const struct verbs_path *path = device;
	struct verbs_dev *dev = path->dev;
	struct ibv_mr *mr;
	int err;

	mr = !region->dmabuf
		     ? add_memory(dev, region)
		     : dev->lib->reg_dmabuf_mr(dev->pd, region->dmabuf->offset, region->dmabuf->len,
					       (uintptr_t)region->memory.iov_base,
					       region->dmabuf->fd,
					       rc_mem_access_of(dev, region->access));
	err = errno ? errno : FI_ENOMEM;
	if (mr) {
		*mem = (struct device_memory){mr, mr->lkey, mr->rkey};
		return 0;
	}
	if (region->bare)
		LOG_INFO(LOG_MR,
			 "%s has no on-demand paging: we serve memory without FI_MR_ALLOCATED",
			 dev->name);
	else
		LOG_WARN(LOG_MR, "%s does not register %zu bytes at %p%s: %s%s", dev->name,
			 region->memory.iov_len, region->memory.iov_base,
			 region->dmabuf ? " of a dma-buf" : "", fi_strerror(err),
			 err == ENOMEM ? " (how much memory may be locked? ulimit -l)" : "");
	return -err;
}

static int memory_remove(void *device, struct device_memory *mem)
{
	const struct verbs_path *path = device;

	if (path->dev->forked != forked_count())
		return 0;
	return -path->dev->lib->dereg_mr(mem->handle);
}

static void rc_mem_at_most(size_t *value, uint64_t most)
{
	if (*value > most)
		*value = most;
}

static int device_limit(const struct addr *at, struct fi_info *info)
{
	const struct ibv_device_attr *attr;
	struct verbs_path path;
	int err = verbs_dev_open(at, &path);

	if (err)
		return err;
	attr = &path.dev->attr;
	rc_mem_at_most(&info->ep_attr->max_msg_size, path.message_max);
	rc_mem_at_most(&info->ep_attr->max_order_raw_size, path.message_max);
	rc_mem_at_most(&info->ep_attr->max_order_waw_size, path.message_max);
	rc_mem_at_most(&info->tx_attr->size, (uint64_t)attr->max_qp_wr);
	rc_mem_at_most(&info->rx_attr->size, (uint64_t)attr->max_qp_wr);
	rc_mem_at_most(&info->tx_attr->iov_limit, (uint64_t)attr->max_sge);
	rc_mem_at_most(&info->rx_attr->iov_limit, (uint64_t)attr->max_sge);
	rc_mem_at_most(&info->domain_attr->max_ep_srx_ctx,
		       attr->max_srq > 0 ? (uint64_t)attr->max_srq : 0);
	if (attr->atomic_cap == IBV_ATOMIC_NONE) {
		info->caps &= ~FI_ATOMIC;
		info->tx_attr->caps &= ~FI_ATOMIC;
		info->rx_attr->caps &= ~FI_ATOMIC;
	}
	verbs_dev_close(&path);
	return 0;
}

const struct device_ops rc_device = {
	.open = device_open,
	.close = device_close,
	.removed = device_removed,
	.add = memory_add,
	.remove = memory_remove,
	.limit = device_limit,
	.atomic = rc_atomic_valid,
	.srx_open = rc_srx_open,
	.srx_close = rc_srx_close,
	.srx_cancel = rc_srx_cancel,
	.srx_entries = &rc_entries,
	.error_text = verbs_status_text,
};
