/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thousand connections to an endpoint's socket that are no peers: silent, garbage, hellos with
 * something wrong. The endpoint goes on serving real peers, keeps no descriptor, and shows the silent
 * ones the door.
 */
#include <poll.h>

#include "stranger.h"

#define STRANGERS 1000
#define SILENT    200
#define PING_MS   2000  /* the longest a ping may take while strangers storm */
#define DOOR_MS   12000 /* the silent ones are gone by then */

static struct name server_name;
static int ends[2], log_fd;

/* ---- The server echoes; a real client asks it now and then. ---- */

static void server(void *arg)
{
	struct event e = {0};
	fi_addr_t client;
	struct name name;
	char buf[64];
	struct node n;

	(void)arg;
	setenv("FI_LOG_LEVEL", "warn", 1);
	dup2(log_fd, STDERR_FILENO);
	node_open(&n, NULL);
	name = node_name(&n);
	tell(ends[1], &name, sizeof(name));
	hear(ends[1], &name, sizeof(name));
	client = node_insert(&n, &name);
	must(fi_recv(n.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	for (;;) {
		/* As an idle program would wait: not by polling hard. */
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

static void ping(struct node *n, fi_addr_t to, unsigned int number)
{
	uint64_t end = now_ms() + PING_MS;
	unsigned int answer = 0;
	int left = 2;

	must(fi_recv(n->ep, &answer, sizeof(answer), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	while (fi_send(n->ep, &number, sizeof(number), NULL, to, NULL) == -FI_EAGAIN)
		if (now_ms() > end)
			fail("ping %u finds no room", number);
	while (left--) {
		struct event e = node_wait(n, PING_MS, "a ping among strangers");

		if (e.err)
			fail("ping %u ended with %s", number, fi_strerror(e.err));
	}
	if (answer != number)
		fail("ping %u was answered with %u", number, answer);
}

/* True when the socket was closed from the other side in time. */
static bool shown_the_door(int sock, uint64_t end)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	uint64_t now = now_ms();

	return poll(&p, 1, now < end ? (int)(end - now) : 0) == 1;
}

static void storm(struct node *n, fi_addr_t to)
{
	int silent[SILENT];
	unsigned int quiet = 0;
	uint64_t end;

	for (unsigned int i = 0; i < STRANGERS; i++) {
		int sock = knock(&server_name);

		if (i % (STRANGERS / SILENT) == 0) {
			silent[quiet++] = sock;
		} else {
			misbehave(sock, i % MANNERS, i);
			close(sock);
		}
		if (i % 50 == 0)
			ping(n, to, i);
	}
	end = now_ms() + DOOR_MS;
	for (unsigned int i = 0; i < SILENT; i++) {
		if (!shown_the_door(silent[i], end))
			fail("silent stranger %u of %d is still there", i, SILENT);
		close(silent[i]);
	}
}

/* A real peer that comes while SILENT others stand at the door. */
static void come_in_late(void)
{
	int silent[SILENT];
	struct node late;
	uint64_t end;
	ssize_t ret;

	for (unsigned int i = 0; i < SILENT; i++)
		silent[i] = knock(&server_name);
	node_open(&late, NULL);
	end = now_ms() + PING_MS;
	ret = fi_send(late.ep, "L", 1, NULL, node_insert(&late, &server_name), NULL);
	while (ret == -FI_EAGAIN && now_ms() < end)
		ret = fi_send(late.ep, "L", 1, NULL, 0, NULL);
	must(ret, "fi_send");
	if (node_wait(&late, PING_MS, "a real peer behind silent strangers").err)
		fail("a real peer behind silent strangers was refused");
	node_close(&late);
	for (unsigned int i = 0; i < SILENT; i++)
		close(silent[i]);
}

/* The server's log, when something is wrong. */
static void show_log(int status, void *arg)
{
	char buf[4096];
	off_t end = lseek(log_fd, 0, SEEK_END);
	ssize_t len = pread(log_fd, buf, sizeof(buf), end > 4096 ? end - 4096 : 0);

	(void)arg;
	if (status && len > 0)
		fprintf(stderr, "the end of the server's log:\n%.*s\n", (int)len, buf);
}

/* Connections that are over are noticed within a moment. */
static void same_fds(pid_t pid, int fds, const char *when)
{
	uint64_t end = now_ms() + PING_MS;

	while (count_fds(pid) != fds && now_ms() < end)
		usleep(10000);
	if (count_fds(pid) != fds)
		fail("%s the server's %d descriptors have become %d", when, fds, count_fds(pid));
}

int main(void)
{
	struct name name;
	fi_addr_t to;
	struct node n;
	pid_t pid;
	int fds;

	alarm(LIMIT);
	need_provider();
	if (!strcmp(provider(), "tcp")) {
		printf("endpoints of tcp have no socket inside the host\n");
		return 77;
	}
	log_fd = memfd_create("log", MFD_CLOEXEC);
	wire(ends);
	pid = start("server", server, NULL);
	on_exit(show_log, NULL);
	hear(ends[0], &server_name, sizeof(server_name));
	node_open(&n, NULL);
	name = node_name(&n);
	tell(ends[0], &name, sizeof(name));
	to = node_insert(&n, &server_name);
	ping(&n, to, 1);
	fds = count_fds(pid);
	storm(&n, to);
	ping(&n, to, 2);
	same_fds(pid, fds, "after the storm");
	come_in_late();
	ping(&n, to, 3);
	same_fds(pid, fds, "after the late one");
	if (lseek(log_fd, 0, SEEK_END) == 0)
		fail("the server logged nothing of all this");
	slay(pid);
	node_close(&n);
	return EXIT_SUCCESS;
}
