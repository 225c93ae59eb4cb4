/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket of fi_pingpong: a TCP connection outside the measurement. */
#ifndef PINGPONG_CONTROL_H
#define PINGPONG_CONTROL_H

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdint.h>
#include <time.h>
#include "pingpong_options.h"

#define PATIENCE 10.0 /* seconds to wait for the other side */

static int control = -1;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct addrinfo *resolve(const char *node, const char *port)
{
	struct addrinfo hints = {.ai_family = want.family, .ai_socktype = SOCK_STREAM}, *list;
	int ret;

	hints.ai_flags = node ? 0 : AI_PASSIVE;
	ret = getaddrinfo(node, port, &hints, &list);
	if (ret)
		die("%s port %s: %s", node ? node : "any address", port, gai_strerror(ret));
	return list;
}

static int control_bind(const char *port)
{
	struct addrinfo *local = resolve(NULL, port);
	int on = 1, fd = socket(local->ai_family, SOCK_STREAM, 0);

	if (fd < 0)
		die("socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, local->ai_addr, local->ai_addrlen))
		die("bind to port %s: %s", port, strerror(errno));
	freeaddrinfo(local);
	return fd;
}

static void control_accept(void)
{
	int listener = control_bind(want.src_port ? want.src_port : CONTROL_PORT);

	if (listen(listener, 1))
		die("listen: %s", strerror(errno));
	control = accept(listener, NULL, NULL);
	if (control < 0)
		die("accept: %s", strerror(errno));
	close(listener);
}

/* Connects to the server; retries a refusal for a while, as the server may still be starting. */
static void control_connect(void)
{
	struct addrinfo *remote = resolve(want.server, want.dst_port);
	double deadline = seconds() + PATIENCE;

	for (;;) {
		control = want.src_port ? control_bind(want.src_port)
					: socket(remote->ai_family, SOCK_STREAM, 0);
		if (!connect(control, remote->ai_addr, remote->ai_addrlen))
			break;
		if (errno != ECONNREFUSED || seconds() > deadline)
			die("connect to %s port %s: %s", want.server, want.dst_port,
			    strerror(errno));
		close(control);
		usleep(50000);
	}
	freeaddrinfo(remote);
}

/* Sends a message: a length of 32 bits in network order, then that many bytes. */
static void control_put(const void *data, size_t len)
{
	uint32_t head = htonl((uint32_t)len);

	if (send(control, &head, sizeof head, MSG_NOSIGNAL | MSG_MORE) != sizeof head ||
	    send(control, data, len, MSG_NOSIGNAL) != (ssize_t)len)
		die("the other side is gone");
}

static size_t control_get(void *data, size_t room)
{
	uint32_t len;

	if (recv(control, &len, sizeof len, MSG_WAITALL) != sizeof len)
		die("the other side is gone");
	len = ntohl(len);
	if (len > room)
		die("the other side is no fi_pingpong of this kind");
	if (recv(control, data, len, MSG_WAITALL) != (ssize_t)len)
		die("the other side is gone");
	return len;
}

static void control_sync(void)
{
	char word = 0;

	control_put(&word, sizeof word);
	control_get(&word, sizeof word);
}

#endif /* PINGPONG_CONTROL_H */
