/* SPDX-License-Identifier: BSD-2-Clause */
/* One connection of a raw client: hellos, then packets, over TCP or in shared memory. */
#ifndef FAULT_RAW_LINK_H
#define FAULT_RAW_LINK_H

#include <poll.h>

#include "raw_ring.h"
#include "rng.h"

#define HEAD(op, flags, rx, id)                                                                    \
	((uint64_t)((op)&0xffu) | (uint64_t)((flags)&0xffu) << 8 |                                 \
	 (uint64_t)((rx)&0xffffu) << 16 | (uint64_t)(uint32_t)(id) << 32)
/* Kinds of packets that hello.h does not name. */
enum {
	WIRE_ATS = 3,
	WIRE_CTS,
	WIRE_XOFF = 6,
	WIRE_XON,
	WIRE_PUT,
	WIRE_GET,
	WIRE_AMO,
	WIRE_NOTIFY,
	WIRE_DONE,
	WIRE_RESULT,
	WIRE_FAILED
};
enum { TAGGED = 0x01, ACKS = 0x0c, LONG = 0x10, CQ = 0x20, MATCH = 0x80 };

#define SHM_PACKET_MAX 16384u
#define HELLO_MS       200 /* how long a raw client waits for an answer to its hello */
#define ROOM_MS        10  /* and for space for a packet */

struct raw_link {
	int sock; /* -1: none */
	bool inside, open;
	uint32_t id;               /* of this client at the endpoint */
	struct raw_ring ring, own; /* the endpoint's ring, and the client's */
	struct frame seen[32];     /* the last packet of each kind from the endpoint */
	uint64_t count[32];        /* packets of each kind */
	unsigned char in[4096];    /* input that is no whole frame yet */
	size_t have, skip;         /* bytes in `in`; bytes of payload still to come */
};

static uint64_t raw_probe = 0x5eed; /* the endpoint reads it to see whether it can copy */

/* ---- Packets from the endpoint ---- */

static inline void raw_link_note(struct raw_link *l, const struct frame *f)
{
	l->seen[f->head & 31] = *f;
	l->count[f->head & 31]++;
}

/* Notes the frames in `len` bytes of input. */
static inline void raw_link_parse(struct raw_link *l, const unsigned char *at, size_t len)
{
	struct frame f;

	while (len) {
		size_t n = l->skip < len ? l->skip : len;

		l->skip -= n;
		if (!n) {
			n = sizeof(f) - l->have < len ? sizeof(f) - l->have : len;
			memcpy(l->in + l->have, at, n);
			l->have += n;
		}
		if (l->have == sizeof(f)) {
			memcpy(&f, l->in, sizeof(f));
			raw_link_note(l, &f);
			l->skip = f.len;
			l->have = 0;
		}
		at += n;
		len -= n;
	}
}

/* Reads what the endpoint has sent. */
static inline void raw_link_hear(struct raw_link *l)
{
	static unsigned char bytes[65536];
	const struct raw_slot *s;
	ssize_t n;

	if (l->sock < 0 || !l->open)
		return;
	if (!l->inside) {
		for (int i = 0;
		     i < 32 && (n = recv(l->sock, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0; i++)
			raw_link_parse(l, bytes, (size_t)n);
		return;
	}
	for (int i = 0; i < 256 && (s = raw_ring_peek(&l->own)); i++) {
		raw_link_note(l, &(struct frame){.head = s->head, .tag = s->tag, .len = s->len});
		raw_ring_step(&l->own);
	}
}

/* Waits until the endpoint has sent another packet of this kind, for at most `ms`. */
static inline bool raw_link_await(struct raw_link *l, unsigned int op, uint64_t before,
				  unsigned int ms)
{
	uint64_t end = now_ms() + ms;

	for (;;) {
		raw_link_hear(l);
		if (l->count[op] > before)
			return true;
		if (now_ms() > end || !l->open)
			return false;
		usleep(50);
	}
}

/* ---- Packets to the endpoint ---- */

/* Sends bytes as they are, for at most ROOM_MS. Reads meanwhile, so that the endpoint goes on. */
static inline void raw_link_bytes(struct raw_link *l, const void *bytes, size_t len)
{
	uint64_t end = now_ms() + ROOM_MS;
	const char *at = bytes;
	ssize_t n;

	while (len && l->sock >= 0) {
		n = send(l->sock, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && (errno != EAGAIN || now_ms() > end))
			return;
		if (n < 0) {
			raw_link_hear(l);
			usleep(50);
			continue;
		}
		at += n;
		len -= (size_t)n;
	}
}

/* Sends a packet of any content; in shared memory at most SHM_PACKET_MAX bytes follow the head. */
static inline void raw_link_put(struct raw_link *l, struct frame f, const void *payload)
{
	static unsigned char bytes[sizeof(f) + PACKET_MAX + 1];
	size_t len = f.len < PACKET_MAX + 1 ? f.len : PACKET_MAX + 1;
	struct raw_claim c;

	if (!l->open)
		return;
	if (l->inside) {
		len = len < SHM_PACKET_MAX ? len : SHM_PACKET_MAX;
		if (!raw_ring_claim(&l->ring, l->sock, l->id, raw_ring_slots(&f, len), &c))
			return;
		raw_ring_fill(&l->ring, &c, &f, l->id, payload, len);
		raw_ring_publish(&l->ring, &c, 0);
		return;
	}
	memcpy(bytes, &f, sizeof(f));
	if (len)
		memcpy(bytes + sizeof(f), payload, len);
	raw_link_bytes(l, bytes, sizeof(f) + len);
}

/* ---- Connections ---- */

static inline void raw_link_close(struct raw_link *l, bool reset)
{
	if (l->sock < 0)
		return;
	if (reset && !l->inside)
		slam(l->sock);
	else
		close(l->sock);
	raw_ring_unmap(&l->ring);
	raw_ring_unmap(&l->own);
	l->sock = -1;
	l->open = false;
}

/* Connects to the endpoint's TCP listener from this address of the loopback network. */
static inline int raw_link_tcp(const struct name *to, uint32_t from)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(from)};
	int sock = tcp_socket();

	if (bind(sock, (const struct sockaddr *)(const void *)&in, sizeof(in)) ||
	    connect(sock, (const struct sockaddr *)(const void *)to->bytes, sizeof(in)))
		fail("cannot connect to the endpoint: %s", strerror(errno));
	return sock;
}

