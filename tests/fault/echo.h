/* SPDX-License-Identifier: BSD-2-Clause */
/* An echo server in a process of its own, its log, and a client endpoint that pings the server. */
#ifndef FAULT_ECHO_H
#define FAULT_ECHO_H

#include <sys/mman.h>

#include "node.h"

#ifndef PING_MS
#define PING_MS 2000 /* the longest a ping may take */
#endif

static struct name server_name;
static int ends[2], log_fd;

/* ---- The server echoes; a real client pings it now and then. ---- */

static inline void server(void *arg)
{
	struct event e = {0};
	fi_addr_t client;
	struct name name;
	char buf[64];
	struct node n;

	(void)arg;
	setenv("FI_LOG_LEVEL", "info", 1);
	setenv("FI_LOG_INTERVAL", "0", 0); /* all lines */
	dup2(log_fd, STDERR_FILENO);
	node_open(&n, NULL);
	name = node_name(&n);
	tell(ends[1], &name, sizeof(name));
	hear(ends[1], &name, sizeof(name));
	client = node_insert(&n, &name);
	must(fi_recv(n.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	for (;;) {
		/* Naps between polls, as an idle program does. */
		while (!node_poll(&n, &e))
			usleep(100);
		if (e.err)
			fail("a %s ended with %s", e.flags & FI_RECV ? "receive" : "send",
			     fi_strerror(e.err));
		if (!(e.flags & FI_RECV))
			continue;
		while (e.len > 1 && fi_send(n.ep, buf, e.len, NULL, client, NULL) == -FI_EAGAIN)
			fi_cq_read(n.cq, NULL, 0);
		must(fi_recv(n.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	}
}

static inline void ping(struct node *n, fi_addr_t to, unsigned int number)
{
	uint64_t end = now_ms() + PING_MS;
	unsigned int answer = 0;
	int left = 2;
	ssize_t ret;

	must(fi_recv(n->ep, &answer, sizeof(answer), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	while ((ret = fi_send(n->ep, &number, sizeof(number), NULL, to, NULL)) == -FI_EAGAIN)
		if (now_ms() > end)
			fail("ping %u finds no room", number);
	must(ret, "a ping");
	while (left--) {
		struct event e = node_wait(n, PING_MS, "a ping among raw clients");

		if (e.err)
			fail("ping %u ended with %s", number, fi_strerror(e.err));
	}
	if (answer != number)
		fail("ping %u was answered with %u", number, answer);
}

/* Prints the end of the server's log if the test fails. */
static inline void show_log(int status, void *arg)
{
	char buf[4096];
	off_t end = lseek(log_fd, 0, SEEK_END);
	ssize_t len = pread(log_fd, buf, sizeof(buf), end > 4096 ? end - 4096 : 0);

	(void)arg;
	if (status && len > 0)
		fprintf(stderr, "the end of the server's log:\n%.*s\n", (int)len, buf);
}

/*
 * Waits until `pid` has `fds` open descriptors again: ended connections are closed within PING_MS.
 */
static inline void same_fds(pid_t pid, int fds, const char *when)
{
	uint64_t end = now_ms() + PING_MS;
	int has;

	while ((has = count_fds(pid)) != fds && now_ms() < end)
		usleep(10000);
	if (has != fds)
		fail("%s the server's %d descriptors have become %d", when, fds, has);
}

/* Returns whether the server's log contains `text`. */
static inline bool logged(const char *text)
{
	off_t len = lseek(log_fd, 0, SEEK_END);
	char *log =
		len > 0 ? mmap(NULL, (size_t)len, PROT_READ, MAP_SHARED, log_fd, 0) : MAP_FAILED;
	bool found;

	if (log == MAP_FAILED)
		return false;
	found = memmem(log, (size_t)len, text, strlen(text)) != NULL;
	munmap(log, (size_t)len);
	return found;
}

/* Starts the server, which has no connection to the client before it is pinged. Returns its pid. */
static inline pid_t prepare_server(struct node *client, fi_addr_t *to)
{
	struct name name;
	pid_t pid;

	log_fd = memfd_create("log", MFD_CLOEXEC);
	wire(ends);
	pid = start("server", server, NULL);
	on_exit(show_log, NULL);
	hear(ends[0], &server_name, sizeof(server_name));
	node_open(client, NULL);
	name = node_name(client);
	tell(ends[0], &name, sizeof(name));
	*to = node_insert(client, &server_name);
	return pid;
}

/* Starts the server and pings it once. Returns its pid. */
static inline pid_t start_server(struct node *client, fi_addr_t *to)
{
	pid_t pid = prepare_server(client, to);

	ping(client, *to, 1);
	return pid;
}

#endif
