/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of a device, and its removal. If the driver removes all of a device, the device reports
 * that by an event. Other drivers keep a removed device until its last user closes it; then the
 * only sign is that its node in /dev has gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#define LOG_PROV "verbs"
#include "base/forked.h"
#include "base/log.h"
#include "hw/verbs/dev/verbs_dev.h"

#define NODES "/dev/infiniband"

/* Notes `fd` with forked_guard. Returns `fd`, or -1. */
static int verbs_news_guarded(int fd)
{
	if (fd < 0 || !forked_guard(fd))
		return fd;
	close(fd);
	return -1;
}

/* Returns an inotify descriptor for the nodes, or -1: not possible, as in some containers. */
static int watch_nodes(void)
{
	int fd = verbs_news_guarded(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));

	if (fd < 0 || inotify_add_watch(fd, NODES, IN_DELETE | IN_ONLYDIR) >= 0)
		return fd;
	forked_close(fd);
	return -1;
}

int verbs_news_open(struct verbs_dev *dev)
{
	dev->removed_fd = verbs_news_guarded(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	if (dev->removed_fd < 0)
		return errno ? -errno : -FI_ENOMEM;
	dev->nodes_fd = watch_nodes();
	if (dev->nodes_fd < 0)
		LOG_INFO(LOG_DOMAIN, "%s: whether it is taken away only its driver can tell",
			 dev->name);
	return 0;
}

void verbs_news_close(struct verbs_dev *dev)
{
	forked_close(dev->removed_fd);
	if (dev->nodes_fd >= 0)
		forked_close(dev->nodes_fd);
}

/*
 * Makes events of the device, and its removal, readable in epfd; a removed device stays readable. 0
 * or a negative error.
 */
static int verbs_news_add(const struct verbs_dev *dev, int epfd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	if (epoll_ctl(epfd, EPOLL_CTL_ADD, dev->ctx->async_fd, &ev) ||
	    epoll_ctl(epfd, EPOLL_CTL_ADD, dev->removed_fd, &ev) ||
	    (dev->nodes_fd >= 0 && epoll_ctl(epfd, EPOLL_CTL_ADD, dev->nodes_fd, &ev)))
		return -errno;
	return 0;
}

void verbs_news_remove(const struct verbs_dev *dev, int epfd)
{
	epoll_ctl(epfd, EPOLL_CTL_DEL, dev->ctx->async_fd, NULL);
	epoll_ctl(epfd, EPOLL_CTL_DEL, dev->removed_fd, NULL);
	if (dev->nodes_fd >= 0)
		epoll_ctl(epfd, EPOLL_CTL_DEL, dev->nodes_fd, NULL);
}

/* The eventfd wakes every sleeping thread, even if another one read the event. */
static void set_removed(struct verbs_dev *dev, const char *how)
{
	if (__atomic_exchange_n(&dev->removed, true, __ATOMIC_RELAXED))
		return;
	LOG_WARN(LOG_DOMAIN, "the device %s is gone: %s", dev->name, how);
	__atomic_fetch_add(&dev->troubles, 1, __ATOMIC_RELAXED);
	eventfd_write(dev->removed_fd, 1);
}

/* Returns the note of the event's queue, or NULL. */
static struct verbs_note *note_of(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return event->element.cq->cq_context;
	case IBV_EVENT_SRQ_ERR:
		return event->element.srq->srq_context;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return event->element.qp->qp_context;
	default:
		return NULL;
	}
}

/* The event's queue exists at least until the event is acknowledged. */
static void verbs_news_hear(struct verbs_dev *dev, const struct ibv_async_event *event)
{
	struct verbs_note *note = note_of(event);

	LOG_DEBUG(LOG_DOMAIN, "%s: %s", dev->name, dev->lib->event_type_str(event->event_type));
	switch (event->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		set_removed(dev, "it says so");
		break;
	case IBV_EVENT_PORT_ERR:
		LOG_WARN(LOG_DOMAIN,
			 "port %d of %s is down: what is sent is tried again for a while",
			 event->element.port_num, dev->name);
		break;
	case IBV_EVENT_PORT_ACTIVE:
		LOG_INFO(LOG_DOMAIN, "port %d of %s is up", event->element.port_num, dev->name);
		break;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		if (note)
			__atomic_store_n(&note->last, true, __ATOMIC_RELAXED);
		break;
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		LOG_INFO(LOG_DOMAIN, "%s: %s", dev->name,
			 dev->lib->event_type_str(event->event_type));
		if (note)
			__atomic_store_n(&note->broken, true, __ATOMIC_RELAXED);
		__atomic_fetch_add(&dev->troubles, 1, __ATOMIC_RELAXED);
		break;
	default:
		break;
	}
}

static void verbs_news_read_events(struct verbs_dev *dev)
{
	struct ibv_async_event event;

	while (!dev->lib->get_async_event(dev->ctx, &event)) {
		verbs_news_hear(dev, &event);
		dev->lib->ack_async_event(&event);
	}
	if (errno == EIO || errno == ENODEV)
		set_removed(dev, "it has no more to say");
}

void verbs_news_nodes(struct verbs_dev *dev)
{
	union {
		struct inotify_event event;
		char bytes[4096];
	} u;
	ssize_t len;

	if (dev->nodes_fd < 0)
		return;
	while ((len = read(dev->nodes_fd, u.bytes, sizeof(u.bytes))) > 0) {
		const char *at = u.bytes;

		while (at < u.bytes + len) {
			const struct inotify_event *event = (const void *)at;

			if (event->len && !strcmp(event->name, dev->ctx->device->dev_name))
				set_removed(dev, "it is taken away");
			at += sizeof(*event) + event->len;
		}
	}
}

void verbs_news_read(struct verbs_dev *dev)
{
	struct pollfd fds[] = {{.fd = dev->ctx->async_fd, .events = POLLIN},
			       {.fd = dev->nodes_fd, .events = POLLIN}};

	if (poll(fds, 2, 0) <= 0)
		return;
	if (fds[0].revents)
		verbs_news_read_events(dev);
	if (fds[1].revents)
		verbs_news_nodes(dev);
}

/* ---- Completion channels: descriptors that wake sleepers once a completion queue has something ---- */

void verbs_channel_close(const struct verbs_dev *dev, struct ibv_comp_channel *channel, int news)
{
	verbs_news_remove(dev, news);
	forked_release(channel->fd);
	dev->lib->destroy_comp_channel(channel);
}

int verbs_channel_open(const struct verbs_dev *dev, int epfd, int news,
		       struct ibv_comp_channel **channel)
{
	struct ibv_comp_channel *c = dev->lib->create_comp_channel(dev->ctx);
	struct epoll_event ev = {.events = EPOLLIN};
	int err;

	if (!c)
		return verbs_failed("a completion channel");
	err = forked_guard(c->fd);
	if (!err && (fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) | O_NONBLOCK) ||
		     epoll_ctl(epfd, EPOLL_CTL_ADD, c->fd, &ev)))
		err = -errno;
	if (!err)
		err = verbs_news_add(dev, news);
	if (err)
		verbs_channel_close(dev, c, news);
	else
		*channel = c;
	return err;
}

void verbs_channel_read(const struct verbs_dev *dev, struct ibv_comp_channel *channel,
			struct ibv_cq *cq)
{
	unsigned int n = 0;
	struct ibv_cq *of;
	void *context;

	while (!dev->lib->get_cq_event(channel, &of, &context))
		n++;
	if (n)
		dev->lib->ack_cq_events(cq, n);
}
