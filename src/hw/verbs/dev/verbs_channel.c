/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels: descriptors that wake sleepers once a completion queue has something. */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>

#include "base/forked.h"
#include "hw/verbs/dev/verbs_dev.h"

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
