/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives streams. The kernel hands over neighbours of one length from one sender together
 * (UDP_GRO), up to 64 KiB, so they are read into buffers of our own and copied to the posted
 * receives. Never switched off: what the kernel has put together would come as one datagram.
 */
#define LOG_PROV "udp"
#include <errno.h>
#include <netinet/udp.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/iov.h"
#include "base/log.h"
#include "hw/udp/udp.h"
#include "link/opener.h"

#define SLOTS      8
#define SLOT_BYTES (64 << 10)

/* What one message of recvmmsg brought: a datagram, or several from one sender. */
struct slot {
	size_t len;     /* bytes */
	size_t segment; /* bytes of each datagram but the last */
	size_t given;   /* bytes of the datagrams that were delivered */
	bool known;     /* `from` is the sender */
	struct addr from;
	char data[SLOT_BYTES];
};

struct udp_gro {
	unsigned int next, count; /* slots next to count - 1 hold datagrams */
	struct slot slots[SLOTS];
};

union gro_control {
	struct cmsghdr head;
	char space[CMSG_SPACE(sizeof(int))];
};

__attribute__((noinline, cold)) void udp_gro_start(struct udp *u)
{
	struct udp_gro *gro = malloc(sizeof(*gro));
	const int yes = 1;

	u->gro_tried = true;
	if (!gro || setsockopt(u->fd, IPPROTO_UDP, UDP_GRO, &yes, sizeof(yes))) {
		LOG_INFO(LOG_EP_DATA, "datagrams are received one by one: %s", fi_strerror(errno));
		free(gro);
		return;
	}
	gro->next = gro->count = 0;
	u->gro = gro;
}

bool udp_gro_waits(const struct udp *u)
{
	return u->gro && u->gro->next < u->gro->count;
}

static void udp_gro_fill(struct slot *s, struct mmsghdr *m)
{
	const struct cmsghdr *head = CMSG_FIRSTHDR(&m->msg_hdr);
	int size = 0; /* of the datagrams of a message; 0: the message is one */

	if (head && head->cmsg_level == IPPROTO_UDP && head->cmsg_type == UDP_GRO)
		memcpy(&size, CMSG_DATA(head), sizeof(size));
	s->len = m->msg_len;
	s->segment = size ? (size_t)size : s->len;
	s->given = 0;
	s->known =
		m->msg_hdr.msg_namelen &&
		!addr_from_user(&s->from, FI_SOCKADDR, m->msg_hdr.msg_name, m->msg_hdr.msg_namelen);
}

/* recvmmsg, or for one message the cheaper call. */
static int udp_gro_receive(int fd, struct mmsghdr *msgs, unsigned int max)
{
	ssize_t len;

	if (max > 1)
		return recvmmsg(fd, msgs, max, MSG_DONTWAIT, NULL);
	len = recvmsg(fd, &msgs->msg_hdr, MSG_DONTWAIT);
	msgs->msg_len = (unsigned int)len;
	return len < 0 ? -1 : 1;
}

/* Fills at most `max` slots, all of which are empty. Returns their number. */
static unsigned int udp_gro_refill(struct udp *u, unsigned int max)
{
	bool source = u->dgram.events->wants_source(&u->dgram);
	union gro_control controls[SLOTS];
	union udp_name names[SLOTS];
	struct mmsghdr msgs[SLOTS];
	struct iovec iov[SLOTS];
	struct udp_gro *g = u->gro;
	int n;

	for (unsigned int i = 0; i < max; i++) {
		iov[i] = (struct iovec){g->slots[i].data, SLOT_BYTES};
		msgs[i].msg_hdr = (struct msghdr){.msg_name = source ? &names[i] : NULL,
						  .msg_namelen = source ? sizeof(names[i]) : 0,
						  .msg_iov = &iov[i],
						  .msg_iovlen = 1,
						  .msg_control = &controls[i],
						  .msg_controllen = sizeof(controls[i])};
	}
	n = udp_gro_receive(u->fd, msgs, max);
	if (n < 0)
		return udp_received_nothing();
	for (int i = 0; i < n; i++)
		udp_gro_fill(&g->slots[i], &msgs[i]);
	g->next = 0;
	g->count = (unsigned int)n;
	return g->count;
}

/* Delivers datagrams of the slots while receives are posted. Returns their number. */
static unsigned int udp_gro_deliver(struct udp *u)
{
	struct udp_gro *g = u->gro;
	unsigned int n = 0;
	struct recv *r;

	while (g->next < g->count && u->dgram.events->receives(&u->dgram, &r, 1)) {
		struct slot *s = &g->slots[g->next];
		size_t left = s->len - s->given, len = left < s->segment ? left : s->segment;

		iov_scatter(r->iov, r->iov_count, 0, s->data + s->given, len);
		s->given += len;
		u->dgram.events->came(&u->dgram, r, len, s->known ? &s->from : NULL);
		g->next += s->given == s->len;
		n++;
	}
	return n;
}

unsigned int udp_gro_take(struct udp *u, bool stream)
{
	unsigned int n = udp_gro_deliver(u);

	if (!udp_gro_waits(u) && u->dgram.events->wanted(&u->dgram) &&
	    udp_gro_refill(u, stream ? SLOTS : 1))
		n += udp_gro_deliver(u);
	return n;
}
