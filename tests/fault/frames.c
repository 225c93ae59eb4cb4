/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that bad packets over TCP do no harm: packets cut off at every place, too long, of unknown
 * kinds. A malformed packet ends the connection, and the log says why. A well-formed packet without
 * a meaning is dropped with a log line. The endpoint goes on.
 */
#include <poll.h>

#include "echo.h"
#include "hello.h"

#define ROUNDS  3
#define WAIT_MS 2000

#define HEAD(op, flags, rx, id)                                                                    \
	((uint64_t)(op) | (uint64_t)(flags) << 8 | (uint64_t)(rx) << 16 | (uint64_t)(id) << 32)
/* Kinds of packets that hello.h does not name. */
enum { FIN = 3, PULL = 4, PUT = 8, GET, AMO, REPORTED, DONE, RESULT, FAILED };
#define TAGGED 0x01u
#define DATA   0x02u
#define LONG   0x10u

/* A packet's head, its payload bytes, whether the connection ends, and a piece of the log line. */
static const struct bad {
	struct frame frame;
	size_t payload;
	bool ends;
	const char *log;
} bad[] = {
	{{.head = HEAD(WIRE_MSG, 0, 0, 0), .len = PACKET_MAX + 1},
	 0,
	 true,
	 "1052673 bytes (at most"},
	{{.head = HEAD(WIRE_MSG, DATA, 0, 0), .len = UINT32_MAX}, 64, true, "4294967295 bytes (at"},
	{{.head = HEAD(WIRE_MSG, 0, 0, 0), .len = 8, .zero = 7}, 8, true, "0x7 for zero"},
	{{.head = HEAD(0, 0, 0, 0)}, 0, true, "op 0, 0 bytes"},
	{{.head = HEAD(WIRE_INTRODUCE + 1, 0, 0, 0)}, 0, true, "op 20, 0 bytes"},
	{{.head = HEAD(255, 255, 0xffff, UINT32_MAX), .len = 5}, 5, true, "op 255, 5 bytes"},
	{{.head = HEAD(WIRE_MSG, 0, 63, 0), .len = 8}, 8, false, "message for receive context 63"},
	{{.head = HEAD(WIRE_MSG, 0, 0xffff, 0), .len = 8}, 8, false, "receive context 65535"},
	{{.head = HEAD(WIRE_RTS, 0, 0, 5), .len = 40}, 40, false, "contradicts itself"},
	{{.head = HEAD(WIRE_RTS, TAGGED, 0, 5), .len = 3}, 3, false, "contradicts itself"},
	{{.head = HEAD(WIRE_FRAG, 0, 0, 77), .len = 500},
	 500,
	 false,
	 "fragment of a message that is not"},
	{{.head = HEAD(FIN, 0, 0, 78)}, 0, false, "answer for request 0x4e, which is not"},
	{{.head = HEAD(PUT, 0, 0, 1), .len = 12}, 12, false, "a one-sided request of 12 bytes"},
	{{.head = HEAD(GET, LONG, 0, 1), .len = 100},
	 100,
	 false,
	 "a one-sided request of 100 bytes"},
	{{.head = HEAD(AMO, DATA, 0, 1), .len = 9}, 9, false, "a one-sided request of 9 bytes"},
	{{.head = HEAD(WIRE_INTRODUCE, 0, 0, 0), .tag = 1, .len = 19},
	 19,
	 false,
	 "introduction of kind 1 with 19 bytes"},
	{{.head = HEAD(DONE, 0, 0, 99)}, 0, false, "answer to operation 99"},
	{{.head = HEAD(RESULT, 0, 0, 98), .len = 8}, 8, false, "answer to operation 98"},
	{{.head = HEAD(FAILED, 0, 0, 97)}, 0, false, "answer to operation 97"},
};

static struct node n;
static fi_addr_t to;
static unsigned int number;

/* Connects and exchanges good hellos. Returns the socket. */
static int join(void)
{
	struct hello h = good_hello(++number);
	int sock = raw_connect_tcp(&server_name);

	if (send(sock, &h, sizeof(h), 0) != sizeof(h) ||
	    recv(sock, &h, sizeof(h), MSG_WAITALL) != sizeof(h) || h.kind != HELLO_ACCEPT)
		fail("a good hello is not accepted");
	return sock;
}

static void say(int sock, const void *what, size_t len)
{
	if (len && send(sock, what, len, MSG_NOSIGNAL) != (ssize_t)len)
		fail("send: %s", strerror(errno));
}

/* Waits up to `ms` for the end of the connection, discarding input. Returns whether it ended. */
static bool ended(int sock, int ms)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	char words[256];

	while (poll(&p, 1, ms) == 1)
		if (recv(sock, words, sizeof(words), 0) <= 0)
			return true;
	return false;
}

static void await_log(const char *text)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (!logged(text)) {
		if (now_ms() > end)
			fail("the log does not say \"%s\"", text);
		usleep(1000);
	}
}

static void one(const struct bad *b)
{
	static const char payload[1024];
	int sock = join();

	say(sock, &b->frame, sizeof(b->frame));
	say(sock, payload, b->payload);
	await_log(b->log);
	if (ended(sock, b->ends ? WAIT_MS : 20) != b->ends)
		fail("\"%s\": the connection %s", b->log, b->ends ? "stands" : "has ended");
	close(sock);
	ping(&n, to, number);
}

/*
 * Sends `sent` bytes of a message of `len` bytes, then closes the connection or (`hard`) resets it.
 */
static void cut(size_t len, size_t sent, bool hard)
{
	struct frame f = {
		.head = HEAD(WIRE_MSG, TAGGED, 0, 0), .tag = number, .len = (uint32_t)len};
	static char bytes[sizeof(f) + PACKET_MAX];
	int sock = join();

	memcpy(bytes, &f, sizeof(f));
	say(sock, bytes, sent);
	usleep(200);
	if (hard)
		slam(sock);
	else
		close(sock);
}

static void cut_everywhere(void)
{
	static const size_t places[] = {100, 4000, 32 + 5000, 65536, 32 + 131071};

	for (size_t at = 1; at < sizeof(struct frame) + 8; at++)
		cut(8, at, at % 2);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		for (int hard = 0; hard < 2; hard++)
			cut(PACKET_MAX, places[i], hard);
	await_log("ended within a packet");
	ping(&n, to, number);
}

int main(void)
{
	pid_t pid;
	int fds;

	alarm(LIMIT);
	need_network();
	pid = start_server(&n, &to);
	fds = count_fds(pid);
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			one(&bad[i]);
		cut_everywhere();
		same_fds(pid, fds, "after bad packets");
	}
	slay(pid);
	node_close(&n);
	return EXIT_SUCCESS;
}
