/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Good hellos under many names: an endpoint accepts FI_WEFT_UNKNOWN_MAX peers that its address
 * vector does not hold, and refuses further ones until some have gone. A peer of the vector is
 * served all the same. Nothing stays of those that came and went.
 */
#include "echo.h"
#include "hello.h"

#define MOST      20
#define CLIENTS   60 /* within FI_WEFT_PENDING_MAX */
#define VISITS    50 /* of all of them, by other names */
#define GROWTH_KB 1024
#define WAIT_MS   5000

static int socks[CLIENTS];
static unsigned int number;

/* Connects and says hello by another name. */
static int say_hello(void)
{
	struct hello h = good_hello(++number);
	int sock = raw_connect_tcp(&server_name);

	if (send(sock, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h))
		fail("a hello cannot be sent");
	return sock;
}

/* Takes the answer. Returns the socket, or -1: refused. */
static int answered(int sock)
{
	struct hello h;

	if (recv(sock, &h, sizeof(h), MSG_WAITALL) != sizeof(h))
		fail("a good hello is not answered");
	if (h.kind == HELLO_ACCEPT)
		return sock;
	if (h.kind != HELLO_REJECT || h.error != FI_EBUSY)
		fail("a good hello is answered by kind %u, error %u", h.kind, h.error);
	close(sock);
	return -1;
}

static unsigned int join_all(void)
{
	unsigned int accepted = 0;

	for (unsigned int i = 0; i < CLIENTS; i++)
		socks[i] = say_hello();
	for (unsigned int i = 0; i < CLIENTS; i++) {
		socks[i] = answered(socks[i]);
		accepted += socks[i] >= 0;
	}
	return accepted;
}

static void leave_all(void)
{
	for (unsigned int i = 0; i < CLIENTS; i++)
		if (socks[i] >= 0)
			close(socks[i]);
}

/* A real peer that the vector does not hold is told why. */
static void be_refused(void)
{
	struct node late;
	fi_addr_t to;
	ssize_t ret;

	node_open(&late, NULL);
	to = node_insert(&late, &server_name);
	while ((ret = fi_send(late.ep, "L", 1, NULL, to, NULL)) == -FI_EAGAIN)
		fi_cq_read(late.cq, NULL, 0);
	if (ret != -FI_EBUSY)
		fail("a peer too many is not refused");
	node_close(&late);
}

/* The first that has gone makes room for one. */
static void replace_one(void)
{
	uint64_t end = now_ms() + WAIT_MS;
	unsigned int gone = 0;

	while (socks[gone] < 0)
		gone++;
	close(socks[gone]);
	while ((socks[gone] = answered(say_hello())) < 0)
		if (now_ms() > end)
			fail("a peer that has gone makes no room");
	if (answered(say_hello()) >= 0)
		fail("a peer that has gone makes room for two");
}

int main(void)
{
	struct node n;
	fi_addr_t to;
	pid_t pid;
	long kb = 0;
	int fds;

	alarm(LIMIT);
	need_network();
	setenv("FI_WEFT_UNKNOWN_MAX", "20", 1);
	pid = prepare_server(&n, &to);
	fds = count_fds(pid);
	if (join_all() != MOST)
		fail("of %u unknown peers not %u are accepted", CLIENTS, MOST);
	ping(&n, to, 2);
	be_refused();
	replace_one();
	leave_all();
	if (!logged("FI_WEFT_UNKNOWN_MAX=20"))
		fail("the log does not name the limit");
	for (unsigned int i = 0; i < VISITS; i++) {
		join_all();
		leave_all();
		if (i == VISITS / 10)
			kb = memory_of(pid);
	}
	ping(&n, to, 3);
	node_close(&n);
	same_fds(pid, fds, "after all have gone");
	if (memory_of(pid) > kb + GROWTH_KB)
		fail("the server has grown from %ld to %ld kB", kb, memory_of(pid));
	slay(pid);
	return EXIT_SUCCESS;
}
