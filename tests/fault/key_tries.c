/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys cannot be found by trying: after 64 wrong ones from one network address within a second the
 * connections that used some end, and new ones are refused, whatever name they give. A connection
 * from there that used none goes on until it does. Other addresses are served.
 */
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA)
#include <rdma/fi_rma.h>

#include "hello.h"

#define TRIES  64
#define END_MS 5000

enum { PUT = 8, FAILED = 14 };
#define DATA            0x02u
#define HEAD(op, flags) ((uint64_t)(op) | (uint64_t)(flags) << 8 | UINT64_C(1) << 32)

static int ends[2];
static struct name server_name;
static unsigned int number;

static void server(void *arg)
{
	struct event e;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	server_name = node_name(&n);
	tell(ends[1], &server_name, sizeof(server_name));
	for (;;)
		if (node_poll(&n, &e))
			fail("an operation ended");
}

/* Connects from 127.0.0.`last`; returns the socket, or -1: the hello is not accepted. */
static int enter(unsigned int last)
{
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + last)};
	struct timeval limit = {END_MS / 1000, 0};
	struct hello h = good_hello(++number);
	int sock = tcp_socket();

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (bind(sock, (struct sockaddr *)&from, sizeof(from)) ||
	    connect(sock, (const struct sockaddr *)(const void *)server_name.bytes,
		    sizeof(struct sockaddr_in)) ||
	    send(sock, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h))
		fail("cannot connect: %s", strerror(errno));
	if (recv(sock, &h, sizeof(h), MSG_WAITALL) == sizeof(h) && h.kind == HELLO_ACCEPT)
		return sock;
	if (errno == EAGAIN)
		fail("a hello is not answered");
	close(sock);
	return -1;
}

/* Writes nothing with a wrong key. False: the connection has ended. */
static bool try_key(int sock)
{
	struct frame frame = {.head = HEAD(PUT, DATA), .data = 12345 + number};

	if (send(sock, &frame, sizeof(frame), MSG_NOSIGNAL) != sizeof(frame) ||
	    recv(sock, &frame, sizeof(frame), MSG_WAITALL) != sizeof(frame))
		return false;
	if ((frame.head & 0xff) != FAILED)
		fail("a wrong key is answered by a packet of type %u",
		     (unsigned int)(frame.head & 0xff));
	return true;
}

int main(void)
{
	unsigned int tries = 0;
	char byte;
	int sock, other;
	pid_t pid;

	alarm(LIMIT);
	need_network();
	wire(ends);
	pid = start("server", server, NULL);
	hear(ends[0], &server_name, sizeof(server_name));
	other = enter(1);
	/* A connection for each try. */
	while (tries < 2 * TRIES && (sock = enter(1)) >= 0) {
		try_key(sock);
		close(sock);
		tries++;
	}
	if (tries != TRIES)
		fail("%u keys could be tried, not %u", tries, TRIES);
	if (recv(other, &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN)
		fail("a connection that tried no key has ended");
	try_key(other);
	if (try_key(other) && try_key(other))
		fail("a connection tries keys on while its address is refused");
	sock = enter(2);
	if (sock < 0 || !try_key(sock))
		fail("another address is refused, too");
	slay(pid);
	return EXIT_SUCCESS;
}
