/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending: a packet is one system call. What finds no room at once is the link's rest, a copy or, of a
 * lent payload, a list of where it lies; turns go on with it, and nothing overtakes it.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/iov.h"
#include "base/log.h"
#include "hw/tcp/tcp.h"

#define COLD     __attribute__((noinline, cold))
#define COPY_MAX 8192 /* bytes: an iovec beside a payload up to this costs more than its copy */
#define IOV_MOST 48   /* segments; the engine uses up to 4 + 2 * WIRE_IOV_MAX */

struct tcp_rest {
	size_t left; /* bytes */
	size_t first, count;
	struct iovec iov[]; /* then the memory of what is copied */
};

/* The link's turns see to it from now on. */
static void block(struct tcp_link *l, enum tcp_tx why)
{
	l->tx = why;
	list_remove(&l->in_attend);
	list_push(&l->own->attend, &l->in_attend);
}

void tcp_reopen(struct tcp_link *l)
{
	l->tx = TCP_READY;
	list_remove(&l->in_attend);
	if (l->events & EPOLLOUT)
		tcp_watch(l, EPOLLIN);
}

/* Lent memory stays lent: it was not sent. */
void tcp_fail(struct tcp_link *l, int err)
{
	LOG_INFO(LOG_EP_DATA, "tcp: the connection to peer %#x broke: %s", l->id, fi_strerror(err));
	l->err = err == EPIPE ? FI_ECONNRESET : err;
	block(l, TCP_FAILED);
}

static bool passing(int err)
{
	return err == EAGAIN || err == EINTR || err == ENOBUFS || err == ENOMEM;
}

static struct tcp_rest *rest_new(size_t count, size_t bytes)
{
	struct tcp_rest *r = malloc(sizeof(*r) + count * sizeof(r->iov[0]) + bytes);

	if (r) {
		r->first = 0;
		r->count = count;
	}
	return r;
}

/* A copy of the `len` bytes after the first `skip`. */
static struct tcp_rest *rest_copied(const struct iovec *iov, size_t count, size_t skip, size_t len)
{
	struct tcp_rest *r = rest_new(1, len);
	unsigned char *to;

	if (!r)
		return NULL;
	to = (unsigned char *)&r->iov[1];
	r->left = len;
	r->iov[0] = (struct iovec){to, len};
	for (size_t i = 0; i < count; i++) {
		size_t n = iov[i].iov_len;

		if (skip < n) {
			memcpy(to, (const char *)iov[i].iov_base + skip, n - skip);
			to += n - skip;
			skip = n;
		}
		skip -= n;
	}
	return r;
}

/* The same in its owner's memory, but for the frame, which is iov[0]. */
static struct tcp_rest *rest_lent(const struct iovec *iov, size_t count, size_t skip, size_t len)
{
	struct tcp_rest *r = rest_new(count, sizeof(struct tcp_frame));

	if (!r)
		return NULL;
	r->left = len;
	r->count = iov_slice(r->iov, iov, count, skip, &len);
	if (skip < iov[0].iov_len) {
		memcpy(&r->iov[count], r->iov[0].iov_base, r->iov[0].iov_len);
		r->iov[0].iov_base = &r->iov[count];
	}
	return r;
}

static void rest_advance(struct tcp_rest *r, size_t len)
{
	r->left -= len;
	while (len) {
		struct iovec *iov = &r->iov[r->first];
		size_t n = len < iov->iov_len ? len : iov->iov_len;

		iov->iov_base = (char *)iov->iov_base + n;
		iov->iov_len -= n;
		len -= n;
		if (!iov->iov_len)
			r->first++;
	}
}

/* A packet as it goes out. */
struct outgoing {
	const struct iovec *iov;
	size_t count;
	size_t len;
	uint64_t head;
	bool lent;
};

/* Half a packet must not stay: without memory the connection is over. */
static int keep_rest(struct tcp_link *l, const struct outgoing *o, size_t sent)
{
	struct tcp_rest *r = o->lent ? rest_lent(o->iov, o->count, sent, o->len - sent)
				     : rest_copied(o->iov, o->count, sent, o->len - sent);

	if (!r) {
		tcp_fail(l, FI_ENOMEM);
		return -FI_EAGAIN;
	}
	l->rest = r;
	l->link.pending = o->lent;
	block(l, TCP_REST);
	return 0;
}

/* Not all of it went: `sent` is what the kernel says. A good-bye finds room in any case. */
static COLD int send_short(struct tcp_link *l, const struct outgoing *o, ssize_t sent)
{
	if (sent >= 0)
		return keep_rest(l, o, (size_t)sent);
	if (!passing(errno))
		tcp_fail(l, errno);
	else if (wire_op(o->head) == WIRE_BYE)
		return keep_rest(l, o, 0);
	else
		block(l, TCP_FULL);
	return -FI_EAGAIN;
}

/* Behind a rest nothing goes; a good-bye becomes part of it. */
static COLD int send_behind(struct tcp_link *l, const struct packet *p)
{
	struct tcp_frame f = {.head = p->head, .tag = p->tag};
	struct iovec all[IOV_MOST + 2];
	struct tcp_rest *r, *old = l->rest;
	size_t count;

	if (l->tx != TCP_REST || wire_op(p->head) != WIRE_BYE || p->len)
		return -FI_EAGAIN;
	count = old->count - old->first;
	memcpy(all, old->iov + old->first, count * sizeof(all[0]));
	all[count] = (struct iovec){&f, sizeof(f)};
	r = rest_copied(all, count + 1, 0, old->left + all[count].iov_len);
	if (!r)
		return -FI_EAGAIN;
	free(old);
	l->rest = r;
	l->link.pending = false;
	return 0;
}

