/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving over several rails. */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/iov.h"
#include "base/log.h"
#include "hw/tcp/tcp_output.h"
#include "hw/tcp/rails/tcp_rails.h"
#include "hw/tcp/tcp_tls.h"

#define PULL_BYTES 262144u /* after this much of one rail the others get their turn */
#define PLACE_MIN  4096u   /* bytes: longer rests of a chunk are read to their place at once */

static bool head_good(const struct tcp_link *l, const struct tcp_chunk *c)
{
	const struct tcp_window *in = &l->rails->in;

	if (c->asks <= 1 && !(c->asks && c->len) && c->len <= TCP_CHUNK &&
	    tcp_window_fits(in, c->at, c->len) && c->ack <= l->rails->out.next)
		return true;
	LOG_PEER(LOG_EP_DATA,
		 "tcp: peer %#x sent no chunk of ours: %u bytes (at most %u) at %llu, where %llu "
		 "to %llu are expected, of our %llu bytes it has read %llu, it asks %u times",
		 l->id, c->len, TCP_CHUNK, (unsigned long long)c->at, (unsigned long long)in->begin,
		 (unsigned long long)(in->begin + TCP_WINDOW),
		 (unsigned long long)l->rails->out.next, (unsigned long long)c->ack, c->asks);
	return false;
}

/* The chunk is complete; the next bytes are a head. */
static void expect_head(struct tcp_rail *r)
{
	r->have = r->got = 0;
}

/* Memory for what comes. A closed link notes its places alone. 0 or a positive error: the link ends. */
static int open_window(struct tcp_link *l)
{
	struct tcp_window *in = &l->rails->in;
	struct opener *o = l->own->opener;

	if (in->bytes)
		return 0;
	if (!l->closed && !o->events->hold(o, l->id, TCP_WINDOW))
		return FI_EPROTO;
	if (tcp_window_open(in))
		return 0;
	if (!l->closed)
		o->events->release(o, l->id, TCP_WINDOW);
	return FI_ENOMEM;
}

void tcp_rails_trim_in(struct tcp_link *l)
{
	bool held = l->rails->in.bytes;

	tcp_window_trim(&l->rails->in);
	if (held && !l->rails->in.bytes)
		l->own->opener->events->release(l->own->opener, l->id, TCP_WINDOW);
}

void tcp_rails_forget(struct tcp_link *l)
{
	if (!l->rails->in.bytes)
		return;
	tcp_window_forget(&l->rails->in);
	l->own->opener->events->release(l->own->opener, l->id, TCP_WINDOW);
}

/* The head is complete. 0 or a positive error: the link ends. */
static int tcp_rails_rx_take_head(struct tcp_link *l, struct tcp_rail *r)
{
	struct tcp_rails *rails = l->rails;

	if (!head_good(l, &r->in))
		return FI_EPROTO;
	tcp_window_acked(&rails->out, r->in.ack);
	if (l->tx == TCP_FULL)
		tcp_reopen(l);
	rails->latest = (uint32_t)(r - rails->rail);
	/* The peer wants to know when all up to there is read. An answer may have been lost with a rail. */
	if (r->in.asks && r->in.at <= rails->in.begin)
		rails->ack_due = true;
	else if (r->in.asks && r->in.at > rails->asked)
		rails->asked = r->in.at;
	if (r->in.len)
		return open_window(l);
	expect_head(r);
	return 0;
}

/* Notes bytes of the chunk that are in their place, or dropped. 0 or a positive error. */
static int tcp_rails_rx_note(struct tcp_link *l, struct tcp_rail *r, size_t len)
{
	bool good = tcp_window_came(&l->rails->in, r->in.at + r->got, len);

	r->got += len;
	if (r->got == r->in.len)
		expect_head(r);
	if (good)
		return 0;
	LOG_PEER(LOG_EP_DATA, "tcp: peer %#x sent more than %u parts out of order", l->id,
		 TCP_SPANS);
	return FI_EPROTO;
}

/* Copies bytes of a chunk to their place, but for those that came before, and all of a closed link. 0 or a positive error. */
static int tcp_rails_rx_put(struct tcp_link *l, struct tcp_rail *r, const unsigned char *from,
			    size_t len)
{
	struct tcp_window *in = &l->rails->in;
	uint64_t at = r->in.at + r->got;
	size_t skip = at < in->next ? (size_t)(in->next - at) : 0;
	struct iovec iov[2];

	if (skip < len && !l->closed)
		iov_scatter(iov, tcp_window_iov(in, at + skip, len - skip, iov), 0, from + skip,
			    len - skip);
	return tcp_rails_rx_note(l, r, len);
}

/* Takes bytes off a read buffer. 0 or a positive error. */
static int tcp_rails_rx_take(struct tcp_link *l, struct tcp_rail *r, const unsigned char *from,
			     size_t len)
{
	const size_t head = sizeof(r->in);
	int err = 0;
	size_t n;

	for (; len && !err; from += n, len -= n) {
		if (r->have < head) {
			n = len < head - r->have ? len : head - r->have;
			memcpy((unsigned char *)&r->in + r->have, from, n);
			r->have += n;
			err = r->have < head ? 0 : tcp_rails_rx_take_head(l, r);
		} else {
			n = len < r->in.len - r->got ? len : r->in.len - r->got;
			err = tcp_rails_rx_put(l, r, from, n);
		}
	}
	return err;
}

/*
 * Fills in where the next bytes go: the rest of a chunk (*placed bytes), then `buf`. Nothing that has come lies there: a kernel
 * that decrypts puts bytes to their place before it knows whether they are the peer's.
 */
