/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A read of an empty queue takes short plain messages from the cursor by itself: out of the slots, into the memory of
 * the receive and the entry of the reader, past the queue. What is not that simple is left there, for progress of the
 * transport.
 */
#include "base/copy.h"
#include "base/probe.h"
#include "core/cq.h"
#include "link/wire.h"
#include "xfer/msg/rx_plain.h"
#include "xfer/worker.h"

/* Longest message, in bytes, that is read here, and longest that is copied without a call. */
#define READ_MAX COPY_SHORT
#define FEW      24u
/* Bytes of a packet that is left to the transport: two more lines. */
#define LEFT (2 * 64u)

static inline bool is_plain(uint64_t head)
{
	return (head & ~RX_PLAIN_BITS(0)) == WIRE_MSG;
}

/* May messages be taken of a peer whose source was not found so far: is it, by now, what is noted? */
static __attribute__((noinline)) bool is_noted(struct peer *peer)
{
	return contact_reported(&peer->conn) == peer->conn.reported &&
	       !contact_expelled(&peer->conn);
}

/*
 * Takes the plain message that has come to the cursor. While calls are granted nothing but the cursor needs progress.
 * `p`: head and length of it. `shortest`: it has eight bytes; only
 * one of a known source is taken. False: nothing was done.
 */
static __attribute__((always_inline)) inline bool rx_read_take(struct worker *worker, struct cq *cq,
							       struct fi_cq_tagged_entry *entry,
							       fi_addr_t *src, struct packet p,
							       bool shortest)
{
	link_place at = link_cursor_place(worker->conn.driven.idle.cursor);
	struct rx *rx = worker->rx[0];
	struct cq_slot done;
	struct peer *peer;
	struct recv *r;

	if (!rx || rx->plain_cq != cq)
		return false;
	if (shortest)
		p.len = 8; /* the compiler copies and reports a constant length */
	peer = pool_find(&worker->conn.peer_pool, link_place_src(at));
	if (!peer || (peer->conn.reported == FI_ADDR_NOTAVAIL && (shortest || !is_noted(peer))))
		return false;
	p.tag = link_place_tag(at);
	r = rx_plain_find(rx, peer->conn.addr, &p);
	if (!r)
		return false;
	PROBE4(deliver, r, peer, p.tag, p.len);
	if (src)
		*src = peer->conn.reported;
	link_place_payload(at, &p);
	if (p.len <= FEW)
		copy_few(r->iov[0].iov_base, p.payload, p.len);
	else
		memcpy(r->iov[0].iov_base, p.payload, p.len);
	done = rx_plain_end(rx, r, FI_ADDR_NOTAVAIL, &p);
	cq_write(entry, cq->format, &done);
	link_cursor_take(worker->conn.driven.idle.cursor, at, &p, shortest);
	return true;
}

/* The same for a message of up to READ_MAX bytes, if one has come. */
static bool rx_read_take_any(struct worker *worker, struct cq *cq, void *entry, fi_addr_t *src)
{
	const struct link_cursor *cursor = worker->conn.driven.idle.cursor;
	struct packet p = {.data = 0};

	if (link_cursor_stops(cursor) || !link_cursor_came(cursor))
		return false;
	p.head = link_place_head(link_cursor_place(cursor));
	p.len = link_place_len(link_cursor_place(cursor));
	if (!is_plain(p.head) || p.len > READ_MAX)
		return false;
	if (p.len > FEW)
		link_place_want(link_cursor_place(cursor), p.len);
	return rx_read_take(worker, cq, entry, src, p, false);
}

/* Goes on with a read that has brought `n` entries so far. Uses up a call. */
static __attribute__((noinline)) ssize_t rx_read_go_on(struct cq *cq, void *buf, size_t count,
						       fi_addr_t *src, struct driven *d, size_t n)
{
	size_t size = cq_entry_size(cq->format);

	while (n < count &&
	       rx_read_take_any(worker_of(d), cq, (char *)buf + n * size, src ? &src[n] : NULL))
		n++;
	if (!n)
		return cq_read_due(cq, buf, count, src);
	idle_use(&d->idle);
	return (ssize_t)n;
}

/* Ends a read that has brought one entry. */
static inline ssize_t rx_read_end(struct driven *d)
{
	idle_use(&d->idle);
	return 1;
}

/* Takes messages of eight bytes as long as some have come; the first has, with this head. */
static __attribute__((noinline)) ssize_t read_several(struct cq *cq, void *buf, size_t count,
						      struct driven *d, uint64_t head)
{
	const struct link_cursor *cursor = d->idle.cursor;
	size_t size = cq_entry_size(cq->format), n = 0;
	bool came = true;

	while (n < count && !link_cursor_stops(cursor) && is_plain(head) &&
	       link_place_len(link_cursor_place(cursor)) == 8 &&
	       rx_read_take(worker_of(d), cq, (void *)((char *)buf + n * size), NULL,
			    (struct packet){.head = head}, true)) {
		n++;
		came = link_cursor_came(cursor);
		if (!came)
			break;
		head = link_place_head(link_cursor_place(cursor));
	}
	if (came)
		return rx_read_go_on(cq, buf, count, NULL, d, n);
	idle_use(&d->idle);
	return (ssize_t)n;
}

/* What is not read here may be long: its next lines come while the transport looks at the first. */
static inline ssize_t rx_read_leave(struct cq *cq, void *buf, size_t count, link_place at)
{
	link_place_want(at, LEFT);
	return cq_read_due(cq, buf, count, NULL);
}

ssize_t rx_read(struct cq *cq, void *buf, size_t count, struct driven *d, link_place at)
{
	uint64_t head = link_place_head(at);
	uint32_t len = link_place_len(at);

	if (!is_plain(head))
		return rx_read_leave(cq, buf, count, at);
	if (len != 8)
		return len > READ_MAX ? rx_read_leave(cq, buf, count, at)
				      : rx_read_go_on(cq, buf, count, NULL, d, 0);
	if (count != 1)
		return read_several(cq, buf, count, d, head);
	/* The constants need no register while the message is taken. */
	return rx_read_take(worker_of(d), cq, buf, NULL, (struct packet){.head = head}, true)
		       ? rx_read_end(d)
		       : rx_read_go_on(cq, buf, 1, NULL, d, 0);
}

ssize_t rx_readfrom(struct cq *cq, void *buf, size_t count, fi_addr_t *src, struct driven *d)
{
	return rx_read_go_on(cq, buf, count, src, d, 0);
}
