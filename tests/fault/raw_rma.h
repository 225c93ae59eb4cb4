/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw clients that send one-sided requests over TCP to an endpoint, which runs in a process of its
 * own. A test defines NODE_CAPS before it includes this.
 */
#ifndef FAULT_RAW_RMA_H
#define FAULT_RAW_RMA_H

#include <rdma/fi_rma.h>

#include "hello.h"

enum { PUT = 8, GET = 9, NOTIFY = 11, FAILED = 14 };
#define DATA 0x02u
#define LONG 0x10u
#define CQ   0x20u
#define HEAD(op, flags, seq)                                                                       \
	((uint64_t)(op) | (uint64_t)(flags) << 8 | (uint64_t)(uint32_t)(seq) << 32)

#define HELLO_MS 5000 /* the longest an answer to a hello may take */

static struct name server_name;
static int ends[2]; /* [0]: the test's, [1]: the server's */

/* The server has opened its endpoint. */
static inline void raw_rma_ready(struct node *n)
{
	server_name = node_name(n);
	tell(ends[1], &server_name, sizeof(server_name));
}

/* Begins the test: starts the server, and waits until it is ready. */
static inline pid_t raw_rma_begin(void (*server)(void *arg))
{
	pid_t pid;

	alarm(LIMIT);
	need_network();
	wire(ends);
	pid = start("server", server, NULL);
	hear(ends[0], &server_name, sizeof(server_name));
	return pid;
}

/*
 * Connects from 127.0.0.`last` by a name of this number. Returns the socket, for which the kernel
 * keeps little that arrives; -1: the hello is not accepted.
 */
static inline int raw_rma_join(unsigned int last, unsigned int number)
{
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + last)};
	struct timeval limit = {HELLO_MS / 1000, 0};
	struct hello h = good_hello(number);
	int sock = tcp_socket(), small = 4096;

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	if (bind(sock, (struct sockaddr *)&from, sizeof(from)) ||
	    connect(sock, (const struct sockaddr *)(const void *)server_name.bytes,
		    sizeof(struct sockaddr_in)) ||
	    send(sock, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h))
		fail("cannot connect: %s", strerror(errno));
	errno = 0;
	if (recv(sock, &h, sizeof(h), MSG_WAITALL) == sizeof(h) && h.kind == HELLO_ACCEPT)
		return sock;
	if (errno == EAGAIN)
		fail("a hello is not answered");
	close(sock);
	return -1;
}

#endif
