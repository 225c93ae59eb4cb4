/* SPDX-License-Identifier: BSD-2-Clause */

#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn/connect.h"

/* Of <linux/unix_diag.h>, Linux 5.3: newer than our headers may be. */
#define SHOW_UID 0x40
#define DIAG_UID 7

#define ANSWER_BYTES 8192 /* the kernel tells no more at a time */

/* One socket that the kernel tells of. */
struct diag {
	struct nlmsghdr head;
	struct unix_diag_msg msg;
};

/* The process that listens by the name; false: none does. */
static bool ask_listener(const struct sockaddr_un *un, socklen_t len, struct ucred *cred)
{
	int sock = connect_socket(AF_UNIX);
	socklen_t size = sizeof(*cred);
	bool known;

	if (sock < 0)
		return false;
	known = !connect(sock, (const struct sockaddr *)un, len) &&
		!getsockopt(sock, SOL_SOCKET, SO_PEERCRED, cred, &size) && cred->pid > 0;
	connect_close(sock);
	return known;
}

/* Asks the kernel for all Unix sockets, with names and users. A socket for the answer; -1: it does not tell. */
static int ask_kernel(void)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req req;
	} ask = {.head = {.nlmsg_len = sizeof(ask),
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		 .req = {.sdiag_family = AF_UNIX,
			 .udiag_states = ~0u,
			 .udiag_show = UDIAG_SHOW_NAME | SHOW_UID}};
	int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (sock < 0 || send(sock, &ask, sizeof(ask), 0) == (ssize_t)sizeof(ask))
		return sock;
	close(sock);
	return -1;
}

/* Has the socket the name? Then *uid is its user, if that is told. Names are for one type of sockets. */
static bool is_it(const struct diag *d, const struct sockaddr_un *un, socklen_t len, int64_t *uid)
{
	size_t name_len = len - offsetof(struct sockaddr_un, sun_path);
	const struct nlattr *a = (const struct nlattr *)(d + 1);
	const char *end = (const char *)d + d->head.nlmsg_len;
	bool named = false;
	uint32_t value;

	*uid = -1;
	while ((const char *)(a + 1) <= end && a->nla_len >= NLA_HDRLEN) {
		size_t bytes = a->nla_len - (size_t)NLA_HDRLEN;

		if (a->nla_type == UNIX_DIAG_NAME)
			named = bytes == name_len && !memcmp(a + 1, un->sun_path, name_len);
		if (a->nla_type == DIAG_UID && bytes == sizeof(value)) {
			memcpy(&value, a + 1, sizeof(value));
			*uid = value;
		}
		a = (const struct nlattr *)((const char *)a + NLA_ALIGN(a->nla_len));
	}
	return named && d->msg.udiag_type == SOCK_SEQPACKET;
}

/* Looks for the name in one part of the kernel's answer. 1: it is there; 0: not in this part; -1: that was all. */
static int listen_holder_search(int sock, const struct sockaddr_un *un, socklen_t len, int64_t *uid)
{
	struct nlmsghdr part[ANSWER_BYTES / sizeof(struct nlmsghdr)];
	ssize_t got = recv(sock, part, sizeof(part), 0);

	if (got <= 0)
		return -1;
	for (const struct nlmsghdr *h = part; NLMSG_OK(h, (size_t)got); h = NLMSG_NEXT(h, got)) {
		if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY)
			return -1;
		if (is_it((const struct diag *)h, un, len, uid))
			return 1;
	}
	return 0;
}

/* Is there a socket of this name, whatever it does? *uid is its user; -1: that is not known. */
static bool listen_holder_find(const struct sockaddr_un *un, socklen_t len, int64_t *uid)
{
	int sock = ask_kernel(), found = 0;

	while (sock >= 0 && !found)
		found = listen_holder_search(sock, un, len, uid);
	if (sock >= 0)
		close(sock);
	return found > 0;
}

void listen_holder(const struct sockaddr_un *un, socklen_t len, char *text, size_t room)
{
	struct ucred cred;
	int64_t uid;

	*text = '\0';
	if (ask_listener(un, len, &cred))
		snprintf(text, room, "process %d of user %u", (int)cred.pid,
			 (unsigned int)cred.uid);
	else if (listen_holder_find(un, len, &uid) && uid >= 0)
		snprintf(text, room, "a process of user %u", (unsigned int)uid);
}
