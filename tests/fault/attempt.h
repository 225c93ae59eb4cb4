/* SPDX-License-Identifier: BSD-2-Clause */
/* An endpoint's attempt to connect to this test, which answers as it likes, and connects to the endpoint itself. */
#ifndef FAULT_ATTEMPT_H
#define FAULT_ATTEMPT_H

#include <poll.h>

#include "hello.h"

#define REACH_MS 5000
#define LEN      100

static struct node n;
static unsigned int sent, posted;
static fi_addr_t waiting = FI_ADDR_NOTAVAIL; /* a message waits for a connection with it */
static int refused_with; /* error of the last call to send: the attempt has failed */

/* Counts sends that have ended well; nothing else ends. */
static inline void progress(void)
{
	static char bytes[LEN];
	struct event e;
	ssize_t ret = waiting == FI_ADDR_NOTAVAIL ? -FI_EAGAIN
						  : fi_send(n.ep, bytes, LEN, NULL, waiting, NULL);

	if (ret != -FI_EAGAIN) {
		waiting = FI_ADDR_NOTAVAIL;
		refused_with = (int)-ret;
	}
	if (!node_poll(&n, &e))
		return;
	if (e.err || !(e.flags & FI_SEND))
		fail("an operation ended that was not waited for: %s", fi_strerror(e.err));
	sent++;
}

/* Waits for a hello while the endpoint of this process makes progress. */
static inline struct hello answer_to(int sock, unsigned int ms, const char *what)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	uint64_t end = now_ms() + ms;
	struct hello h = {0};

	while (poll(&p, 1, 0) != 1) {
		progress();
		if (now_ms() > end)
			fail("%s has no answer", what);
		usleep(100);
	}
	if (recv(sock, &h, sizeof(h), MSG_WAITALL) != sizeof(h))
		fail("%s: no hello in answer", what);
	return h;
}

static inline struct hello hello_named(const struct name *name, uint64_t incarnation,
				       uint64_t serial)
{
	struct hello h = good_hello(1);

	memcpy(h.name, name->bytes, name->len);
	h.name_len = (uint32_t)name->len;
	h.incarnation = incarnation;
	h.serial = serial;
	return h;
}

/* `from`: address of the loopback's network, in host byte order; 0: the kernel's choice. */
static inline int connect_from(const struct name *name, uint32_t from)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	int sock = tcp_socket();

	in.sin_addr.s_addr = htonl(from);
	if ((from && bind(sock, (const struct sockaddr *)&in, sizeof(in))) ||
	    connect(sock, (const struct sockaddr *)(const void *)name->bytes, sizeof(in)))
		fail("cannot connect: %s", strerror(errno));
	return sock;
}

static inline void say_tcp(int sock, const struct hello *h)
{
	if (send(sock, h, sizeof(*h), MSG_NOSIGNAL) != sizeof(*h))
		fail("send: %s", strerror(errno));
}

static inline int listen_here(struct name *name)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	socklen_t len = sizeof(in);
	int listener = tcp_socket();

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&in, len) || listen(listener, 4) ||
	    getsockname(listener, (struct sockaddr *)&in, &len))
		fail("no listener: %s", strerror(errno));
	name->len = len;
	memcpy(name->bytes, &in, len);
	return listener;
}

static inline int take_call(int listener, struct hello *h)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};
	uint64_t end = now_ms() + REACH_MS;
	int sock;

	while (poll(&p, 1, 0) != 1) {
		progress();
		if (now_ms() > end)
			fail("the endpoint does not connect");
	}
	sock = accept(listener, NULL, NULL);
	*h = answer_to(sock, REACH_MS, "a connection of the endpoint");
	return sock;
}

/* The message arrives on the socket. */
static inline void hear_message(int sock, const char *where)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	uint64_t end = now_ms() + REACH_MS;
	char bytes[sizeof(struct frame) + LEN];

	while (sent < posted || poll(&p, 1, 0) != 1) {
		progress();
		if (now_ms() > end)
			fail("%s: the message does not come", where);
	}
	if (recv(sock, bytes, sizeof(bytes), MSG_WAITALL) != sizeof(bytes) || bytes[0] != WIRE_MSG)
		fail("%s: no message", where);
}

/* From now on progress tries to send. */
static inline void send_to(const struct name *name)
{
	waiting = node_insert(&n, name);
	posted++;
	progress();
}

static inline void idle(unsigned int ms)
{
	for (uint64_t end = now_ms() + ms; now_ms() < end;)
		progress();
}

#endif
