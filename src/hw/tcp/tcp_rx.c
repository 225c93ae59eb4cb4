/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving. Bytes are read into the worker's buffer, and packets are delivered from there. If a
 * packet is not complete, its frame stays in the link. A long payload is then read straight to the
 * segments that the engine names (direct placement), another one into `kept`. An event may close
 * the link: after one, look at `closed` before any other field.
 */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/copy.h"
#include "base/iov.h"
#include "base/log.h"
#include "hw/tcp/tcp_tls.h"
#include "link/opener.h"

/* After this much of one link the other links get their turn. */
#define PACKETS_PER_CALL 64
#define BYTES_PER_CALL   262144u
/* Longer payloads use direct placement, in bytes. */
#define PLACE_MIN 4096u
/*
 * After a payload longer than this (bytes), little is read ahead: the next ones are probably as long, and direct
 * placement saves a copy. A shorter one is copied faster than the kernel is called twice.
 */
#define BULK_MIN 32768u

void tcp_end(struct tcp_link *l, int err)
{
	struct opener *o = l->own->opener;

	l->ended = true;
	l->link.silent &= !l->heard;
	o->events->ended(o, l->id, l->tx == TCP_FAILED && err > 0 ? l->err : err);
}

static struct packet tcp_rx_packet_of(const struct tcp_link *l)
{
	const struct tcp_frame *f = &l->frame;

	return (struct packet){.head = f->head,
			       .tag = f->tag,
			       .data = wire_flags(f->head) & WIRE_DATA ? f->data : 0,
			       .len = f->len};
}

/* The packet is complete; the next bytes are a frame. */
static void expect_frame(struct tcp_link *l)
{
	l->have = l->got = l->placing = 0;
	l->begun = false;
	l->own->packets++;
}

static void tcp_rx_deliver(struct tcp_link *l, const void *payload)
{
	struct packet p = tcp_rx_packet_of(l);

	p.payload = payload;
	expect_frame(l);
	if (__builtin_expect(l->indirect, 0) && l->stream->hear)
		l->stream->hear(l, &p);
	l->own->opener->events->deliver(l->own->opener, l->id, &p);
}

static void tcp_rx_finish(struct tcp_link *l)
{
	struct packet p = tcp_rx_packet_of(l);
	struct opener *o = l->own->opener;
	uint32_t id = l->placing;

	p.payload = l->kept;
	expect_frame(l);
	if (id) {
		o->events->placement_end(o, id);
		return;
	}
	l->kept = NULL;
	o->events->deliver_collected(o, l->id, &p);
}

/* Takes bytes of the frame. Returns their number. */
static size_t take_frame(struct tcp_link *l, const unsigned char *at, size_t len)
{
	size_t wants = sizeof(l->frame) - l->have;

	if (len > wants)
		len = wants;
	if (__builtin_expect(len == sizeof(l->frame), 1))
		memcpy(&l->frame, at, sizeof(l->frame)); /* constant length: no call */
	else
		memcpy((unsigned char *)&l->frame + l->have, at, len);
	l->have += (uint32_t)len;
	return len;
}

static bool frame_good(const struct tcp_link *l)
{
	const struct tcp_frame *f = &l->frame;
	unsigned int op = wire_op(f->head);

	if (__builtin_expect(op && op < WIRE_OPS && f->len <= TCP_PACKET_MAX && !f->zero, 1))
		return true;
	LOG_PEER(LOG_EP_DATA,
		 "tcp: peer %#x sent no packet of ours: op %u, %u bytes (at most %u), %#x for zero",
		 l->id, op, f->len, TCP_PACKET_MAX, f->zero);
	return false;
}

/* Chooses where an incomplete payload goes. 0 or a positive error. May close the link. */
static int tcp_rx_begin(struct tcp_link *l)
{
	struct opener *o = l->own->opener;
	struct packet p = tcp_rx_packet_of(l);

	l->begun = true;
	if (l->frame.len > PLACE_MIN)
		l->placing = o->events->placement_begin(o, l->id, &p);
	if (l->placing || l->closed)
		return 0;
	l->kept = o->events->payload_new(o, l->id, &p);
	return l->kept ? 0 : FI_ENOMEM;
}

/* Copies bytes of a payload to the engine's segments; discards them if the receive is gone. */
static void tcp_rx_spread(struct tcp_link *l, const unsigned char *at, size_t len)
{
	struct opener *o = l->own->opener;
	struct iovec iov[RX_IOV_MAX];
	size_t done = 0, n = 1, count;

	while (done < len && n) {
		count = o->events->placement_iov(o, l->placing, l->got + done, iov, RX_IOV_MAX);
		n = iov_scatter(iov, count, 0, at + done, len - done);
		done += n;
	}
}

/* Takes bytes of a payload that has begun. Returns their number. */
static size_t take_payload(struct tcp_link *l, const unsigned char *at, size_t len)
{
	size_t left = l->frame.len - l->got;

	if (len > left)
		len = left;
	if (l->placing)
		tcp_rx_spread(l, at, len);
	else
		copy_bytes(l->kept + l->got, at, len);
	l->got += (uint32_t)len;
	if (len == left)
		tcp_rx_finish(l);
	return len;
}

