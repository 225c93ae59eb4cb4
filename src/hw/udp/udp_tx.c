/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends datagrams, a batch by one system call. Its neighbours of one length to one address become one
 * message, which the kernel or the device cuts into datagrams (UDP_SEGMENT).
 */
#define LOG_PROV "udp"
#include <errno.h>
#include <netinet/udp.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "base/log.h"
#include "hw/udp/udp.h"

#define SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL)

/* Datagrams in one message: what all kernels accept. */
#define SEGMENTS_MAX 64

/* Memory segments in one system call: enough for 64 datagrams of four each. */
#define CALL_IOV_MAX 256

/* The arguments of sendmsg; `name` holds the address. */
static struct msghdr udp_tx_message(union udp_name *name, const struct addr *to,
				    const struct iovec *iov, size_t count)
{
	return (struct msghdr){.msg_name = name,
			       .msg_namelen = udp_name(to, name),
			       .msg_iov = (struct iovec *)(uintptr_t)iov,
			       .msg_iovlen = count};
}

static ssize_t udp_tx_send_one(int fd, const struct addr *to, const struct iovec *iov, size_t count)
{
	union udp_name name;
	struct msghdr msg = udp_tx_message(&name, to, iov, count);

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

/* Logs that a datagram cannot be sent. Returns `err`. */
static __attribute__((noinline, cold)) int udp_tx_refused(const struct addr *to, int err)
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
	udp_tx_refused(to, err);
	return is_no_way(err) ? -err : err;
}

/* ---- Batches --------------------------------------------------------------------------------- */

/* Tells the kernel the length of all datagrams of a message but the last. */
union segment_control {
	struct cmsghdr head;
	char space[CMSG_SPACE(sizeof(uint16_t))];
};

/* The arguments of one sendmmsg. */
struct call {
	unsigned int count; /* messages */
	size_t iov_count;
	unsigned int datagrams[DGRAM_BATCH_MAX]; /* of each message */
	struct mmsghdr messages[DGRAM_BATCH_MAX];
	union udp_name names[DGRAM_BATCH_MAX];
	union segment_control controls[DGRAM_BATCH_MAX];
	struct iovec iov[CALL_IOV_MAX];
};

void udp_batch_init(struct udp *u)
{
	int size;
	socklen_t len = sizeof(size);

	/* A kernel that does not know the option would send a message as one datagram. */
	if (!getsockopt(u->fd, IPPROTO_UDP, UDP_SEGMENT, &size, &len))
		u->segment_max = u->dgram.max;
}

/*
 * Returns how many of the first datagrams can be one message: they have one length of at most
 * `segment_max`, or the last is shorter. An empty datagram is a message of its own.
 */
static unsigned int udp_tx_run(const struct udp *u, const struct dgram_out *outs,
			       unsigned int count, size_t segment_max)
{
	size_t len = outs->len, bytes = len;
	unsigned int n = 1;

	if (!len || len > segment_max)
		return 1;
	while (n < count && n < SEGMENTS_MAX && outs[n - 1].len == len && outs[n].len &&
	       outs[n].len <= len && bytes + outs[n].len <= u->dgram.max &&
	       addr_equal(&outs[n].to, &outs->to) && outs[n].to.scope == outs->to.scope)
		bytes += outs[n++].len;
	return n;
}

/* Appends the memory of the first datagrams, as far as there is space. Returns their number. */
static unsigned int append_iov(struct call *c, const struct dgram_out *outs, unsigned int count)
{
	unsigned int n = 0;

	while (n < count && outs[n].count <= CALL_IOV_MAX - c->iov_count) {
		memcpy(c->iov + c->iov_count, outs[n].iov, outs[n].count * sizeof(*c->iov));
		c->iov_count += outs[n++].count;
	}
	return n;
}

static void set_segment(struct msghdr *msg, union segment_control *control, size_t len)
{
	const uint16_t size = (uint16_t)len;

	memset(control, 0, sizeof(*control));
	control->head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(size)),
					 .cmsg_level = IPPROTO_UDP,
					 .cmsg_type = UDP_SEGMENT};
	memcpy(CMSG_DATA(&control->head), &size, sizeof(size));
	msg->msg_control = control;
	msg->msg_controllen = sizeof(*control);
}

/* Appends a message of at most `count` datagrams. Returns their number; 0: no space. */
static unsigned int udp_tx_append(struct call *c, const struct dgram_out *outs, unsigned int count)
{
	struct msghdr *msg = &c->messages[c->count].msg_hdr;
	struct iovec *iov = c->iov + c->iov_count;
	unsigned int n = append_iov(c, outs, count);

	if (!n)
		return 0;
	*msg = udp_tx_message(&c->names[c->count], &outs->to, iov,
			      (size_t)(c->iov + c->iov_count - iov));
	if (n > 1)
		set_segment(msg, &c->controls[c->count], outs->len);
	c->datagrams[c->count++] = n;
	return n;
}

/*
 * Returns how many messages went out, or why the first did not. Tries again after an error that may
 * be that of an earlier datagram.
 */
static int udp_tx_send_all(const struct udp *u, struct mmsghdr *messages, unsigned int count)
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

/*
 * Sends datagrams in order, those of at most `segment_max` bytes together. Returns how many went
 * out, or why the first did not.
 */
static int send_batch(const struct udp *u, const struct dgram_out *outs, unsigned int count,
		      size_t segment_max)
{
	unsigned int taken = 0, n;
	struct call c;
	int sent, datagrams = 0;

	c.count = 0;
	c.iov_count = 0;
	do {
		n = udp_tx_append(&c, outs + taken,
				  udp_tx_run(u, outs + taken, count - taken, segment_max));
		taken += n;
	} while (n && taken < count);
	sent = udp_tx_send_all(u, c.messages, c.count);
	for (int i = 0; i < sent; i++)
		datagrams += (int)c.datagrams[i];
	return sent < 0 ? sent : datagrams;
}

/*
 * The kernel refused a message of several datagrams, but took the first one alone: datagrams of
 * this length do not go together any more.
 */
static __attribute__((noinline, cold)) void limit_segments(struct udp *u, size_t len, int err)
{
	if (u->segment_max == u->dgram.max)
		LOG_INFO(LOG_EP_DATA, "datagrams of %zu bytes cannot be sent together: %s", len,
			 fi_strerror(-err));
	u->segment_max = err == -FI_EIO ? 0 : len - 1;
}

int udp_send_many(struct dgram *d, const struct dgram_out *outs, unsigned int count)
{
	struct udp *u = (struct udp *)d;
	int n = send_batch(u, outs, count, u->segment_max), err = n;

	/* Whose error is it: the first datagram's, a neighbour's, or none's? */
	if (__builtin_expect(err < 0 && err != -FI_EAGAIN, 0) &&
	    udp_tx_run(u, outs, count, u->segment_max) > 1) {
		n = send_batch(u, outs, count, 0);
		/* The kernel's answers to segments that are too long for the way, or to any. */
		if (n > 0 && (err == -FI_EINVAL || err == -FI_EMSGSIZE || err == -FI_EIO))
			limit_segments(u, outs->len, err);
	}
	return n > 0 || n == -FI_EAGAIN ? n : udp_tx_refused(&outs->to, n);
}
