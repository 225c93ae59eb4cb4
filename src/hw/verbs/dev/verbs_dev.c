/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/verbs/dev/verbs_dev.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_PROV "verbs"
#include "base/forked.h"
#include "base/log.h"

#define DEVICE_ATOMIC_WRITE (UINT64_C(1) << 40) /* in device_cap_flags_ex */

static struct list all = {&all, &all}; /* guarded by FORKED_DEVICES */

int verbs_failed(const char *what)
{
	int err = errno ? errno : ENOMEM;

	LOG_WARN(LOG_EP_CTRL, "cannot make %s: %s (ulimit -l limits what devices may lock)", what,
		 fi_strerror(err));
	return -err;
}

/*
 * The device may have been removed, and another one of its name added. Reads removal only, not
 * other events: a sleeping user would not wake for events that are read here.
 */
static bool is_there(struct verbs_dev *dev)
{
	verbs_news_nodes(dev);
	return !verbs_dev_removed(dev);
}

static struct verbs_dev *verbs_dev_find(const char *name)
{
	LIST_EACH_OF (struct verbs_dev, dev, &all, in_all)
		if (dev->forked == forked_count() && strcmp(dev->name, name) == 0 && is_there(dev))
			return dev;
	return NULL;
}

static struct ibv_context *verbs_dev_open_context(const struct verbs_lib *lib, const char *name)
{
	struct ibv_device **list = lib->get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	if (!list)
		return NULL;
	for (struct ibv_device **at = list; *at; at++)
		if (strcmp(lib->get_device_name(*at), name) == 0) {
			ctx = lib->open_device(*at);
			break;
		}
	lib->free_device_list(list);
	return ctx;
}

/* The folder of a hardware RDMA device links to a device on a bus. */
static bool is_software(const struct ibv_device *device)
{
	char bus[sizeof(device->ibdev_path) + sizeof("/device")];

	snprintf(bus, sizeof(bus), "%s/device", device->ibdev_path);
	return !access(device->ibdev_path, F_OK) && access(bus, F_OK);
}

/*
 * Learns whether the device has on-demand paging, which is not tested: no device at hand has it; and atomic writes.
 * The query goes through the device's table, since the header's inline function would need the library to be linked.
 */
static void learn_more(struct verbs_dev *dev)
{
	const uint32_t needed = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
	const struct verbs_context *table = verbs_get_ctx_op(dev->ctx, query_device_ex);
	struct ibv_device_attr_ex attr = {.comp_mask = 0};
	uint64_t general;

	if (!table || table->query_device_ex(dev->ctx, NULL, &attr, sizeof(attr)))
		return;
	dev->writes_atomically = attr.device_cap_flags_ex & DEVICE_ATOMIC_WRITE &&
				 verbs_get_ctx_op(dev->ctx, create_qp_ex);
	general = attr.odp_caps.general_caps;
	dev->pages = general & IBV_ODP_SUPPORT &&
		     (attr.odp_caps.per_transport_caps.rc_odp_caps & needed) == needed;
	if (dev->pages && general & IBV_ODP_SUPPORT_IMPLICIT)
		dev->anywhere = dev->lib->reg_mr(dev->pd, NULL, SIZE_MAX,
						 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
}

static void verbs_dev_release(struct verbs_dev *dev)
{
	verbs_news_close(dev);
	verbs_cache_leave(dev);
	if (dev->anywhere)
		dev->lib->dereg_mr(dev->anywhere);
	dev->lib->dealloc_pd(dev->pd);
	forked_release(dev->ctx->cmd_fd);
	forked_release(dev->ctx->async_fd);
	dev->lib->close_device(dev->ctx);
}

/* Opens dev->name. 0 or a negative error. */
static int verbs_dev_fill(struct verbs_dev *dev)
{
	dev->ctx = verbs_dev_open_context(dev->lib, dev->name);
	if (!dev->ctx)
		return errno ? -errno : -FI_ENODEV;
	if (dev->lib->query_device(dev->ctx, &dev->attr))
		goto close_context;
	dev->pd = dev->lib->alloc_pd(dev->ctx);
	if (!dev->pd)
		goto close_context;
	if (verbs_news_open(dev))
		goto dealloc_pd;
	learn_more(dev);
	dev->software = is_software(dev->ctx->device);
	fcntl(dev->ctx->async_fd, F_SETFL, fcntl(dev->ctx->async_fd, F_GETFL) | O_NONBLOCK);
	/* A forked child must not close its parent's objects. */
	if (!forked_guard(dev->ctx->cmd_fd) && !forked_guard(dev->ctx->async_fd))
		return 0;
	verbs_dev_release(dev);
	return -FI_ENOMEM;
dealloc_pd:
	dev->lib->dealloc_pd(dev->pd);
close_context:
	dev->lib->close_device(dev->ctx);
	return -FI_ENODEV;
}

static int verbs_dev_get(const char *name, struct verbs_dev **out)
{
	struct verbs_dev *dev = verbs_dev_find(name);
	int err;

	if (!dev) {
		dev = calloc(1, sizeof(*dev));
		if (!dev)
			return -FI_ENOMEM;
		dev->lib = verbs_lib();
		snprintf(dev->name, sizeof(dev->name), "%s", name);
		err = dev->lib ? verbs_dev_fill(dev) : -FI_ENOSYS;
		if (err) {
			LOG_WARN(
				LOG_DOMAIN,
				"cannot open %s: %s (may /dev/infiniband be opened? FI_VERBS_DEVICE_NAME chooses devices)",
				name, fi_strerror(-err));
			free(dev);
			return err;
		}
		dev->forked = forked_count();
		list_push(&all, &dev->in_all);
	}
	dev->users++;
	*out = dev;
	return 0;
}

int verbs_dev_open(const struct addr *a, struct verbs_path *path)
{
	struct ibv_port_attr attr = {.lid = 0};
	int err = -FI_ENODEV;

	if (!rdma_ports_find(a, &path->port))
		return err;
	forked_take(FORKED_DEVICES);
	err = verbs_dev_get(path->port.device, &path->dev);
	forked_give(FORKED_DEVICES);
	if (err)
		return err;
	/* The library's symbol declares the parameter by an older name of the struct. */
	if (path->dev->lib->query_port(path->dev->ctx, path->port.port,
				       (struct _compat_ibv_port_attr *)&attr)) {
		verbs_dev_close(path);
		return -FI_ENODEV;
	}
	path->lid = attr.lid;
	path->mtu = attr.active_mtu;
	path->message_max = attr.max_msg_sz;
	return 0;
}

void verbs_dev_close(struct verbs_path *path)
{
	struct verbs_dev *dev = path->dev;

	forked_take(FORKED_DEVICES);
	if (!--dev->users) {
		list_remove(&dev->in_all);
		if (dev->forked == forked_count())
			verbs_dev_release(dev);
		free(dev);
	}
	forked_give(FORKED_DEVICES);
	path->dev = NULL;
}
