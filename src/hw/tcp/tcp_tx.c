/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending: one system call per packet; long packets that follow each other are batched. What the
 * kernel does not take at once becomes the link's rest.
 */
#include <errno.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/log.h"
#include "core/domain.h"
#include "hw/tcp/tcp_output.h"

#define COLD     __attribute__((noinline, cold))
#define COPY_MAX 8192 /* bytes: up to this a copy costs less than a second iovec */
#define IOV_MOST 48   /* segments; the engine uses at most 4 + 2 * WIRE_IOV_MAX */
/* Charged by the kernel per packet, beside its length and a sixteenth of that; bytes. */
#define BESIDE 4096

void tcp_attend(struct tcp_link *l)
{
	list_remove(&l->in_attend);
	list_push(&l->own->attend, &l->in_attend);
}

void tcp_block(struct tcp_link *l, enum tcp_tx why)
{
	l->tx = why;
	tcp_attend(l);
}

void tcp_reopen(struct tcp_link *l)
{
	l->tx = TCP_READY;
	if (!l->stream->unread(l))
		list_remove(&l->in_attend);
	if (l->events & EPOLLOUT)
		l->stream->watch(l, EPOLLIN);
}

/* Zero-copy sends stay incomplete: they were not sent. */
void tcp_fail(struct tcp_link *l, int err)
{
	LOG_INFO(LOG_EP_DATA, "tcp: the connection to peer %#x broke: %s", l->id, fi_strerror(err));
	l->err = err == EPIPE ? FI_ECONNRESET : err;
	TCP_OUTPUT_LOCKED(l);
	tcp_gather_drop(l);
	tcp_block(l, TCP_FAILED);
}

bool tcp_passing(int err)
{
	return err == EAGAIN || err == EINTR || err == ENOBUFS || err == ENOMEM;
}

/* The kernel took `sent` bytes, or -1. Keeps the rest, or a whole disconnect message. */
static COLD int send_short(struct tcp_link *l, const struct tcp_outgoing *o, ssize_t sent)
{
	if (sent >= 0)
		return tcp_rest_keep(l, o, (size_t)sent);
	if (!tcp_passing(errno))
		tcp_fail(l, errno);
	else if (wire_op(o->head) == WIRE_DISCONNECT)
		return tcp_rest_keep(l, o, 0);
	else
		tcp_block(l, TCP_FULL);
	return -FI_EAGAIN;
}

/* No packet may overtake the rest; a disconnect message is appended to it. */
static COLD int send_behind(struct tcp_link *l, const struct packet *p)
{
	struct tcp_frame f = {.head = p->head, .tag = p->tag};

	if (l->tx != TCP_REST || wire_op(p->head) != WIRE_DISCONNECT || p->len)
		return -FI_EAGAIN;
	return l->stream->end(l, &f);
}

int tcp_put_last(struct tcp_link *l, const struct tcp_frame *f)
{
	return tcp_rest_end(l, f, sizeof(*f));
}

/*
 * A worker that only sends would never see an XOFF. Returns whether bytes that were unread at the
 * first call are still unread: later ones do not count, as they may never end. Where the kernel
 * decrypts, it counts more bytes than are ever heard: then no byte is left some time.
 */
static COLD bool has_unread(struct tcp_link *l)
{
	int unread = 0;

	if (ioctl(l->sock, SIOCINQ, &unread))
		unread = 0;
	if (!l->hear)
		l->hear = l->heard + (unsigned int)unread;
	if (unread && l->heard < l->hear)
		return true;
	l->said = l->hear = 0;
	return false;
}

/* Counts bytes that the peer may have to queue. True: read received data before sending more. */
static inline bool must_poll(struct tcp_link *l, uint64_t head, size_t len)
{
	if (wire_op(head) > WIRE_RTS && !(wire_flags(head) & WIRE_MATCH))
		return false;
	l->said += sizeof(struct tcp_frame) + len;
	return __builtin_expect(l->said > TCP_UNREAD_MAX, 0) && has_unread(l);
}

/*
 * Asks the kernel how much its send buffer still takes. If the kernel does not say (before Linux
 * 4.12) or nothing is queued, a send is tried. A poll that finds the buffer full makes the kernel
 * enlarge it as the network allows.
 */
static COLD bool tcp_tx_ask_space(struct tcp_link *l, size_t cost)
{
	struct pollfd p = {.fd = l->sock, .events = POLLOUT};
	uint32_t info[SK_MEMINFO_VARS];
	socklen_t len = sizeof(info);
	uint32_t queued, most;

	l->room = 0;
	if (getsockopt(l->sock, SOL_SOCKET, SO_MEMINFO, info, &len) || len < sizeof(info))
		return true;
	queued = info[SK_MEMINFO_WMEM_QUEUED];
	most = info[SK_MEMINFO_SNDBUF];
	if (most > queued && most - queued >= cost)
		l->room = most - queued - cost;
	else if (queued && poll(&p, 1, 0) >= 0)
		return false;
	return true;
}