/* Takes bytes of the payload behind a frame. Returns their number; 0 if the link ended. */
static size_t take_first(struct tcp_link *l, const unsigned char *at, size_t len)
{
	size_t all = l->frame.len;
	int err;

	if (!frame_good(l)) {
		tcp_end(l, FI_EPROTO);
		return 0;
	}
	l->bulk = all > BULK_MIN;
	if (all <= len) {
		tcp_rx_deliver(l, at);
		return all;
	}
	err = tcp_rx_begin(l);
	if (err)
		tcp_end(l, err);
	return err || l->closed || !len ? 0 : take_payload(l, at, len);
}

static void tcp_rx_take(struct tcp_link *l, const unsigned char *at, size_t len)
{
	size_t used = 0;

	while (used < len && !l->ended && !l->closed) {
		if (l->begun) {
			used += take_payload(l, at + used, len - used);
			continue;
		}
		used += take_frame(l, at + used, len - used);
		if (l->have == sizeof(l->frame))
			used += take_first(l, at + used, len - used);
	}
}

/*
 * Fills in where the next bytes go: the rest of the payload (*room bytes), then the read buffer.
 * Returns the number of segments.
 */
static size_t tcp_rx_places(struct tcp_link *l, struct iovec *iov, size_t *room)
{
	size_t left = l->frame.len - l->got, count = 1;
	struct opener *o = l->own->opener;
	struct iovec named[RX_IOV_MAX];

	*room = left;
	if (l->placing) {
		count = o->events->placement_iov(o, l->placing, l->got, named, RX_IOV_MAX);
		count = iov_slice(iov, named, count, 0, room);
	} else {
		iov[0] = (struct iovec){l->kept + l->got, left};
	}
	iov[count].iov_base = l->own->buf;
	iov[count].iov_len = *room == left && l->bulk ? TCP_AHEAD : TCP_READ;
	return count + 1;
}

/* As recv. *asked: bytes asked for; *placed: how many of them belong to the payload. */
static ssize_t tcp_rx_receive(struct tcp_link *l, size_t *asked, size_t *placed)
{
	struct iovec iov[RX_IOV_MAX + 1];
	size_t count = 1;

	*placed = 0;
	if (!l->begun && !l->indirect) {
		*asked = tcp_ahead(l);
		return recv(l->sock, l->own->buf, *asked, MSG_DONTWAIT);
	}
	iov[0] = (struct iovec){l->own->buf, tcp_ahead(l)};
	if (l->begun)
		count = tcp_rx_places(l, iov, placed);
	*asked = *placed + iov[count - 1].iov_len;
	return l->stream->recv(l, iov, count);
}

/* Processes `len` bytes that `receive` returned. */
static void tcp_rx_received(struct tcp_link *l, size_t len, size_t placed)
{
	if (placed > len)
		placed = len;
	if (!l->indirect)
		l->heard += len;
	l->got += (uint32_t)placed;
	if (placed && l->got == l->frame.len)
		tcp_rx_finish(l);
	tcp_rx_take(l, l->own->buf, len - placed);
}

/* recv returned 0 or an error: ends the link, unless there is just nothing to read. */
static void tcp_rx_silent(struct tcp_link *l, ssize_t ret)
{
	int err;

	if (ret < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	err = ret ? tcp_tls_fault(l) : FI_ECONNRESET;
	if (ret == 0 && l->have)
		LOG_INFO(LOG_EP_DATA, "tcp: the connection to peer %#x ended within a packet",
			 l->id);
	tcp_end(l, err == FI_ENOMEM ? -err : err);
}

/* May this progress call read more of the link? */
static bool goes_on(const struct tcp_link *l, size_t bytes)
{
	return !l->ended && !l->closed && bytes < BYTES_PER_CALL &&
	       l->own->packets < PACKETS_PER_CALL;
}

/* Is there more to read, of which no event tells, and that does not wait for the next progress call? `bytes` are read. */
static bool reads_on(struct tcp_link *l, size_t bytes)
{
	if (!l->indirect || l->ended || l->closed || !l->stream->unread(l))
		return false;
	if (!l->stream->keeps || goes_on(l, bytes))
		return true;
	tcp_attend(l);
	return false;
}

static bool read_on(struct tcp_link *l, ssize_t len, size_t asked, size_t placed)
{
	size_t bytes = 0;

	l->own->packets = 0;
	while (len > 0) {
		bytes += (size_t)len;
		tcp_rx_received(l, (size_t)len, placed);
		if (((size_t)len < asked || !goes_on(l, bytes)) && !reads_on(l, bytes))
			return true;
		len = tcp_rx_receive(l, &asked, &placed);
	}
	tcp_rx_silent(l, len);
	return bytes || l->ended;
}

bool tcp_take(struct tcp_link *l, ssize_t len)
{
	return read_on(l, len, tcp_ahead(l), 0);
}

bool tcp_read(struct tcp_link *l)
{
	size_t asked, placed;
	ssize_t len = tcp_rx_receive(l, &asked, &placed);

	return read_on(l, len, asked, placed);
}
