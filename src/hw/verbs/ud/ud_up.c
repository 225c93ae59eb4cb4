/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and closes the queue pair for datagrams. */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "info/providers.h"
#include "hw/transports.h"
#include "hw/verbs/ud/ud.h"

static int ud_up_no_join(struct dgram *d, struct dgram_group *g)
{
	(void)d, (void)g;
	return -FI_ENOSYS;
}

static void no_leave(struct dgram *d, struct dgram_group *g)
{
	(void)d, (void)g;
}

static const struct dgram_ops ops = {
	.send = ud_send,
	.send_many = ud_send_many,
	.join = ud_up_no_join,
	.leave = no_leave,
};

static size_t ud_up_bytes_of(enum ibv_mtu mtu)
{
	return (size_t)128 << mtu;
}

static int ud_up_make_slots(const struct ud *u, struct verbs_slots *s, size_t size, size_t count)
{
	int err = 0;

	verbs_slots_init(s, u->path.dev, size);
	while (s->count < count && !err)
		err = verbs_slots_grow(s);
	errno = -err;
	return err ? verbs_failed("memory for datagrams") : 0;
}

static void ud_up_drop_all(struct ud *u)
{
	const struct verbs_lib *lib = u->path.dev->lib;

	if (u->qp)
		lib->destroy_qp(u->qp);
	ud_drop_ways(u);
	if (u->send_cq)
		lib->destroy_cq(u->send_cq);
	if (u->recv_cq)
		lib->destroy_cq(u->recv_cq);
	if (u->channel)
		verbs_channel_close(u->path.dev, u->channel, u->epfd);
	verbs_slots_fini(&u->send, false);
	verbs_slots_fini(&u->recv, false);
	verbs_dev_close(&u->path);
	if (u->epfd >= 0)
		close(u->epfd);
	free(u);
}

static void ud_up_set_name(const struct ud *u, struct addr *name)
{
	*name = (struct addr){.kind = ADDR_IB,
			      .port = u->path.port.infiniband ? u->path.lid : 0,
			      .scope = u->qp->qp_num & ADDR_IB_QP};
	memcpy(name->ip, u->path.port.gid, sizeof(name->ip));
}

static int ud_open(struct opener *opener, void **state)
{
	struct ud *u = calloc(1, sizeof(*u));
	size_t most;
	int err;

	if (!u)
		return -FI_ENOMEM;
	err = verbs_dev_open(opener->name, &u->path);
	if (err) {
		free(u);
		return err;
	}
	most = ud_up_bytes_of(u->path.mtu);
	u->epfd = epoll_create1(EPOLL_CLOEXEC);
	err = u->epfd < 0 ? -errno : ud_up_make_slots(u, &u->recv, UD_GRH + most, UD_RECVS);
	if (!err)
		err = ud_up_make_slots(u, &u->send, most, UD_SENDS);
	if (!err)
		err = verbs_channel_open(u->path.dev, u->epfd, u->epfd, &u->channel);
	if (!err)
		err = ud_make_pair(u);
	if (err) {
		ud_up_drop_all(u);
		return err;
	}
	ud_up_set_name(u, opener->name);
	u->dgram.ops = &ops;
	u->dgram.max = most;
	*state = u;
	return 0;
}

static void ud_close(void *state)
{
	struct ud *u = state;
	struct addr own;

	ud_up_set_name(u, &own);
	ud_drain(u, &own);
	ud_up_drop_all(u);
}

static int ud_fd(void *state)
{
	return ((struct ud *)state)->epfd;
}

static int ud_limit(const struct addr *at, struct fi_info *info)
{
	struct verbs_path path;
	int err = verbs_dev_open(at, &path);

	if (err)
		return err;
	info->ep_attr->max_msg_size = ud_up_bytes_of(path.mtu);
	if (info->tx_attr->inject_size > info->ep_attr->max_msg_size)
		info->tx_attr->inject_size = info->ep_attr->max_msg_size;
	verbs_dev_close(&path);
	return 0;
}

static const struct device_ops device = {.limit = ud_limit};

const struct transport ud_transport = {
	.name = "ud",
	.bit = PROVIDER_UD,
	.kind = LINK_DGRAM,
	.open = ud_open,
	.close = ud_close,
	.progress = ud_progress,
	.arm = ud_arm,
	.fd = ud_fd,
	.device = &device,
};
