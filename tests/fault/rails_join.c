/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that the test plays itself makes a link of two rails with an endpoint. A socket becomes a rail only if it shows the
 * link's token; a message of which each rail brings a part, the second part first, arrives once.
 */
#include "hello.h"
#include "two_wires.h"

#define WAIT_MS      3000
#define HELLO_JOIN   8u
#define HELLO_JOINED 9u
#define FLAG_RAILS   0x40000u /* in the upper half of `kind` */
#define HALF         16       /* bytes of each half of a token */
#define TEXT         "in two parts"

static struct lab lab;

/* An interface in a hello: link/wire.h. */
struct rail {
	uint8_t ip[16];
	uint16_t port;
	uint8_t in6, prefix;
	uint32_t mbps;
};

/* The data of a hello with FLAG_RAILS: link/wire.h. */
struct rails {
	uint32_t count, number;
	struct rail rail[4];
};

/* The head of a part of the stream: hw/tcp/tcp_rails.h. */
struct chunk {
	uint64_t at, ack;
	uint32_t len, asks;
};

/* ---- The endpoint, on the second host ---- */

static void serve(void *arg)
{
	char buf[64] = "", word = 0;
	struct name name;
	struct node n;
	struct event e;

	lab = *(struct lab *)arg;
	lab_enter(&lab);
	second_wire(&lab);
	setenv("FI_WEFT_RAILS", "auto", 1);
	node_open(&n, NULL);
	name = node_name(&n);
	tell(lab.end, &name, sizeof(name));
	must(fi_recv(n.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	e = node_wait(&n, 4 * WAIT_MS, "the message");
	if (e.err || e.len != sizeof(TEXT) || strcmp(buf, TEXT) != 0)
		fail("another message, of %zu bytes: %s", e.len, fi_strerror(e.err));
	must(fi_recv(n.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	for (uint64_t end = now_ms() + 300; now_ms() < end;)
		if (node_poll(&n, &e))
			fail("a message comes twice, or the link ends");
	tell(lab.end, &word, 1);
	hear(lab.end, &word, 1);
	node_close(&n);
}

/* ---- The peer, on the first host ---- */

static void write_all(int sock, const void *bytes, size_t len)
{
	if (send(sock, bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
		fail("send: %s", strerror(errno));
}

/* Returns whether a whole hello comes; false: the socket ends. */
static bool answer(int sock, struct hello *h)
{
	struct timeval limit = {.tv_sec = WAIT_MS / 1000};
	ssize_t len;

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	len = recv(sock, h, sizeof(*h), MSG_WAITALL);
	if (len < 0 && errno != ECONNRESET)
		fail("no answer: %s", strerror(errno));
	return len == (ssize_t)sizeof(*h);
}

static struct rail rail_of(unsigned int wire)
{
	struct rail r = {.ip = {10, 99, (uint8_t)wire, 1}, .prefix = 24, .mbps = 10000};

	return r;
}

static void add_rails(struct hello *h, const struct rails *rails)
{
	h->kind |= FLAG_RAILS;
	h->data_len = sizeof(*rails);
	memcpy(h->data, rails, sizeof(*rails));
}

/* Those that a hello brings. */
static struct rails rails_in(const struct hello *h)
{
	struct rails rails = {0};

	if (h->kind & FLAG_RAILS && h->data_len == sizeof(rails))
		memcpy(&rails, h->data, sizeof(rails));
	return rails;
}

/* Connects as an endpoint with two interfaces. Returns the socket, and the answer. */
static int make_link(const struct name *name, struct hello *h)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(4711)};
	const struct rails rails = {.count = 2, .rail = {rail_of(0), rail_of(1)}};
	int sock = raw_connect_tcp(name);

	*h = good_hello(1);
	inet_pton(AF_INET, "10.99.0.1", &in.sin_addr);
	memcpy(h->name, &in, sizeof(in));
	add_rails(h, &rails);
	write_all(sock, h, sizeof(*h));
	if (!answer(sock, h) || h->kind != (HELLO_ACCEPT | FLAG_RAILS) || rails_in(h).count != 2)
		fail("no link of two rails, but kind %u with %u", h->kind, rails_in(h).count);
	return sock;
}

/* Connects to the listener of the second interface that `accept` names. */
static int reach_second(const struct hello *accept)
{
	struct rail second = rails_in(accept).rail[1];
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(second.port)};
	int sock = tcp_socket();

	memcpy(&in.sin_addr, second.ip, 4);
	if (connect(sock, (struct sockaddr *)&in, sizeof(in)))
		fail("the second interface has no listener: %s", strerror(errno));
	return sock;
}

/* Asks there that a socket becomes rail `number`. Returns it; -1: it is refused. */
static int join(const struct hello *accept, uint32_t number, uint32_t id, const uint8_t *half)
{
	struct hello h = {.magic = MAGIC,
			  .version = VERSION,
			  .size = sizeof(h),
			  .kind = HELLO_JOIN,
			  .your_id = id};
	int sock = reach_second(accept);

	add_rails(&h, &(struct rails){.number = number});
	memcpy(h.nonce, half, HALF);
	write_all(sock, &h, sizeof(h));
	if (answer(sock, &h)) {
		if (h.kind != HELLO_JOINED || memcmp(h.nonce, accept->nonce + HALF, HALF) != 0)
			fail("an answer of kind %u without the token", h.kind);
		return sock;
	}
	close(sock);
	return -1;
}

/* The listener of the second interface is for rails alone. */
static void try_connection(const struct hello *accept)
{
	struct hello h = good_hello(2);
	int sock = reach_second(accept);

	write_all(sock, &h, sizeof(h));
	if (answer(sock, &h))
		fail("the second interface answers a hello by kind %u", h.kind);
	close(sock);
}

static void send_part(int sock, const unsigned char *stream, uint64_t from, uint64_t to)
{
	struct chunk c = {.at = from, .len = (uint32_t)(to - from)};

	write_all(sock, &c, sizeof(c));
	write_all(sock, stream + from, to - from);
}

static void play(void *arg)
{
	struct frame f = {.head = WIRE_MSG, .len = sizeof(TEXT)};
	unsigned char stream[sizeof(f) + sizeof(TEXT)], wrong[HALF];
	struct hello accept;
	struct name name;
	int first, second;
	char word = 0;

	lab = *(struct lab *)arg;
	lab_enter(&lab);
	second_wire(&lab);
	hear(lab.end, &name, sizeof(name));
	first = make_link(&name, &accept);
	try_connection(&accept);
	memcpy(wrong, accept.nonce, HALF);
	wrong[HALF - 1] ^= 1;
	if (join(&accept, 1, accept.your_id, wrong) >= 0)
		fail("a wrong token is taken");
	if (join(&accept, 1, accept.your_id + 1, accept.nonce) >= 0)
		fail("a rail of no link is taken");
	if (join(&accept, 4, accept.your_id, accept.nonce) >= 0)
		fail("a fifth rail is taken");
	second = join(&accept, 1, accept.your_id, accept.nonce);
	if (second < 0)
		fail("the second rail is refused");
	memcpy(stream, &f, sizeof(f));
	memcpy(stream + sizeof(f), TEXT, sizeof(TEXT));
	send_part(second, stream, 20, sizeof(stream));
	send_part(first, stream, 0, 25);
	send_part(second, stream, 0, 25);
	hear(lab.end, &word, 1);
	tell(lab.end, &word, 1);
}

static void live(void *arg)
{
	const struct lab *host = arg;

	if (host->which)
		serve(arg);
	else
		play(arg);
}

int main(void)
{
	alarm(LIMIT);
	need_lab();
	need_network();
	two_hosts(live);
	return EXIT_SUCCESS;
}
