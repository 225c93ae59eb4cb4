/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends a batch by one system call. Neighbours of one length to one address become one message,
 * which the kernel or the device cuts into datagrams (UDP_SEGMENT).
 */
#define LOG_PROV "udp"
#include <errno.h>
#include <netinet/udp.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "base/log.h"
#include "hw/udp/udp.h"

/* Datagrams in one message: what all kernels accept. */
#define SEGMENTS_MAX 64

/* Memory segments in one system call: enough for 64 datagrams of four each. */
#define CALL_IOV_MAX 256

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

static bool same_destination(const struct addr *a, const struct addr *b)
{
	return addr_equal(a, b) && a->scope == b->scope;
}

/*
 * Returns how many of the first datagrams can be one message: they have one length of at most
 * `segment_max`, or the last is shorter. An empty datagram is a message of its own.
 */
static unsigned int udp_batch_run(const struct udp *u, const struct dgram_out *outs,
				  unsigned int count, size_t segment_max)
{
	size_t len = outs->len, bytes = len;
	unsigned int n = 1;

	if (!len || len > segment_max)
		return 1;
	while (n < count && n < SEGMENTS_MAX && outs[n - 1].len == len && outs[n].len &&
	       outs[n].len <= len && bytes + outs[n].len <= u->dgram.max &&
	       same_destination(&outs[n].to, &outs->to))
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
static unsigned int udp_batch_append(struct call *c, const struct dgram_out *outs,
				     unsigned int count)
{
	struct msghdr *msg = &c->messages[c->count].msg_hdr;
	struct iovec *iov = c->iov + c->iov_count;
	unsigned int n = append_iov(c, outs, count);

	if (!n)
		return 0;
	*msg = udp_message(&c->names[c->count], &outs->to, iov,
			   (size_t)(c->iov + c->iov_count - iov));
	if (n > 1)
		set_segment(msg, &c->controls[c->count], outs->len);
	c->datagrams[c->count++] = n;
	return n;
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
		n = udp_batch_append(&c, outs + taken,
				     udp_batch_run(u, outs + taken, count - taken, segment_max));
		taken += n;
	} while (n && taken < count);
	sent = udp_send_messages(u, c.messages, c.count);
	for (int i = 0; i < sent; i++)
		datagrams += (int)c.datagrams[i];
	return sent < 0 ? sent : datagrams;
}

/* Is this what the kernel answers to segments that are too long for the way, or to any? */
static bool is_of_segments(int err)
{
	return err == -FI_EINVAL || err == -FI_EMSGSIZE || err == -FI_EIO;
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
	    udp_batch_run(u, outs, count, u->segment_max) > 1) {
		n = send_batch(u, outs, count, 0);
		if (n > 0 && is_of_segments(err))
			limit_segments(u, outs->len, err);
	}
	return n > 0 || n == -FI_EAGAIN ? n : udp_refused(&outs->to, n);
}