/* `from`: the client's address, if it uses TCP. */
static inline void raw_link_connect(struct raw_link *l, const struct name *to, bool inside,
				    uint32_t from)
{
	*l = (struct raw_link){.sock = inside ? raw_connect(to) : raw_link_tcp(to, from),
			       .inside = inside};
}

/* Sends a hello; `fd`: the ring's file, or -1. */
static inline void raw_link_hello(struct raw_link *l, const struct hello *h, int fd)
{
	say(l->sock, h, sizeof(*h), &fd, fd >= 0);
}

/* Receives a hello and, inside, the descriptors with it. False: none within `ms`. */
static inline bool raw_link_answer(struct raw_link *l, struct hello *h, int fds[4], unsigned int ms)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = {h, sizeof(*h)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf};
	struct pollfd p = {.fd = l->sock, .events = POLLIN};
	struct cmsghdr *c;
	ssize_t got;

	for (int i = 0; i < 4; i++)
		fds[i] = -1;
	msg.msg_controllen = sizeof(control.buf);
	if (poll(&p, 1, (int)ms) != 1)
		return false;
	got = recvmsg(l->sock, &msg, MSG_CMSG_CLOEXEC | (l->inside ? 0 : MSG_WAITALL));
	c = got > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return got == sizeof(*h);
}

/* The hello `h` of the endpoint says that packets may follow. Owns the descriptors. */
static inline void raw_link_opened(struct raw_link *l, const struct hello *h, const int fds[4])
{
	l->id = h->your_id;
	l->open = !l->inside || fds[0] >= 0;
	if (l->inside && l->open)
		raw_ring_map(&l->ring, fds[0]);
	for (int i = 0; i < 4; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Exchanges hellos on a connected socket. */
static inline void raw_link_join(struct raw_link *l, const struct hello *mine, unsigned int ms)
{
	int fds[4], fd = l->inside ? raw_ring_make(&l->own, mine->incarnation) : -1;
	struct hello h;

	raw_link_hello(l, mine, fd);
	if (fd >= 0)
		close(fd);
	if (raw_link_answer(l, &h, fds, ms) && h.kind == HELLO_ACCEPT)
		raw_link_opened(l, &h, fds);
}

/* Connects to the endpoint of this name by `h`, a good hello. */
static inline void raw_link_enter_by(struct raw_link *l, const struct name *to, bool inside,
				     struct hello h)
{
	h.cma_addr = (uintptr_t)&raw_probe;
	h.cma_value = raw_probe;
	raw_link_connect(l, to, inside, INADDR_LOOPBACK);
	raw_link_join(l, &h, 5000);
	if (!l->open)
		fail("a good hello is not accepted");
}

/* Enters shared memory with the endpoint of this name as the raw client number `n`. */
static inline void raw_link_enter(struct raw_link *l, const struct name *to, unsigned int n)
{
	raw_link_enter_by(l, to, true, good_hello(n));
}

#endif