static size_t tcp_rails_rx_places(const struct tcp_link *l, const struct tcp_rail *r,
				  const struct iovec *buf, struct iovec iov[3], size_t *placed)
{
	const struct tcp_window *in = &l->rails->in;
	size_t left = r->have == sizeof(r->in) ? r->in.len - r->got : 0, count = 0;
	uint64_t at = r->in.at + r->got;

	*placed = left >= PLACE_MIN && !l->closed && tcp_window_lacks(in, at, left) ? left : 0;
	if (*placed)
		count = tcp_window_iov(in, at, left, iov);
	iov[count] = *buf;
	if (*placed && iov[count].iov_len > TCP_AHEAD)
		iov[count].iov_len = TCP_AHEAD;
	return count + 1;
}

/* Memory to read into: what is no rest of a chunk, and what has to be decrypted. */
struct room {
	struct iovec plain, cipher;
};

/* As recvmsg. A kernel that encrypts reports first, by EPIPE, that it could not send; what has come is behind that. */
static ssize_t tcp_rails_rx_receive(struct tcp_link *l, struct tcp_rail *r, const struct room *room,
				    struct iovec *iov, size_t count)
{
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = count};
	ssize_t len;

	if (r->secure.tls)
		return tcp_tls_read(l, &r->secure, &room->cipher, iov, count);
	len = recvmsg(r->sock, &m, MSG_DONTWAIT);
	if (len < 0 && errno == EPIPE)
		len = recvmsg(r->sock, &m, MSG_DONTWAIT);
	l->heard += len > 0 ? (size_t)len : 0;
	return len;
}

/* Reads one rail. 0 or a positive error: the link ends. */
static int tcp_rails_rx_pull(struct tcp_link *l, uint32_t rail, const struct room *room)
{
	struct tcp_rail *r = &l->rails->rail[rail];
	size_t bytes = 0, placed, count, n;
	struct iovec iov[3];
	ssize_t len;
	int err;

	do {
		count = tcp_rails_rx_places(l, r, &room->plain, iov, &placed);
		len = tcp_rails_rx_receive(l, r, room, iov, count);
		if (len <= 0)
			break;
		bytes += (size_t)len;
		n = (size_t)len < placed ? (size_t)len : placed;
		err = n ? tcp_rails_rx_note(l, r, n) : 0;
		err = err ? err : tcp_rails_rx_take(l, r, room->plain.iov_base, (size_t)len - n);
		if (err)
			return err;
	} while (tcp_tls_unused(&r->secure) ||
		 ((size_t)len == iov_bytes(iov, count) && bytes < PULL_BYTES));
	if (len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR))
		tcp_rails_end(l, rail, len ? tcp_tls_fault(l) : 0);
	return 0;
}

/* Reads all rails that are ready. 0 or a positive error: the link ends. */
static int pull_all(struct tcp_link *l, const struct room *room)
{
	int err = 0;

	for (uint32_t i = 0; i < WIRE_RAILS_MAX && !err; i++)
		if (l->rails->rail[i].sock >= 0 && !l->rails->rail[i].securing)
			err = tcp_rails_rx_pull(l, i, room);
	return err;
}

/* Bytes were read off the stream. Answers if the peer waits for that: tcp_rails.h. */
static void tcp_rails_rx_answer(struct tcp_link *l)
{
	struct tcp_rails *rails = l->rails;
	uint64_t read = rails->in.begin;

	if (rails->acked < rails->asked &&
	    (read >= rails->asked || read / TCP_ASK > rails->acked / TCP_ASK)) {
		rails->ack_due = true;
		if (rails->in.bytes && !l->closed)
			l->own->opener->events->hold(l->own->opener, l->id, 0);
	}
	if (rails->ack_due || rails->ask_due || rails->out.again || rails->marks)
		tcp_rails_flush(l);
}

/* Is the handshake of a rail done? It may leave packets unanswered nevertheless: the next look finds others. */
static bool any_secured(const struct tcp_rails *rails)
{
	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++)
		if (rails->rail[i].sock >= 0 && !rails->rail[i].securing)
			return true;
	return false;
}

ssize_t tcp_rails_recv(struct tcp_link *l, const struct iovec *iov, size_t count)
{
	const struct room room = {{l->own->buf, TCP_READ}, tcp_tls_room(l->own)};
	struct tcp_rails *rails = l->rails;
	size_t len;
	int err;

	TCP_OUTPUT_LOCKED(l);
	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++)
		if (rails->rail[i].securing)
			tcp_rails_shake(l, i);
	if (l->tx == TCP_SECURING && any_secured(rails)) {
		/* Packets may be sent, and the other rails asked for. The engine may close the link. */
		tcp_reopen(l);
		l->own->next_rails = 0;
		l->own->opener->events->ready(l->own->opener, l->id);
		return tcp_fails(EAGAIN);
	}
	err = rails->in.begin != rails->in.next ? 0 : pull_all(l, &room);
	if (err)
		return tcp_fails(err);
	len = tcp_window_read(&rails->in, iov, count);
	tcp_rails_rx_answer(l);
	if (len)
		return (ssize_t)len;
	rails->end_due = false;
	/* The peer closes the old socket of a rail that it makes anew: its answer may come later. */
	if (l->sock < 0 &&
	    !(rails->wanted && l->own->opener->events->rail_coming(l->own->opener, l->id)))
		return rails->err ? tcp_fails(rails->err) : 0;
	return tcp_fails(EAGAIN);
}

/* The link is closed: the worker's buffers may hold what another link has received. */
bool tcp_rails_drop(struct tcp_link *l)
{
	unsigned char scrap[2][4096];
	const struct room room = {{scrap[0], sizeof(scrap[0])}, {scrap[1], sizeof(scrap[1])}};
	struct tcp_window *in = &l->rails->in;
	int err = pull_all(l, &room);

	in->begin = in->next;
	tcp_rails_rx_answer(l);
	return !err && l->sock >= 0;
}
