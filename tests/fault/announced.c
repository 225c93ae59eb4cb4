/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw clients that announce a message, or begin one, and send no more of it while their connection stands: the receive
 * that it matched ends with FI_ETIMEDOUT after FI_WEFT_PEER_TIMEOUT, or FI_WEFT_SENDER_TIMEOUT if that is set, and the
 * next one receives from others. One that is slow, but not so slow, is received from. A peer of the address vector
 * may take as long as it likes.
 */
#include "hello.h"

#define TIMEOUT_MS 800
#define WAIT_MS    (5 * TIMEOUT_MS)
#define BYTES      70000
#define PARTS      7

#define WIRE_CTS     4u
#define HEAD(op, id) ((uint64_t)(op) | (uint64_t)(id) << 32)

struct announcement {
	struct frame frame;
	uint64_t len, count, addr, segment_len, key;
};

enum manner { SILENT, HALF, SLOW, KNOWN, MANNERS };

static struct {
	struct name server;
	enum manner manner;
} order;
static char bytes[BYTES];

static void say(int sock, const void *words, size_t len)
{
	if (send(sock, words, len, MSG_NOSIGNAL) != (ssize_t)len)
		fail("send: %s", strerror(errno));
}

/* Waits for CTS; returns the receiver's number of the message. */
static uint32_t await_cts(int sock)
{
	struct frame f;

	do {
		if (recv(sock, &f, sizeof(f), MSG_WAITALL) != sizeof(f))
			fail("the connection has ended before CTS");
	} while ((f.head & 0xff) != WIRE_CTS);
	return (uint32_t)f.tag;
}

static void announce(int sock)
{
	struct announcement a = {
		.frame = {.head = HEAD(WIRE_RTS, 5), .len = sizeof(a) - sizeof(a.frame)},
		.len = BYTES,
		.count = 1,
		.addr = 4096,
		.segment_len = BYTES,
	};

	say(sock, &a, sizeof(a));
}

/* A part every now and then, each in time, all of them not. */
static void send_slowly(int sock)
{
	uint32_t id = await_cts(sock);

	for (unsigned int i = 0; i < PARTS; i++) {
		struct frame f = {.head = HEAD(WIRE_FRAG, id),
				  .tag = i * (BYTES / PARTS),
				  .len = BYTES / PARTS};

		usleep(TIMEOUT_MS / 4 * 1000);
		say(sock, &f, sizeof(f));
		say(sock, bytes, BYTES / PARTS);
	}
}

static void raw_client(void *arg)
{
	struct hello h = good_hello(1 + order.manner);
	struct frame f = {.head = HEAD(WIRE_MSG, 0), .len = BYTES};
	int sock;

	(void)arg;
	sock = raw_connect_tcp(&order.server);
	say(sock, &h, sizeof(h));
	if (recv(sock, &h, sizeof(h), MSG_WAITALL) != sizeof(h) || h.kind != HELLO_ACCEPT)
		fail("a good hello is not accepted");
	if (order.manner == HALF) {
		say(sock, &f, sizeof(f));
		say(sock, bytes, BYTES / 2);
	} else {
		announce(sock);
	}
	if (order.manner == SLOW)
		send_slowly(sock);
	for (;;)
		pause();
}

static void insert_client(struct node *n)
{
	struct hello h = good_hello(1 + KNOWN);
	struct name name = {.len = sizeof(struct sockaddr_in)};

	memcpy(name.bytes, h.name, name.len);
	node_insert(n, &name);
}

static void one(struct node *n, enum manner manner)
{
	static char in[BYTES];
	struct event e = {0};
	uint64_t begin, end;
	pid_t pid;

	order.manner = manner;
	if (manner == KNOWN)
		insert_client(n);
	must(fi_recv(n->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	pid = start("client", raw_client, NULL);
	begin = now_ms();
	if (manner == KNOWN) {
		for (end = begin + 3 * TIMEOUT_MS; now_ms() < end; sched_yield())
			if (node_poll(n, &e))
				fail("a receive from a peer that is known has ended with %s",
				     fi_strerror(e.err));
		slay(pid);
		e = node_wait(n, WAIT_MS, "the receive from a peer that is gone");
		if (e.err != FI_ECONNRESET)
			fail("a receive from a peer that is gone: %s", fi_strerror(e.err));
		return;
	}
	e = node_wait(n, manner == SLOW ? PARTS * TIMEOUT_MS + WAIT_MS : WAIT_MS,
		      "a receive whose message does not come");
	if (e.err != (manner == SLOW ? 0 : FI_ETIMEDOUT))
		fail("manner %d: the receive has ended with %s", manner, fi_strerror(e.err));
	if (manner != SLOW && now_ms() < begin + TIMEOUT_MS)
		fail("manner %d: after %llu ms", manner, (unsigned long long)(now_ms() - begin));
	slay(pid);
}

int main(void)
{
	struct node n;

	alarm(LIMIT);
	need_network();
	setenv("FI_WEFT_PEER_TIMEOUT", "800", 1);
	node_open(&n, NULL);
	order.server = node_name(&n);
	for (enum manner m = SILENT; m < MANNERS; m++)
		one(&n, m);
	node_close(&n);
	return EXIT_SUCCESS;
}
