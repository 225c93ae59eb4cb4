/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that are held open and say nothing, or the begin of a hello and no more, 2,000 at a
 * time; each that the endpoint closes is opened again. Real peers are served at once all the same,
 * and the endpoint keeps no more of the connections than FI_WEFT_PENDING_MAX says.
 */
#include <poll.h>
#include <sys/resource.h>

#include "echo.h"
#include "raw_client.h"

#define ATTACKERS   2
#define EACH        1000 /* connections of an attacker */
#define NEWCOMERS   12   /* real peers, one after the other */
#define SERVE_MS    1000
#define PENDING_MAX 32
#define SPARE_FDS   16 /* of the endpoint, beyond the pending connections: links of newcomers */
#define REOPENS     50 /* connections that an attacker opens again at a time */
#define NAP_US      20000

struct attacker {
	unsigned int number;
	int end; /* a word is said here when all connections are open */
};

static bool network;

static void more_fds(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		fail("getrlimit: %s", strerror(errno));
	if (limit.rlim_cur >= EACH + 100)
		return;
	limit.rlim_cur = EACH + 100;
	if (limit.rlim_max < limit.rlim_cur)
		limit.rlim_max = limit.rlim_cur;
	if (setrlimit(RLIMIT_NOFILE, &limit)) {
		printf("no %d descriptors for a process here\n", EACH + 100);
		exit(77);
	}
}

/* Silent, or after some bytes of a hello, which keeps the kernel from holding it back. */
static int be_silent(unsigned int number)
{
	struct hello h = good_hello(number);
	int sock;

	if (!network)
		return raw_connect(&server_name);
	sock = raw_connect_tcp(&server_name);
	if (send(sock, &h, 1 + number % (sizeof(h) - 1), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
	    errno != ECONNRESET)
		fail("send: %s", strerror(errno));
	return sock;
}

static void attacker(void *arg)
{
	const struct attacker *a = arg;
	struct pollfd socks[EACH];

	for (unsigned int i = 0; i < EACH; i++)
		socks[i] = (struct pollfd){.fd = be_silent(i), .events = POLLIN};
	tell(a->end, "", 1);
	for (;;) {
		poll(socks, EACH, 0);
		for (unsigned int i = 0, count = 0; i < EACH && count < REOPENS; i++) {
			if (!socks[i].revents)
				continue;
			close(socks[i].fd);
			socks[i].fd = be_silent(i);
			count++;
		}
		usleep(NAP_US);
	}
}

/* A process that is new sends a message, which is received. */
static void newcomer(void *arg)
{
	uint64_t begin = now_ms(), end = begin + SERVE_MS;
	struct node n;
	fi_addr_t to;
	ssize_t ret;

	(void)arg;
	node_open(&n, NULL);
	to = node_insert(&n, &server_name);
	while ((ret = fi_send(n.ep, "N", 1, NULL, to, NULL)) == -FI_EAGAIN && now_ms() < end)
		fi_cq_read(n.cq, NULL, 0);
	must(ret, "fi_send");
	if (node_wait(&n, SERVE_MS, "a real peer among silent ones").err)
		fail("a real peer among silent ones was refused");
	node_close(&n);
	if (now_ms() > end)
		fail("a real peer was served after %llu ms",
		     (unsigned long long)(now_ms() - begin));
}

int main(void)
{
	struct attacker a[ATTACKERS];
	pid_t server_pid, pids[ATTACKERS];
	int fds, to_main[2];
	struct node n;
	fi_addr_t to;

	alarm(LIMIT);
	need_provider();
	more_fds();
	setenv("FI_WEFT_PENDING_MAX", "32", 1);
	network = strcmp(provider(), "shm");
	server_pid = start_server(&n, &to);
	fds = count_fds(server_pid);
	wire(to_main);
	for (unsigned int i = 0; i < ATTACKERS; i++) {
		a[i] = (struct attacker){.number = i, .end = to_main[1]};
		pids[i] = start("attacker", attacker, &a[i]);
	}
	for (unsigned int i = 0; i < ATTACKERS; i++)
		hear(to_main[0], &(char){0}, 1);
	for (unsigned int i = 0; i < NEWCOMERS; i++) {
		finish(start("newcomer", newcomer, NULL), "a newcomer");
		ping(&n, to, 100 + i);
		if (count_fds(server_pid) > fds + PENDING_MAX + SPARE_FDS)
			fail("the endpoint's %d descriptors have become %d", fds,
			     count_fds(server_pid));
	}
	for (unsigned int i = 0; i < ATTACKERS; i++)
		slay(pids[i]);
	same_fds(server_pid, fds, "after the silent ones");
	if (!logged("said nothing for"))
		fail("the server does not say what they did");
	slay(server_pid);
	node_close(&n);
	return EXIT_SUCCESS;
}
