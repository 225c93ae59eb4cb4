/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams are read straight into the posted receives, those of a stream by udp_gro.c. */
#define LOG_PROV "udp"
#include <errno.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "hw/udp/udp.h"
#include "link/opener.h"

/* MSG_TRUNC: recv returns the datagram's length even if it exceeds the buffer. */
#define RECV_FLAGS (MSG_DONTWAIT | MSG_TRUNC)

/* Datagrams to ask one socket for in a progress call, once they keep coming. */
#define BATCH 16
/* Datagrams of a spell before BATCH is used: one recv is cheaper for a ping-pong. */
#define SPELL 3
/* Datagrams of a spell that make a stream, which is received by udp_gro.c from then on. */
#define STREAM 16

static void udp_rx_came(struct udp *u, struct recv *r, size_t len, const union udp_name *name,
			socklen_t name_len)
{
	struct addr from;
	bool known = name_len && !addr_from_user(&from, FI_SOCKADDR, name, name_len);

	u->dgram.events->came(&u->dgram, r, len, known ? &from : NULL);
}

/* Always returns 0. Errors here are those of datagrams we sent: the next progress call tries again. */
unsigned int udp_received_nothing(void)
{
	if (errno != EWOULDBLOCK && errno != EINTR)
		LOG_INFO(LOG_EP_DATA, "while receiving: %s", fi_strerror(errno));
	return 0;
}

/* The same for a call that receives straight into the memory of `next`. */
static unsigned int nothing_into(struct udp *u, struct recv *next)
{
	if (errno != EFAULT)
		return udp_received_nothing();
	u->dgram.events->spoilt(&u->dgram, next, FI_EFAULT);
	return 0;
}

/* Receives one datagram: the common case, and the cheapest system call. */
static unsigned int take_one(struct udp *u, int fd, struct recv *r)
{
	bool source = u->dgram.events->wants_source(&u->dgram);
	union udp_name name;
	socklen_t name_len = source ? sizeof(name) : 0;
	ssize_t len = recvfrom(fd, r->iov[0].iov_base, r->iov[0].iov_len, RECV_FLAGS,
			       source ? &name.sa : NULL, source ? &name_len : NULL);

	if (len < 0)
		return nothing_into(u, r);
	udp_rx_came(u, r, (size_t)len, &name, name_len);
	return 1;
}

static unsigned int take_many(struct udp *u, int fd, struct recv *list[], unsigned int count)
{
	bool source = u->dgram.events->wants_source(&u->dgram);
	union udp_name names[BATCH];
	struct mmsghdr msgs[BATCH];
	int n;

	for (unsigned int i = 0; i < count; i++)
		msgs[i].msg_hdr = (struct msghdr){.msg_name = source ? &names[i] : NULL,
						  .msg_namelen = source ? sizeof(names[i]) : 0,
						  .msg_iov = list[i]->iov,
						  .msg_iovlen = list[i]->iov_count};
	n = recvmmsg(fd, msgs, count, RECV_FLAGS, NULL);
	if (n < 0)
		return nothing_into(u, list[0]);
	for (int i = 0; i < n; i++)
		udp_rx_came(u, list[i], msgs[i].msg_len, &names[i], msgs[i].msg_hdr.msg_namelen);
	return (unsigned int)n;
}

static unsigned int udp_rx_take(struct udp *u, int fd)
{
	struct recv *list[BATCH];
	unsigned int count;

	if (!u->dgram.events->wanted(&u->dgram))
		return 0;
	if (fd == u->fd && u->gro)
		return udp_gro_take(u, u->spell >= SPELL);
	count = u->dgram.events->receives(&u->dgram, list, u->spell < SPELL ? 1 : BATCH);
	if (count == 1 && list[0]->iov_count == 1)
		return take_one(u, fd, list[0]);
	return take_many(u, fd, list, count);
}

static unsigned int take_of_groups(struct udp *u)
{
	unsigned int n = 0;

	LIST_EACH_OF (struct dgram_group, g, &u->dgram.groups, link)
		if (g->fd >= 0)
			n += udp_rx_take(u, g->fd);
	return n;
}

/* Alternates the order, so that neither groups nor our own address use up all receives. */
static unsigned int take_of_all(struct udp *u)
{
	unsigned int n = 0;

	u->groups_first = !u->groups_first;
	if (u->groups_first)
		n = take_of_groups(u);
	n += udp_rx_take(u, u->fd);
	if (!u->groups_first)
		n += take_of_groups(u);
	return n;
}

bool udp_progress(void *state)
{
	struct udp *u = state;
	bool progressed = u->dgram.batch_count && u->dgram.events->flush(&u->dgram);
	unsigned int n;

	if (!u->dgram.events->wanted(&u->dgram))
		return progressed;
	n = list_empty(&u->dgram.groups) ? udp_rx_take(u, u->fd) : take_of_all(u);
	u->spell = n ? u->spell + n : 0;
	if (__builtin_expect(u->spell >= STREAM && !u->gro_tried, 0))
		udp_gro_start(u);
	return progressed || n;
}
