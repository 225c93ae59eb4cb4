/* SPDX-License-Identifier: BSD-2-Clause */
#define LOG_PROV "udp"
#include <errno.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "hw/udp/udp.h"

#define SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL)

struct msghdr udp_message(union udp_name *name, const struct addr *to, const struct iovec *iov,
			  size_t count)
{
	return (struct msghdr){.msg_name = name,
			       .msg_namelen = udp_name(to, name),
			       .msg_iov = (struct iovec *)(uintptr_t)iov,
			       .msg_iovlen = count};
}

static ssize_t udp_tx_send_one(int fd, const struct addr *to, const struct iovec *iov, size_t count)
{
	union udp_name name;
	struct msghdr msg = udp_message(&name, to, iov, count);

	if (count != 1)
		return sendmsg(fd, &msg, SEND_FLAGS);
	return sendto(fd, iov->iov_base, iov->iov_len, SEND_FLAGS, &name.sa, msg.msg_namelen);
}

static int udp_tx_reason(void)
{
	return errno == EWOULDBLOCK || errno == ENOBUFS ? -FI_EAGAIN : -errno;
}

/*
 * Can the error be that of an earlier datagram (no listener, no route)? The kernel reports such an
 * error once, with a later send: a second try shows whose error it is.
 */
static bool may_be_old(int err)
{
	return err != -FI_EAGAIN && err != -FI_EMSGSIZE && err != -FI_EFAULT;
}

__attribute__((noinline, cold)) int udp_refused(const struct addr *to, int err)
{
	char text[ADDR_STR_MAX];

	addr_print(to, text, sizeof(text));
	LOG_WARN(LOG_EP_DATA, "a datagram to %s does not go out: %s", text, fi_strerror(-err));
	return err;
}

/* Is the error one of the address alone (routing, or the system's packet filter)? */
static bool is_no_way(int err)
{
	switch (err) {
	case -FI_EINVAL: /* from a loopback address to another host */
	case -FI_EACCES:
	case -FI_EPERM:
	case -FI_ENETDOWN:
	case -FI_ENETUNREACH:
	case -FI_EHOSTUNREACH:
	case -FI_EADDRNOTAVAIL:
		return true;
	default:
		return false;
	}
}

int udp_send_messages(const struct udp *u, struct mmsghdr *messages, unsigned int count)
{
	int n, err = 0;

	for (int tries = 0; tries < 2; tries++) {
		n = sendmmsg(u->fd, messages, count, SEND_FLAGS);
		if (n > 0)
			return n;
		err = udp_tx_reason();
		if (!may_be_old(err))
			break;
	}
	return err;
}

int udp_send(struct dgram *d, const struct addr *to, const struct iovec *iov, size_t count)
{
	const struct udp *u = (const struct udp *)d;
	int err = 0;

	for (int tries = 0; tries < 2; tries++) {
		if (__builtin_expect(udp_tx_send_one(u->fd, to, iov, count) >= 0, 1))
			return 0;
		err = udp_tx_reason();
		if (!may_be_old(err))
			break;
	}
	if (err == -FI_EAGAIN)
		return err;
	udp_refused(to, err);
	return is_no_way(err) ? -err : err;
}
