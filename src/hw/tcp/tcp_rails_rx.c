/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving over several rails. */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/iov.h"
#include "base/log.h"
#include "hw/tcp/tcp_rails.h"
#include "link/upcall.h"

#define PULL_BYTES 262144u /* after this much of one rail the others get their turn */
#define PLACE_MIN  4096u   /* bytes: longer rests of a chunk are read to their place at once */

static bool head_good(const struct tcp_link *l, const struct tcp_chunk *c)
{
	const struct tcp_window *in = &l->rails->in;

	if (!c->zero && c->len <= TCP_CHUNK && tcp_window_fits(in, c->at, c->len) &&
	    c->ack <= l->rails->out.next)
		return true;
	LOG_WARN(LOG_EP_DATA,
		 "tcp: peer %#x sent no chunk of ours: %u bytes (at most %u) at %llu, where %llu "
		 "to %llu are expected, of our %llu bytes it has read %llu, %#x for zero",
		 l->id, c->len, TCP_CHUNK, (unsigned long long)c->at, (unsigned long long)in->begin,
		 (unsigned long long)(in->begin + TCP_WINDOW),
		 (unsigned long long)l->rails->out.next, (unsigned long long)c->ack, c->zero);
	return false;
}

/* The chunk is complete; the next bytes are a head. */
static void expect_head(struct tcp_rail *r)
{
	r->have = r->got = 0;
}

/* The head is complete. False: the peer breaks the protocol. */
static bool take_head(struct tcp_link *l, struct tcp_rail *r)
{
	struct tcp_rails *rails = l->rails;

	if (!head_good(l, &r->in))
		return false;
	tcp_window_acked(&rails->out, r->in.ack);
	if (l->tx == TCP_FULL)
		tcp_reopen(l);
	rails->latest = (uint32_t)(r - rails->rail);
	rails->chunks += r->in.len > 0;
	if (!r->in.len)
		expect_head(r);
	return true;
}

/* Notes bytes of the chunk that are in their place, or dropped. False: the peer breaks the protocol. */
static bool note(struct tcp_link *l, struct tcp_rail *r, size_t len)
{
	bool good = tcp_window_came(&l->rails->in, r->in.at + r->got, len);

	r->got += len;
	if (r->got == r->in.len)
		expect_head(r);
	if (!good)
		LOG_WARN(LOG_EP_DATA, "tcp: peer %#x sent more than %u parts out of order", l->id,
			 TCP_SPANS);
	return good;
}

/* Copies bytes of a chunk to their place, but for those that came before. */
static bool put(struct tcp_link *l, struct tcp_rail *r, const unsigned char *from, size_t len)
{
	struct tcp_window *in = &l->rails->in;
	uint64_t at = r->in.at + r->got;
	size_t skip = at < in->next ? (size_t)(in->next - at) : 0;
	struct iovec iov[2];

	if (skip < len)
		iov_scatter(iov, tcp_window_iov(in, at + skip, len - skip, iov), 0, from + skip,
			    len - skip);
	return note(l, r, len);
}

/* Takes bytes off the read buffer. False: the peer breaks the protocol. */
static bool take(struct tcp_link *l, struct tcp_rail *r, const unsigned char *from, size_t len)
{
	const size_t head = sizeof(r->in);
	bool good = true;
	size_t n;

	for (; len && good; from += n, len -= n) {
		if (r->have < head) {
			n = len < head - r->have ? len : head - r->have;
			memcpy((unsigned char *)&r->in + r->have, from, n);
			r->have += n;
			good = r->have < head || take_head(l, r);
		} else {
			n = len < r->in.len - r->got ? len : r->in.len - r->got;
			good = put(l, r, from, n);
		}
	}
	return good;
}

/* Fills in where the next bytes go: the rest of a chunk (*placed bytes), then the read buffer. */
static size_t places(const struct tcp_link *l, const struct tcp_rail *r, struct iovec iov[3],
		     size_t *placed)
{
	const struct tcp_window *in = &l->rails->in;
	size_t left = r->have == sizeof(r->in) ? r->in.len - r->got : 0, count = 0;
	uint64_t at = r->in.at + r->got;

	*placed = left >= PLACE_MIN && at >= in->next ? left : 0;
	if (*placed)
		count = tcp_window_iov(in, at, left, iov);
	iov[count] = (struct iovec){l->own->buf, *placed ? TCP_AHEAD : TCP_READ};
	return count + 1;
}

/* Reads one rail. False: the peer breaks the protocol. */
static bool pull(struct tcp_link *l, uint32_t rail)
{
	struct tcp_rail *r = &l->rails->rail[rail];
	struct iovec iov[3];
	struct msghdr m = {.msg_iov = iov};
	size_t bytes = 0, placed, n;
	ssize_t len = 1;
	bool good = true;

	while (len > 0 && bytes < PULL_BYTES && good) {
		m.msg_iovlen = places(l, r, iov, &placed);
		len = recvmsg(r->sock, &m, MSG_DONTWAIT);
		if (len <= 0)
			break;
		bytes += (size_t)len;
		n = (size_t)len < placed ? (size_t)len : placed;
		if (n)
			good = note(l, r, n);
		good = good && take(l, r, l->own->buf, (size_t)len - n);
		if ((size_t)len < iov_bytes(iov, m.msg_iovlen))
			break;
	}
	l->heard += bytes;
	if (len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR))
		tcp_rails_end(l, rail, len ? errno : 0);
	return good;
}

/* Reads all rails. False: the peer breaks the protocol. */
static bool pull_all(struct tcp_link *l)
{
	bool good = true;

	for (uint32_t i = 0; i < WIRE_RAILS_MAX && good; i++)
		if (l->rails->rail[i].sock >= 0)
			good = pull(l, i);
	return good;
}

static ssize_t fail(int err)
{
	errno = err;
	return -1;
}

ssize_t tcp_rails_recv(struct tcp_link *l, const struct iovec *iov, size_t count)
{
	struct tcp_rails *rails = l->rails;
	bool ended = true;
	size_t len;

	if (!tcp_rails_unread(l) && !pull_all(l))
		return fail(FI_EPROTO);
	len = tcp_window_read(&rails->in, iov, count);
	if (rails->due || rails->chunks || rails->out.again)
		tcp_rails_flush(l);
	if (len)
		return (ssize_t)len;
	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++)
		ended &= rails->rail[i].sock < 0;
	/* The peer closes the old socket of a rail that it makes anew: its answer may come later. */
	if (ended && !(rails->initiator && !l->closed && rail_coming(l->own->worker, l->id)))
		return rails->err ? fail(rails->err) : 0;
	return fail(EAGAIN);
}
