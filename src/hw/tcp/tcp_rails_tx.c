/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending over several rails. */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include "hw/tcp/tcp_rails.h"

/* The receiver acknowledges after this many bytes or chunks: the sender's window and table do not fill up. */
#define ACK_BYTES  (TCP_WINDOW / 8)
#define ACK_CHUNKS (TCP_SPANS_NEW / 8)

static bool usable(const struct tcp_rail *r)
{
	return r->sock >= 0 && !r->silent && !r->broken;
}

/* Sends more of the rail's chunk. True: all of it went. */
static bool push(struct tcp_link *l, struct tcp_rail *r)
{
	const size_t head = sizeof(r->out), all = head + r->out.len;
	size_t skip = r->sent > head ? r->sent - head : 0;
	struct iovec iov[3] = {{(char *)&r->out + r->sent, r->sent < head ? head - r->sent : 0}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 1};
	ssize_t sent;

	if (r->out.len > skip)
		m.msg_iovlen += tcp_window_iov(&l->rails->out, r->out.at + skip, r->out.len - skip,
					       &iov[1]);
	if (!iov[0].iov_len) {
		m.msg_iov++;
		m.msg_iovlen--;
	}
	sent = sendmsg(r->sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent > 0)
		r->sent += (size_t)sent;
	else if (sent < 0 && !tcp_passing(errno))
		r->broken = true;
	r->busy = r->sent < all;
	if (r->broken) {
		tcp_window_lost(&l->rails->out, (uint32_t)(r - l->rails->rail));
		l->rails->due = true;
	}
	return !r->busy;
}

/* Begins with a chunk; without bytes it only acknowledges. True: all of it went. */
static bool begin(struct tcp_link *l, struct tcp_rail *r, const struct tcp_span *span)
{
	struct tcp_rails *rails = l->rails;

	r->out = (struct tcp_chunk){
		.at = span->from, .ack = rails->in.begin, .len = (uint32_t)(span->to - span->from)};
	r->sent = 0;
	r->busy = true;
	rails->acked = rails->in.begin;
	rails->chunks = 0;
	rails->due = false;
	return push(l, r);
}

/* Sends over one rail until its kernel takes no more. True: something went. */
static bool fill(struct tcp_link *l, uint32_t rail)
{
	struct tcp_rail *r = &l->rails->rail[rail];
	struct tcp_span chunk;
	bool any = false;

	if (!usable(r) || (r->busy && !push(l, r)))
		return false;
	while (tcp_window_take(&l->rails->out, rail, &chunk)) {
		any = true;
		if (!begin(l, r, &chunk))
			break;
	}
	return any;
}

/* An acknowledgement goes over the rail that brought something last, which is no other than a live one. */
static void acknowledge(struct tcp_link *l)
{
	struct tcp_rails *rails = l->rails;
	const struct tcp_span none = {rails->out.next, rails->out.next, TCP_NO_RAIL};

	if (rails->in.begin - rails->acked >= ACK_BYTES || rails->chunks >= ACK_CHUNKS)
		rails->due = true;
	for (uint32_t i = 0; i < WIRE_RAILS_MAX && rails->due; i++) {
		struct tcp_rail *r = &rails->rail[(rails->latest + i) % WIRE_RAILS_MAX];

		if (usable(r) && !r->busy)
			begin(l, r, &none);
	}
}

static bool any_busy(const struct tcp_rails *rails)
{
	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++)
		if (rails->rail[i].busy && usable(&rails->rail[i]))
			return true;
	return false;
}

bool tcp_rails_flush(struct tcp_link *l)
{
	bool any = false;

	if (l->tx == TCP_FAILED)
		return false;
	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++)
		any |= fill(l, i);
	acknowledge(l);
	if (tcp_window_unsent(&l->rails->out) || any_busy(l->rails))
		tcp_block(l, TCP_REST);
	else if (l->tx == TCP_REST)
		tcp_reopen(l);
	return any;
}

/*
 * A packet is taken if all before it is with the kernels, and if it fits the window: what a process keeps is lost
 * when it ends. A disconnect message goes behind the rest.
 */
int tcp_rails_sendv(struct link *link, const struct packet *p, const struct iovec *iov,
		    size_t count)
{
	struct tcp_link *l = (struct tcp_link *)link;
	struct tcp_window *out = &l->rails->out;
	struct tcp_frame f = tcp_frame_of(p);
	bool last = wire_op(p->head) == WIRE_DISCONNECT; /* there is always space for it */

	if (p->len > TCP_PACKET_MAX)
		return -FI_EMSGSIZE;
	if (l->tx == TCP_FAILED || (l->tx == TCP_REST && !last))
		return -FI_EAGAIN;
	if (tcp_window_space(out) < sizeof(f) + p->len + (last ? 0 : sizeof(f))) {
		tcp_block(l, l->tx == TCP_REST ? TCP_REST : TCP_FULL);
		return -FI_EAGAIN;
	}
	tcp_window_put(out, &f, sizeof(f));
	for (size_t i = 0; i < count; i++)
		if (iov[i].iov_len)
			tcp_window_put(out, iov[i].iov_base, iov[i].iov_len);
	tcp_rails_flush(l);
	return 0;
}

int tcp_rails_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		   uint64_t tag)
{
	struct tcp_link *l = (struct tcp_link *)link;
	struct packet p = {.head = head, .tag = tag, .data = data, .payload = buf, .len = len};
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	l->own->idle = 0; /* an answer may come soon */
	return len > link->eager_max ? -FI_EMSGSIZE : tcp_rails_sendv(link, &p, &iov, 1);
}
