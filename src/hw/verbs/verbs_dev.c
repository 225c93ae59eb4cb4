/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/verbs/verbs_dev.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_PROV "verbs"
#include "base/forked.h"
#include "base/log.h"

static struct list all = {&all, &all};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct verbs_dev *find(const char *name)
{
	LIST_EACH (node, &all) {
		struct verbs_dev *dev = LIST_ENTRY(node, struct verbs_dev, in_all);

		if (dev->forked == forked_count() && strcmp(dev->name, name) == 0 &&
		    !__atomic_load_n(&dev->gone, __ATOMIC_RELAXED))
			return dev;
	}
	return NULL;
}

static struct ibv_context *open_context(const struct verbs_lib *lib, const char *name)
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

static void release(struct verbs_dev *dev)
{
	dev->lib->dealloc_pd(dev->pd);
	forked_release(dev->ctx->cmd_fd);
	forked_release(dev->ctx->async_fd);
	dev->lib->close_device(dev->ctx);
}

/* 0 or a negative error. */
static int fill(struct verbs_dev *dev)
{
	dev->ctx = open_context(dev->lib, dev->name);
	if (!dev->ctx)
		return errno ? -errno : -FI_ENODEV;
	if (dev->lib->query_device(dev->ctx, &dev->attr))
		goto close_context;
	dev->pd = dev->lib->alloc_pd(dev->ctx);
	if (!dev->pd)
		goto close_context;
	fcntl(dev->ctx->async_fd, F_SETFL, fcntl(dev->ctx->async_fd, F_GETFL) | O_NONBLOCK);
	/* A child must not end what is its parent's. */
	if (!forked_guard(dev->ctx->cmd_fd) && !forked_guard(dev->ctx->async_fd))
		return 0;
	release(dev);
	return -FI_ENOMEM;
close_context:
	dev->lib->close_device(dev->ctx);
	return -FI_ENODEV;
}

static int get(const char *name, struct verbs_dev **out)
{
	struct verbs_dev *dev = find(name);
	int err;

	if (!dev) {
		dev = calloc(1, sizeof(*dev));
		if (!dev)
			return -FI_ENOMEM;
		dev->lib = verbs_lib();
		snprintf(dev->name, sizeof(dev->name), "%s", name);
		err = dev->lib ? fill(dev) : -FI_ENOSYS;
		if (err) {
			LOG_WARN(LOG_DOMAIN, "cannot open %s: %s", name, fi_strerror(-err));
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

static void put(struct verbs_dev *dev)
{
	if (--dev->users)
		return;
	list_remove(&dev->in_all);
	if (dev->forked == forked_count())
		release(dev);
	free(dev);
}

int verbs_dev_open(const struct addr *a, struct verbs_path *path)
{
	struct ibv_port_attr attr = {.lid = 0};
	int err = -FI_ENODEV;

	if (!rdma_ports_find(a, &path->port))
		return err;
	pthread_mutex_lock(&lock);
	err = get(path->port.device, &path->dev);
	pthread_mutex_unlock(&lock);
	if (err)
		return err;
	/* The library's symbol takes the whole struct by an older name of it. */
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
	pthread_mutex_lock(&lock);
	put(path->dev);
	pthread_mutex_unlock(&lock);
	path->dev = NULL;
}

static bool is_trouble(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_DEVICE_FATAL:
		return true;
	default: /* of a port that is down the retries of each send tell */
		return false;
	}
}

void verbs_dev_listen(struct verbs_dev *dev)
{
	struct ibv_async_event event;

	while (!dev->lib->get_async_event(dev->ctx, &event)) {
		LOG_INFO(LOG_DOMAIN, "%s: %s", dev->name,
			 dev->lib->event_type_str(event.event_type));
		if (event.event_type == IBV_EVENT_DEVICE_FATAL)
			__atomic_store_n(&dev->gone, true, __ATOMIC_RELAXED);
		if (is_trouble(event.event_type))
			__atomic_fetch_add(&dev->troubles, 1, __ATOMIC_RELAXED);
		dev->lib->ack_async_event(&event);
	}
}
