/* SPDX-License-Identifier: BSD-2-Clause */
/* Raw clients of a passive endpoint's listener: sockets without an endpoint. */
#ifndef UNIT_CM_RAW_H
#define UNIT_CM_RAW_H

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "link/wire.h"
#include "conn/connect.h"

/*
 * Connects to the listener `name`: `inside` by its Unix socket, else by TCP. Returns the socket, or
 * an error.
 */
static inline int raw_connect(const struct addr *name, bool inside)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
				  .sin_port = htons(name->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int sock = inside ? connect_inside(name) : socket(AF_INET, SOCK_STREAM, 0);

	if (inside || !connect(sock, (struct sockaddr *)&sin, sizeof(sin)))
		return sock;
	close(sock);
	return -FI_ECONNREFUSED;
}

static inline struct wire_hello raw_hello(enum hello_kind kind, size_t data_len)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
				  .sin_port = htons(4711),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct wire_hello hello = {.magic = WIRE_MAGIC,
				   .version = WIRE_VERSION,
				   .size = sizeof(hello),
				   .kind = kind,
				   .name_format = FI_SOCKADDR_IN,
				   .name_len = sizeof(sin),
				   .data_len = (uint32_t)data_len};

	memcpy(hello.name, &sin, sizeof(sin));
	memset(hello.data, 'd', sizeof(hello.data));
	return hello;
}

/* Sends a hello. On a Unix socket (`inside`) a hello of this library brings a descriptor. */
static inline void raw_send(int sock, const struct wire_hello *hello, bool inside)
{
	struct iovec iov = {(void *)(uintptr_t)hello, sizeof(*hello)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct cmsghdr *c;
	int ring = memfd_create("raw", MFD_CLOEXEC);

	if (inside) {
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &ring, sizeof(int));
	}
	ck_assert_int_eq(sendmsg(sock, &msg, 0), sizeof(*hello));
	close(ring);
}

#endif
