/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that the test plays itself makes a link of two rails with an endpoint. A socket becomes a rail only if it shows the
 * link's token; a message of which each rail brings a part, the second part first, arrives once.
 */
#include "rails_peer.h"

#define TEXT "in two parts"

/* ---- The endpoint, on the second host ---- */

static void serve(void)
{
	char buf[64] = "", word = 0;
	struct name name;
	struct node n;
	struct event e;

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
	if (!answer(sock, h) || h->kind != HELLO_ACCEPT || rails_in(h).count != 2)
		fail("no link of two rails, but kind %u with %u", h->kind, rails_in(h).count);
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

static void play(void)
{
	struct frame f = {.head = WIRE_MSG, .len = sizeof(TEXT)};
	unsigned char stream[sizeof(f) + sizeof(TEXT)], wrong[HALF];
	struct hello accept;
	struct name name;
	int first, second;
	char word = 0;

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

int main(void)
{
	rails_run(play, serve);
	return EXIT_SUCCESS;
}
