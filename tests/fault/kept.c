/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw clients send messages that nobody receives, over TCP or in shared memory, take no notice of WIRE_XOFF, go,
 * and connect again, each time by another name. What the endpoint keeps of them stays within FI_WEFT_UNEXPECTED_LIMIT, also of messages without bytes. Its
 * other peers are served meanwhile, and a message that one of them sent before all that is received after it.
 */
#include "echo.h"
#include "raw_link.h"

#define MARK    "1000000" /* bytes: FI_WEFT_UNEXPECTED_MAX */
#define LIMIT_B "8000000" /* FI_WEFT_UNEXPECTED_LIMIT */
#define VISITS  60
#define EACH    2000000 /* bytes of messages in a visit */
/* What the server may grow, in kB: without a limit it is more than 100000. */
#ifndef __SANITIZE_ADDRESS__
#define GROWTH_KB 24000
#else
#define GROWTH_KB 90000
#endif
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
static void send_all(int sock, const char *what, size_t len)
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
	struct frame f = {.head = HEAD(WIRE_MSG, TAGGED, 0, 0), .tag = 7, .len = (uint32_t)len};
	size_t at = 0;
	int sock = join();

	while (count-- && at < EACH) {
		memcpy(bytes + at, &f, sizeof(f));
		at += sizeof(f) + len;
	}
	send_all(sock, bytes, at);
	await_read(sock);
	close(sock);
}

/* Has the endpoint ended the connection? */
static bool expelled(int sock)
{
	char byte;

	return recv(sock, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

/* The same in shared memory. */
static void visit_inside(size_t len, size_t count)
{
	static const char bytes[SHM_PACKET_MAX];
	struct frame f = {.head = HEAD(WIRE_MSG, TAGGED, 0, 0), .tag = 7, .len = (uint32_t)len};
	struct raw_claim c = {0};
	struct raw_link l;

	raw_link_enter(&l, &server_name, ++number);
	for (size_t at = 0; count-- && at < EACH && !expelled(l.sock); at += sizeof(f) + len) {
		while (!raw_ring_claim(&l.ring, l.sock, l.id, raw_ring_slots(&f, len), &c))
			;
		raw_ring_fill(&l.ring, &c, &f, l.id, bytes, len);
		raw_ring_publish(&l.ring, &c, 0);
	}
	for (uint64_t end = now_ms() + WAIT_MS;
	     __atomic_load_n(&l.ring.page->head, __ATOMIC_ACQUIRE) <= c.pos && now_ms() < end;)
		usleep(1000);
	raw_link_close(&l, false);
}

/* The same message again and again, until `pid` holds to its limit or has grown too much. */
static void visit_often(struct node *n, fi_addr_t to, pid_t pid, size_t len, bool inside)
{
	long kb = memory_of(pid);
	int fds = count_fds(pid);

	for (unsigned int i = 0; i < VISITS; i++) {
		(inside ? visit_inside : visit)(len, len ? SIZE_MAX : EACH / sizeof(struct frame));
		ping(n, to, i + 2);
		if (memory_of(pid) > kb + GROWTH_KB)
			fail("messages of %zu bytes: the server has grown from %ld to %ld kB", len,
			     kb, memory_of(pid));
	}
	same_fds(pid, fds, "after all have gone");
}

/* In a process of its own: the library reads its settings once. */
static void one(void *arg)
{
	bool inside = *(bool *)arg;
	struct node n;
	fi_addr_t to;
	pid_t pid;

	setenv("FI_WEFT_UNEXPECTED_MAX", MARK, 1);
	setenv("FI_WEFT_UNEXPECTED_LIMIT", LIMIT_B, 1);
	pid = start_server(&n, &to);
	visit_often(&n, to, pid, inside ? SHM_PACKET_MAX : 50000, inside);
	visit_often(&n, to, pid, 0, inside);
	if (!logged("FI_WEFT_UNEXPECTED_LIMIT=" LIMIT_B))
		fail("the log does not name the limit");
	slay(pid);
	node_close(&n);
}

int main(void)
{
	alarm(LIMIT);
	need_provider();
	if (strcmp(provider(), "tcp"))
		finish(start("in shared memory", one, &(bool){true}), "the test in shared memory");
	if (strcmp(provider(), "shm"))
		finish(start("over TCP", one, &(bool){false}), "the test over TCP");
	return EXIT_SUCCESS;
}