/*
 * Does the kernel take a packet of `len` bytes as a whole? A packet in the kernel is sent even if
 * this process dies; the rest of one, kept here, is lost.
 */
static inline bool tcp_tx_has_space(struct tcp_link *l, size_t len)
{
	size_t cost = len + len / 16 + BESIDE;

	if (__builtin_expect(l->room < cost, 0))
		return tcp_tx_ask_space(l, cost);
	l->room -= cost;
	return true;
}

bool tcp_has_space(struct tcp_link *l, size_t len)
{
	return tcp_tx_has_space(l, len);
}

static COLD int send_full(struct tcp_link *l)
{
	tcp_block(l, TCP_FULL);
	return -FI_EAGAIN;
}

int tcp_put(struct tcp_link *l, const struct tcp_outgoing *o)
{
	struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)o->iov, .msg_iovlen = o->count};
	ssize_t sent = sendmsg(l->sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (__builtin_expect(sent != (ssize_t)o->len, 0))
		return send_short(l, o, sent);
	list_remove(&l->in_answers);
	if (l->tx != TCP_READY)
		tcp_reopen(l);
	return 0;
}

static int send_fragments(struct tcp_link *l, const struct packet *p, const struct iovec *iov,
			  size_t count, bool zcopy)
{
	struct tcp_frame f = tcp_frame_of(p);
	struct iovec all[IOV_MOST + 1];
	struct tcp_outgoing o = {all, count + 1, sizeof(f) + p->len, p->head, zcopy};

	if (count > IOV_MOST || p->len > TCP_PACKET_MAX)
		return -FI_EMSGSIZE;
	if (l->tx >= TCP_REST)
		return send_behind(l, p);
	if (must_poll(l, p->head, p->len))
		return -FI_EAGAIN;
	if (!tcp_tx_has_space(l, p->len) && !zcopy && wire_op(p->head) != WIRE_DISCONNECT)
		return send_full(l);
	all[0] = (struct iovec){&f, sizeof(f)};
	if (count)
		memcpy(all + 1, iov, count * sizeof(*iov));
	return l->stream->send(l, &o);
}

/*
 * Sends an answer that nobody waits for: the kernel keeps it until more is sent, or a progress call
 * asks for it. Should neither happen, the kernel sends it some 200 ms later, or when we end.
 */
static int send_answer(struct tcp_link *l, const struct packet *p)
{
	struct tcp_frame f = tcp_frame_of(p);
	ssize_t sent;

	l->own->idle = 0;
	if (l->tx != TCP_READY || !tcp_tx_has_space(l, 0))
		return send_fragments(l, p, NULL, 0, false);
	sent = send(l->sock, &f, sizeof(f), MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE);
	if (sent != (ssize_t)sizeof(f))
		return send_short(l,
				  &(struct tcp_outgoing){&(struct iovec){&f, sizeof(f)}, 1,
							 sizeof(f), p->head, false},
				  sent);
	list_remove(&l->in_answers);
	list_push(&l->own->answers, &l->in_answers);
	return 0;
}

/* Adds a packet to those that wait. 0 or -FI_EAGAIN. */
static int send_gathered(struct tcp_link *l, const struct packet *p, const struct iovec *iov,
			 size_t count, bool counted)
{
	if (must_poll(l, p->head, p->len))
		return -FI_EAGAIN;
	return tcp_gather_add(l, p, iov, count, counted);
}

int tcp_sendv_prompt(struct link *link, const struct packet *p, const struct iovec *iov,
		     size_t count)
{
	struct tcp_link *l = (struct tcp_link *)link;
	bool waits = tcp_gathers(p->head, p->len);
	int err;

	if (waits && tcp_gather_waits(l))
		return send_gathered(l, p, iov, count, false);
	tcp_gather_end(l);
	err = send_fragments(l, p, iov, count, false);
	if (!err && waits)
		tcp_gather_count(l);
	return err;
}

int tcp_sendv(struct link *link, const struct packet *p, const struct iovec *iov, size_t count)
{
	struct tcp_link *l = (struct tcp_link *)link;

	if (wire_op(p->head) != WIRE_DONE || !(wire_flags(p->head) & WIRE_LATER))
		return tcp_sendv_prompt(link, p, iov, count);
	tcp_gather_end(l);
	return send_answer(l, p);
}

void tcp_row_add(struct tcp_link *l, size_t bytes)
{
	size_t row = bytes + (l->row_call == l->own->progress_calls ? l->row : 0);

	l->row_call = l->own->progress_calls;
	l->row = row < TCP_BATCH_MAX ? row : TCP_BATCH_MAX;
}

static bool is_long(const struct tcp_link *l, const struct packet *p)
{
	return p->len >= l->zcopy_min && p->len <= l->link.eager_max &&
	       wire_op(p->head) <= WIRE_RTS;
}