/*
 * A port that sends and never reads would not see that it is asked to pause: what has come by now is read
 * before it goes on. Not all that comes, which may have no end.
 */
static COLD bool must_hear(struct tcp_link *l)
{
	int unread = 0;

	if (!l->hear && !ioctl(l->sock, SIOCINQ, &unread))
		l->hear = l->heard + (unsigned int)unread;
	if (l->heard < l->hear)
		return true;
	l->said = l->hear = 0;
	return false;
}

/* Counts what the peer may have to keep. */
static inline bool deaf(struct tcp_link *l, uint64_t head, size_t len)
{
	if (wire_op(head) > WIRE_OFFER && !(wire_flags(head) & WIRE_MATCH))
		return false;
	l->said += sizeof(struct tcp_frame) + len;
	return __builtin_expect(l->said > TCP_DEAF_MAX, 0) && must_hear(l);
}

static inline struct tcp_frame frame_of(const struct packet *p)
{
	return (struct tcp_frame){
		.head = p->head, .tag = p->tag, .len = (uint32_t)p->len, .data = p->data};
}

static int send_pieces(struct tcp_link *l, const struct packet *p, const struct iovec *iov,
		       size_t count, bool lent)
{
	struct tcp_frame f = frame_of(p);
	struct iovec all[IOV_MOST + 1];
	struct msghdr m = {.msg_iov = all, .msg_iovlen = count + 1};
	struct outgoing o = {all, count + 1, p->len, p->head, lent};
	ssize_t sent;

	if (count > IOV_MOST || p->len > TCP_PACKET_MAX)
		return -FI_EMSGSIZE;
	if (l->tx >= TCP_REST)
		return send_behind(l, p);
	if (deaf(l, p->head, p->len))
		return -FI_EAGAIN;
	all[0] = (struct iovec){&f, sizeof(f)};
	if (count)
		memcpy(all + 1, iov, count * sizeof(*iov));
	o.len += all[0].iov_len;
	sent = sendmsg(l->sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (__builtin_expect(sent != (ssize_t)o.len, 0))
		return send_short(l, &o, sent);
	if (l->tx != TCP_READY)
		tcp_reopen(l);
	return 0;
}

int tcp_sendv(struct link *link, const struct packet *p, const struct iovec *iov, size_t count)
{
	return send_pieces((struct tcp_link *)link, p, iov, count, false);
}

int tcp_lend(struct link *link, const struct packet *p, const struct iovec *iov, size_t count)
{
	return send_pieces((struct tcp_link *)link, p, iov, count, true);
}

int tcp_keep(struct link *link)
{
	struct tcp_link *l = (struct tcp_link *)link;
	struct tcp_rest *r, *old = l->rest;

	if (!link->pending)
		return 0;
	r = rest_copied(old->iov + old->first, old->count - old->first, 0, old->left);
	if (!r)
		return -FI_ENOMEM;
	free(old);
	l->rest = r;
	link->pending = false;
	return 0;
}

bool tcp_flush(struct tcp_link *l)
{
	struct tcp_rest *r = l->rest;
	struct msghdr m = {.msg_iov = r->iov + r->first, .msg_iovlen = r->count - r->first};
	ssize_t sent = sendmsg(l->sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0) {
		if (!passing(errno))
			tcp_fail(l, errno);
		return false;
	}
	rest_advance(r, (size_t)sent);
	if (!r->left) {
		free(r);
		l->rest = NULL;
		l->link.pending = false;
		tcp_reopen(l);
	}
	return true;
}

static __attribute__((noinline)) int send_long(struct tcp_link *l, const struct packet *p)
{
	struct iovec iov = {(void *)(uintptr_t)p->payload, p->len};

	return p->len > TCP_EAGER_MAX ? -FI_EMSGSIZE : send_pieces(l, p, &iov, 1, false);
}

/* Frame and payload in one piece: the kernel copies that faster than two. */
static int send_flat(struct tcp_link *l, const struct packet *p)
{
	struct {
		struct tcp_frame frame;
		unsigned char payload[COPY_MAX];
	} out;
	size_t len = sizeof(out.frame) + p->len;
	ssize_t sent;

	if (deaf(l, p->head, p->len))
		return -FI_EAGAIN;
	out.frame = frame_of(p);
	if (p->len)
		memcpy(out.payload, p->payload, p->len);
	sent = send(l->sock, &out, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (__builtin_expect(sent != (ssize_t)len, 0))
		return send_short(
			l, &(struct outgoing){&(struct iovec){&out, len}, 1, len, p->head, false},
			sent);
	if (__builtin_expect(l->tx != TCP_READY, 0))
		tcp_reopen(l);
	return 0;
}

int tcp_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
	     uint64_t tag)
{
	struct tcp_link *l = (struct tcp_link *)link;
	struct packet p = {.head = head, .tag = tag, .data = data, .payload = buf, .len = len};

	l->own->idle = 0; /* an answer may be on its way soon */
	if (__builtin_expect(l->tx >= TCP_REST, 0))
		return send_behind(l, &p);
	return len <= COPY_MAX ? send_flat(l, &p) : send_long(l, &p);
}
