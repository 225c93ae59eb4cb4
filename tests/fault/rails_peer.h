/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of a link with two rails, between the two hosts of two_wires.h, as a test plays it itself. */
#ifndef FAULT_RAILS_PEER_H
#define FAULT_RAILS_PEER_H

#include "hello.h"
#include "two_wires.h"

#define WAIT_MS      3000
#define HELLO_JOIN   8u
#define HELLO_JOINED 9u
#define FLAG_RAILS   0x4u /* of `flags` */
#define HALF         16   /* bytes of each half of a token */

static struct lab lab;

/* An interface in a hello: link/wire.h. */
struct rail {
	uint8_t ip[16];
	uint16_t port;
	uint8_t in6, prefix;
	uint32_t mbps;
};

/* The data of a hello with FLAG_RAILS: link/wire.h. */
struct rails {
	uint32_t count, number;
	struct rail rail[4];
};

/* The head of a part of the stream: hw/tcp/rails/tcp_rails.h. */
struct chunk {
	uint64_t at, ack;
	uint32_t len, asks;
};

static inline void write_all(int sock, const void *bytes, size_t len)
{
	if (send(sock, bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
		fail("send: %s", strerror(errno));
}

/* Returns whether a whole hello comes; false: the socket ends. */
static inline bool answer(int sock, struct hello *h)
{
	struct timeval limit = {.tv_sec = WAIT_MS / 1000};
	ssize_t len;

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	len = recv(sock, h, sizeof(*h), MSG_WAITALL);
	if (len < 0 && errno != ECONNRESET)
		fail("no answer: %s", strerror(errno));
	return len == (ssize_t)sizeof(*h);
}

static inline struct rail rail_of(unsigned int wire)
{
	struct rail r = {.ip = {10, 99, (uint8_t)wire, 1}, .prefix = 24, .mbps = 10000};

	return r;
}

static inline void add_rails(struct hello *h, const struct rails *rails)
{
	h->flags |= FLAG_RAILS;
	h->data_len = sizeof(*rails);
	memcpy(h->data, rails, sizeof(*rails));
}

/* Those that a hello brings. */
static inline struct rails rails_in(const struct hello *h)
{
	struct rails rails = {0};

	if (h->flags & FLAG_RAILS && h->data_len == sizeof(rails))
		memcpy(&rails, h->data, sizeof(rails));
	return rails;
}

/* Connects to the listener of the second interface that `accept` names. */
static inline int reach_second(const struct hello *accept)
{
	struct rail second = rails_in(accept).rail[1];
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(second.port)};
	int sock = tcp_socket();

	memcpy(&in.sin_addr, second.ip, 4);
	if (connect(sock, (struct sockaddr *)&in, sizeof(in)))
		fail("the second interface has no listener: %s", strerror(errno));
	return sock;
}

static inline void send_part(int sock, const unsigned char *stream, uint64_t from, uint64_t to)
{
	struct chunk c = {.at = from, .len = (uint32_t)(to - from)};

	write_all(sock, &c, sizeof(c));
	write_all(sock, stream + from, to - from);
}

static void (*rails_first)(void), (*rails_second)(void);

static inline void rails_live(void *arg)
{
	lab = *(struct lab *)arg;
	lab_enter(&lab);
	second_wire(&lab);
	if (lab.which)
		rails_second();
	else
		rails_first();
}

/* Runs what each of two hosts with two wires does. */
static inline void rails_run(void (*first)(void), void (*second)(void))
{
	alarm(LIMIT);
	need_lab();
	need_network();
	rails_first = first;
	rails_second = second;
	two_hosts(rails_live);
}

#endif