/*
 * Has so much gone since the last progress call that a long message is better batched? With automatic progress, no: the
 * progress thread may not poll for a while, and the application need not.
 */
static bool may_wait(const struct tcp_link *l, const struct packet *p)
{
	return l->row >= TCP_ROW && l->row_call == l->own->progress_calls && is_long(l, p) &&
	       !l->own->opener->dom->thread;
}

static int tcp_tx_send_one(struct tcp_link *l, const struct packet *p, const struct iovec *iov,
			   size_t count, bool zcopy)
{
	int err = send_fragments(l, p, iov, count, zcopy);

	if (!err && is_long(l, p))
		tcp_row_add(l, p->len);
	return err;
}

static int send_later(struct tcp_link *l, const struct packet *p, const struct iovec *payload)
{
	struct tcp_frame f = tcp_frame_of(p);

	l->own->idle = 0; /* the next progress calls flush the batch */
	if (l->tx == TCP_FAILED || must_poll(l, p->head, p->len))
		return -FI_EAGAIN;
	return tcp_rest_batch(l, &f, payload);
}

int tcp_zcopy(struct link *link, const struct packet *p, const struct iovec *iov, size_t count)
{
	struct tcp_link *l = (struct tcp_link *)link;

	if (tcp_gathers(p->head, p->len) && tcp_gather_waits(l))
		return send_gathered(l, p, iov, count, true);
	tcp_gather_end(l);
	return count == 1 && may_wait(l, p) ? send_later(l, p, iov)
					    : tcp_tx_send_one(l, p, iov, count, true);
}

/* Sends more than COPY_MAX bytes. -FI_EAGAIN: batch it, which only zero-copy sends can. */
static __attribute__((noinline)) int send_long(struct tcp_link *l, const struct packet *p)
{
	struct iovec iov = {(void *)(uintptr_t)p->payload, p->len};

	if (p->len > l->link.eager_max)
		return -FI_EMSGSIZE;
	return may_wait(l, p) ? -FI_EAGAIN : tcp_tx_send_one(l, p, &iov, 1, false);
}

/* Frame and payload in one segment: the kernel copies one faster than two. */
static int send_flat(struct tcp_link *l, const struct packet *p)
{
	struct {
		struct tcp_frame frame;
		unsigned char payload[COPY_MAX];
	} out;
	size_t len = sizeof(out.frame) + p->len;
	ssize_t sent;

	if (must_poll(l, p->head, p->len))
		return -FI_EAGAIN;
	if (__builtin_expect(!tcp_tx_has_space(l, p->len), 0) &&
	    wire_op(p->head) != WIRE_DISCONNECT)
		return send_full(l);
	out.frame = tcp_frame_of(p);
	if (p->len)
		memcpy(out.payload, p->payload, p->len);
	sent = send(l->sock, &out, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (__builtin_expect(sent != (ssize_t)len, 0))
		return send_short(
			l,
			&(struct tcp_outgoing){&(struct iovec){&out, len}, 1, len, p->head, false},
			sent);
	list_remove(&l->in_answers);
	if (__builtin_expect(l->tx != TCP_READY, 0))
		tcp_reopen(l);
	if (tcp_gathers(p->head, p->len))
		tcp_gather_count(l);
	return 0;
}

/*
 * As tcp_send, while short packets wait. A message is reported when it is out: zcopy->sendv says
 * when, for a long one behind those that wait, too.
 */
static COLD int send_in_stream(struct tcp_link *l, const struct packet *p)
{
	struct iovec iov = {(void *)(uintptr_t)p->payload, p->len};

	if (wire_op(p->head) == WIRE_MSG)
		return -FI_EAGAIN;
	return tcp_sendv(&l->link, p, &iov, 1);
}

int tcp_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
	     uint64_t tag)
{
	struct tcp_link *l = (struct tcp_link *)link;
	struct packet p = {.head = head, .tag = tag, .data = data, .payload = buf, .len = len};

	l->own->idle = 0; /* an answer may come soon */
	if (tcp_gather_waits(l))
		return send_in_stream(l, &p);
	if (__builtin_expect(l->tx >= TCP_REST, 0))
		return send_behind(l, &p);
	return len <= COPY_MAX ? send_flat(l, &p) : send_long(l, &p);
}

int tcp_sendv_whole(struct link *link, const struct packet *p, const struct iovec *iov,
		    size_t count)
{
	struct tcp_link *l = (struct tcp_link *)link;

	tcp_gather_end(l);
	return send_fragments(l, p, iov, count, false);
}

int tcp_send_whole(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		   uint64_t tag)
{
	struct tcp_link *l = (struct tcp_link *)link;
	struct packet p = {.head = head, .tag = tag, .data = data, .payload = buf, .len = len};
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	l->own->idle = 0; /* an answer may come soon */
	return len > link->eager_max ? -FI_EMSGSIZE : send_fragments(l, &p, &iov, 1, false);
}
