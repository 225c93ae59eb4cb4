/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What other processes pass on Unix sockets. Any process of the host can leave descriptors in messages on a socket that it has
 * connected to, whatever its user; who reads such a message without room for them, or closes the socket, closes them.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/closer.h"
#include "base/forked.h"
#include "conn/connect.h"

#define MESSAGES_MAX 1024 /* unread ones that are searched for descriptors */

size_t connect_passed(struct msghdr *msg, int fds[CONNECT_PASSED_MAX])
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	size_t len;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	len = c->cmsg_len - CMSG_LEN(0);
	memcpy(fds, CMSG_DATA(c), len);
	return len / sizeof(int);
}

ssize_t connect_hear(int sock, char *byte)
{
	union connect_passed passed;
	struct iovec iov = {byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = passed.buf,
			     .msg_controllen = sizeof(passed.buf)};
	ssize_t len = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fds[CONNECT_PASSED_MAX];

	for (size_t count = len < 0 ? 0 : connect_passed(&msg, fds); count > 0; count--)
		closer_close(fds[count - 1]);
	return len;
}

/*
 * Reads messages until one comes with descriptors. With credentials asked for, each message brings something: there is room
 * for that alone.
 */
static bool holds_descriptors(int sock)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(struct ucred))];
	} room;

	connect_set(sock, SOL_SOCKET, SO_PASSCRED, 1);
	for (int i = 0; i < MESSAGES_MAX; i++) {
		struct msghdr msg = {.msg_control = room.buf, .msg_controllen = sizeof(room.buf)};

		if (recvmsg(sock, &msg, MSG_PEEK | MSG_DONTWAIT) < 0) {
			if (errno == ECONNRESET) /* told once; the messages follow */
				continue;
			return errno != ENOTCONN; /* a listener */
		}
		if (!msg.msg_controllen || msg.msg_flags & MSG_CTRUNC)
			return msg.msg_controllen;
		recv(sock, NULL, 0, MSG_DONTWAIT);
	}
	return true;
}

/* Closes what a listener has not accepted yet; nobody can connect to it any more. True: all of that. */
static bool empty_backlog(int sock)
{
	int next;

	while ((next = accept4(sock, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		connect_close(next);
	return errno != EMFILE && errno != ENFILE;
}

void connect_close(int sock)
{
	int family = AF_UNIX;
	socklen_t len = sizeof(family);

	if (getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &family, &len) || family != AF_UNIX) {
		forked_close(sock);
		return;
	}
	shutdown(sock, SHUT_RDWR); /* nothing more comes */
	if (empty_backlog(sock) && !holds_descriptors(sock)) {
		forked_close(sock);
		return;
	}
	forked_release(sock);
	closer_close(sock);
}
