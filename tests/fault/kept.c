/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw clients send messages that nobody receives, take no notice of WIRE_XOFF, go, and connect again, each time by
 * another name. What the endpoint keeps of them stays within FI_WEFT_UNEXPECTED_LIMIT, by bytes and by number. Its
 * other peers are served meanwhile, and a message that one of them sent before all that is received after it.
 */
#include "echo.h"
#include "hello.h"

#define MARK    "1000000" /* bytes: FI_WEFT_UNEXPECTED_MAX */
#define LIMIT_B "8000000" /* FI_WEFT_UNEXPECTED_LIMIT */
#define LIMIT_C "40000"   /* FI_WEFT_UNEXPECTED_COUNT */
#define VISITS  60
#define EACH    2000000 /* bytes of messages in a visit */
/* What the server may grow, in kB: without a limit it is more than 100000. */
#ifndef __SANITIZE_ADDRESS__
#define GROWTH_KB 24000
#else
#define GROWTH_KB 90000
#endif
#define TAGGED  0x100u /* in a head */
#define WAIT_MS 5000

static unsigned int number;

/* Returns a socket behind a good hello. */
static int join(void)
{
	struct hello h = good_hello(++number);
	int sock = raw_connect_tcp(&server_name);

	if (send(sock, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h) ||
	    recv(sock, &h, sizeof(h), MSG_WAITALL) != sizeof(h) || h.kind != HELLO_ACCEPT)
		fail("a good hello is not accepted");
	return sock;
}

/* Sends it all unless the endpoint ends the connection; does not read. */
static void say(int sock, const char *what, size_t len)
{
	while (len) {
		ssize_t sent = send(sock, what, len, MSG_NOSIGNAL);

		if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
			return;
		if (sent < 0)
			fail("send: %s", strerror(errno));
		what += sent;
		len -= (size_t)sent;
	}
}

/* Waits until the endpoint has read all that was sent, or has ended the connection. */
static void await_read(int sock)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct tcp_info info;
	socklen_t len = sizeof(info);

	shutdown(sock, SHUT_WR);
	do {
		usleep(1000);
		if (getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &len))
			return;
	} while (info.tcpi_state != TCP_CLOSE && info.tcpi_state != TCP_TIME_WAIT &&
		 info.tcpi_state != TCP_FIN_WAIT2 && now_ms() < end);
}

/* Messages of `len` bytes with tags nobody asks for, EACH bytes in all, or as many as `count`. */
static void visit(size_t len, size_t count)
{
	static char bytes[EACH + PACKET_MAX];
	struct frame f = {.head = WIRE_MSG | TAGGED, .tag = 7, .len = (uint32_t)len};
	size_t at = 0;
	int sock = join();

	while (count-- && at < EACH) {
		memcpy(bytes + at, &f, sizeof(f));
		at += sizeof(f) + len;
	}
	say(sock, bytes, at);
	await_read(sock);
	close(sock);
}

/* The same message again and again, until `pid` holds to its limit or has grown too much. */
static void visit_often(struct node *n, fi_addr_t to, pid_t pid, size_t len)
{
	long kb = memory_of(pid);
	int fds = count_fds(pid);

	for (unsigned int i = 0; i < VISITS; i++) {
		visit(len, len ? SIZE_MAX : EACH / sizeof(struct frame));
		ping(n, to, i + 2);
		if (memory_of(pid) > kb + GROWTH_KB)
			fail("messages of %zu bytes: the server has grown from %ld to %ld kB", len,
			     kb, memory_of(pid));
	}
	same_fds(pid, fds, "after all have gone");
}

int main(void)
{
	struct node n;
	fi_addr_t to;
	pid_t pid;

	alarm(LIMIT);
	need_network();
	setenv("FI_WEFT_UNEXPECTED_MAX", MARK, 1);
	setenv("FI_WEFT_UNEXPECTED_LIMIT", LIMIT_B, 1);
	setenv("FI_WEFT_UNEXPECTED_COUNT", LIMIT_C, 1);
	pid = start_server(&n, &to);
	visit_often(&n, to, pid, 50000);
	visit_often(&n, to, pid, 0);
	if (!logged("FI_WEFT_UNEXPECTED_LIMIT=" LIMIT_B))
		fail("the log does not name the limit");
	slay(pid);
	node_close(&n);
	return EXIT_SUCCESS;
}
