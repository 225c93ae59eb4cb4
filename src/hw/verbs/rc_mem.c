/* SPDX-License-Identifier: BSD-2-Clause */
/* The device of a domain of bare queue pairs: memory, limits, and what its errors mean. */
#include <errno.h>
#include <stdlib.h>

#define LOG_PROV "verbs"
#include "base/forked.h"
#include "base/log.h"
#include "hw/link.h"
#include "hw/verbs/rc.h"
#include "hw/verbs/rc_srx.h"

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

/* Devices want local writing where they write at all. */
static int access_of(const struct verbs_dev *dev, uint64_t access)
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

static int memory_add(void *device, const struct iovec *memory, uint64_t access,
		      struct device_memory *mem)
{
	const struct verbs_path *path = device;
	const struct verbs_dev *dev = path->dev;
	struct ibv_mr *mr = dev->lib->reg_mr(dev->pd, memory->iov_base, memory->iov_len,
					     access_of(dev, access));

	if (!mr) {
		int err = errno ? errno : FI_ENOMEM;

		LOG_WARN(LOG_MR, "%s does not register %zu bytes at %p: %s%s", dev->name,
			 memory->iov_len, memory->iov_base, fi_strerror(err),
			 err == ENOMEM ? " (how much memory may be locked? ulimit -l)" : "");
		return -err;
	}
	*mem = (struct device_memory){mr, mr->lkey, mr->rkey};
	return 0;
}

static int memory_remove(void *device, struct device_memory *mem)
{
	const struct verbs_path *path = device;

	if (path->dev->forked != forked_count())
		return 0;
	return -path->dev->lib->dereg_mr(mem->handle);
}

static void at_most(size_t *value, uint64_t most)
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
	at_most(&info->ep_attr->max_msg_size, path.message_max);
	at_most(&info->ep_attr->max_order_raw_size, path.message_max);
	at_most(&info->ep_attr->max_order_waw_size, path.message_max);
	at_most(&info->tx_attr->size, (uint64_t)attr->max_qp_wr);
	at_most(&info->rx_attr->size, (uint64_t)attr->max_qp_wr);
	at_most(&info->tx_attr->iov_limit, (uint64_t)attr->max_sge);
	at_most(&info->rx_attr->iov_limit, (uint64_t)attr->max_sge);
	at_most(&info->domain_attr->max_ep_srx_ctx,
		attr->max_srq > 0 ? (uint64_t)attr->max_srq : 0);
	if (attr->atomic_cap == IBV_ATOMIC_NONE) {
		info->caps &= ~FI_ATOMIC;
		info->tx_attr->caps &= ~FI_ATOMIC;
		info->rx_attr->caps &= ~FI_ATOMIC;
	}
	verbs_dev_close(&path);
	return 0;
}

static const char *error_text(int prov_errno)
{
	const struct verbs_lib *lib = verbs_lib();

	return lib ? lib->wc_status_str((enum ibv_wc_status)prov_errno) : "unknown";
}

const struct device_ops rc_device = {
	.open = device_open,
	.close = device_close,
	.add = memory_add,
	.remove = memory_remove,
	.limit = device_limit,
	.atomic = rc_atomic_valid,
	.srx_open = rc_srx_open,
	.srx_close = rc_srx_close,
	.srx_cancel = rc_srx_cancel,
	.srx_msg = &rc_msg_ops,
	.error_text = error_text,
};
