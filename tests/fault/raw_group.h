/* SPDX-License-Identifier: BSD-2-Clause */
/* Raw clients that speak about collective groups, as members and as others. */
#ifndef FAULT_RAW_GROUP_H
#define FAULT_RAW_GROUP_H

#include "raw_link.h"

#define WAIT_MS 5000 /* the longest wait for a packet */

/* Kinds of control messages, and their layout: struct wire_group of link/wire.h. */
enum { UP = 1, DOWN, FAILED, PROBE, ASK, ABORT, LEAVE, HERE };

struct control {
	uint32_t kind, error, rank, size, attempt;
	uint16_t cpus, shares;
	uint64_t key, id;
};

#define GROUP_HEAD  HEAD(WIRE_MSG, TAGGED | DATA, 0xffff, 0)
#define RANK_MASK   ((UINT64_C(1) << 24) - 1)
#define PAYLOAD_MAX 4096u

struct packet {
	struct frame frame;
	char payload[PAYLOAD_MAX];
};

/* Returns a hello with the name 127.0.0.1:PORT. */
static inline struct hello hello_of_port(unsigned int port)
{
	struct hello h = good_hello(port);
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memcpy(h.name, &in, sizeof(in));
	return h;
}

/* Connects to the endpoint `to` with this hello. Returns the socket. */
static inline int raw_enter(const struct name *to, struct hello h)
{
	int sock = raw_connect_tcp(to);

	if (send(sock, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h) ||
	    recv(sock, &h, sizeof(h), MSG_WAITALL) != sizeof(h) || h.kind != HELLO_ACCEPT)
		fail("a good hello is not accepted");
	return sock;
}

static inline void raw_send(int sock, struct frame frame, const void *payload, size_t len)
{
	frame.len = (uint32_t)len;
	if (send(sock, &frame, sizeof(frame), MSG_NOSIGNAL) != sizeof(frame) ||
	    (len && send(sock, payload, len, MSG_NOSIGNAL) != (ssize_t)len))
		fail("send: %s", strerror(errno));
}

static inline void raw_control(int sock, struct control c)
{
	raw_send(sock, (struct frame){.head = WIRE_GROUP}, &c, sizeof(c));
}

/* Reads the next packet within `ms`. Returns false if none comes, or the connection ended. */
static inline bool raw_read(int sock, struct packet *p, int ms)
{
	struct pollfd in = {.fd = sock, .events = POLLIN};

	if (poll(&in, 1, ms) != 1 ||
	    recv(sock, &p->frame, sizeof(p->frame), MSG_WAITALL) != sizeof(p->frame))
		return false;
	if (p->frame.len > sizeof(p->payload))
		fail("a packet of %u bytes", p->frame.len);
	return !p->frame.len ||
	       recv(sock, p->payload, p->frame.len, MSG_WAITALL) == (ssize_t)p->frame.len;
}

/* Reads up to the next control message. Returns false if none comes. */
static inline bool raw_read_control(int sock, struct control *c)
{
	struct packet p;

	while (raw_read(sock, &p, WAIT_MS)) {
		if ((p.frame.head & 0xff) != WIRE_GROUP)
			continue;
		memcpy(c, p.payload, sizeof(*c));
		return true;
	}
	return false;
}

/* Reads up to the next message of a group. Returns false if none comes. */
static inline bool raw_read_message(int sock, struct packet *p)
{
	while (raw_read(sock, p, WAIT_MS))
		if ((p->frame.head & 0xffff00ff) == (GROUP_HEAD & 0xffff00ff))
			return true;
	return false;
}

#endif
