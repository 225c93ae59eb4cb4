/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that it does not know make an endpoint keep what is under way and never ends: packets without their last byte, and streams over
 * rails without their first one. All of it counts against FI_WEFT_UNEXPECTED_LIMIT, and who holds most, or longest, is
 * disconnected.
 */
#include "rails_peer.h"

#define LIMIT_TEXT "50331648" /* FI_WEFT_UNEXPECTED_LIMIT: half of it is for such peers */
#define GROWTH_KB  (48 << 10) /* without a limit it is twice that with either way, and more */
#define UNKNOWN    100
#define WINDOW     (8u << 20)
#define CHUNK      65536u
#define PACKET     (1u << 20)

/* ---- The endpoint, on the second host ---- */

static void serve(void)
{
	struct name name;
	struct node n;
	struct event e;
	char word;

	setenv("FI_WEFT_RAILS", "auto", 1);
	setenv("FI_WEFT_UNEXPECTED_LIMIT", LIMIT_TEXT, 1);
	node_open(&n, NULL);
	name = node_name(&n);
	tell(lab.end, &name, sizeof(name));
	while (recv(lab.end, &word, 1, MSG_DONTWAIT) != 1)
		node_poll(&n, &e);
	node_close(&n);
}

/* ---- The unknown peers, on the first host ---- */

static unsigned int number;

/* Connects by a new name, with two interfaces or as one who has one. */
static int join(const struct name *name, bool rails)
{
	const struct rails both = {.count = 2, .rail = {rail_of(0), rail_of(1)}};
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct hello h = good_hello(++number);
	int sock = raw_connect_tcp(name);

	in.sin_port = htons((uint16_t)(1000 + number));
	inet_pton(AF_INET, "10.99.0.1", &in.sin_addr);
	memcpy(h.name, &in, sizeof(in));
	if (rails)
		add_rails(&h, &both);
	write_all(sock, &h, sizeof(h));
	if (!answer(sock, &h) || h.kind != HELLO_ACCEPT || rails_in(&h).count != (rails ? 2 : 0))
		fail("no link, but kind %u with %u interfaces", h.kind, rails_in(&h).count);
	return sock;
}

/* Sends it all, unless the endpoint ends the connection. */
static bool pushed(int sock, const void *bytes, size_t len)
{
	for (const char *at = bytes; len;) {
		ssize_t sent = send(sock, at, len, MSG_NOSIGNAL);

		if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
			return false;
		if (sent < 0)
			fail("send: %s", strerror(errno));
		at += sent;
		len -= (size_t)sent;
	}
	return true;
}

static const char zeros[PACKET];

/* A packet but for its last byte. */
static void hold_packet(int sock)
{
	struct frame f = {.head = WIRE_MSG, .len = PACKET};

	if (pushed(sock, &f, sizeof(f)))
		pushed(sock, zeros, PACKET - 1);
}

/* All that may be under way over rails, but for its first byte. */
static void hold_window(int sock)
{
	struct chunk c = {.at = 1, .len = CHUNK - 1};

	for (; c.at < WINDOW; c.at += c.len, c.len = CHUNK)
		if (!pushed(sock, &c, sizeof(c)) || !pushed(sock, zeros, c.len))
			return;
}

/* Waits until the endpoint has read what was sent, or ended the connection. */
static void await_read(int sock)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	do
		usleep(1000);
	while (!getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &len) && info.tcpi_unacked &&
	       info.tcpi_state == TCP_ESTABLISHED);
}

static void hoard(const struct name *name, bool rails)
{
	long kb = memory_of(lab.peer), now;
	int socks[UNKNOWN];

	for (unsigned int i = 0; i < UNKNOWN; i++) {
		socks[i] = join(name, rails);
		(rails ? hold_window : hold_packet)(socks[i]);
		await_read(socks[i]);
		now = memory_of(lab.peer);
		if (now > kb + GROWTH_KB)
			fail("%u unknown peers with %s: the endpoint has grown from %ld to %ld kB",
			     i + 1, rails ? "rails" : "a packet each", kb, now);
	}
	for (unsigned int i = 0; i < UNKNOWN; i++)
		close(socks[i]);
}

static void attack(void)
{
	struct name name;

	hear(lab.end, &name, sizeof(name));
	hoard(&name, false);
	hoard(&name, true);
	tell(lab.end, "", 1);
}

int main(void)
{
	rails_run(attack, serve);
	return EXIT_SUCCESS;
}
