/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member of the job, who knows the key and has read the token of the link between two others, takes a rail of it, as nothing
 * keeps him from doing, and sends there what he likes: wrong places, lengths and acknowledgements, bytes instead of those that
 * are missing, junk, nothing. He harms no more than that link: the endpoint lives, and the messages that come by another
 * link meanwhile are whole and in order.
 */
#include "rails_keyed.h"
#include "key_file.h"
#include "rng.h"

#define ROUNDS 8 /* of each deed */

enum deed { PLACE, LENGTH, ACKNOWLEDGES, REPLACES, JUNK, SILENT, LEAVES, DEEDS };

/* ---- The endpoint, on the second host ---- */

static void serve(void)
{
	char buf[64] = "", key[PROOF_LEN];
	unsigned int left = DEEDS * ROUNDS;
	struct name name;
	struct event e;
	struct node n;

	with_rails();
	memset(key, KEY, sizeof(key));
	use_key("prove", key, sizeof(key));
	node_open(&n, NULL);
	name = node_name(&n);
	tell(lab.end, &name, sizeof(name));
	while (left) {
		must(fi_recv(n.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
		e = node_wait(&n, WAIT_MS, "a message of the other link");
		if (e.err || e.len != sizeof(TEXT) || strcmp(buf, TEXT) != 0)
			continue; /* a forged one */
		left--;
		tell(lab.end, "", 1);
	}
	await_word(&n);
	node_close(&n);
}

/* ---- The others, on the first host ---- */

static void greet(int sock, struct proof *p)
{
	struct hello h = sealed(p, PROOF_INITIATOR, hello_of(HELLO_GREETING));

	if (!ask(sock, &h, &h) || h.kind != HELLO_CHALLENGE || !proof_good(p, PROOF_TARGET, &h))
		fail("a greeting is answered with %u", h.kind);
}

/* Connects as an endpoint with the key and two interfaces, by another name each time. */
static int make_link(const struct name *name, struct hello *accept)
{
	static uint16_t port = 5000;
	const struct rails rails = {.count = 2, .rail = {rail_of(0), rail_of(1)}};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(++port)};
	struct proof p = proof_begin(KEY);
	int sock = raw_connect_tcp(name);
	struct hello h;

	greet(sock, &p);
	h = hello_of(HELLO_CONNECT);
	inet_pton(AF_INET, "10.99.0.1", &in.sin_addr);
	memcpy(h.name, &in, sizeof(in));
	add_rails(&h, &rails);
	h = sealed(&p, PROOF_INITIATOR, h);
	if (!ask(sock, &h, accept) || accept->kind != HELLO_ACCEPT ||
	    !proof_good(&p, PROOF_TARGET, accept) || rails_in(accept).count != 2)
		fail("no link of two rails, but kind %#x", accept->kind);
	return sock;
}

/* Takes the second rail of the link that `accept` is about. */
static int take_rail(const struct hello *accept)
{
	struct hello h = {.magic = MAGIC,
			  .version = VERSION,
			  .size = sizeof(h),
			  .kind = HELLO_JOIN,
			  .your_id = accept->your_id};
	struct proof p = proof_begin(KEY);
	int sock = reach_second(accept);

	greet(sock, &p);
	add_rails(&h, &(struct rails){.number = 1});
	memcpy(h.nonce, accept->nonce, HALF);
	h = sealed(&p, PROOF_INITIATOR, h);
	if (!ask(sock, &h, &h) || h.kind != HELLO_JOINED)
		fail("one who knows key and token gets kind %u", h.kind);
	return sock;
}

/* The endpoint may hang up on him at any time. */
static void send_chunk(int sock, struct chunk c, const void *bytes, size_t len)
{
	send(sock, &c, sizeof(c), MSG_NOSIGNAL);
	send(sock, bytes, len, MSG_NOSIGNAL);
}

static void act(enum deed deed, int sock, struct rng *rng)
{
	unsigned char junk[512];

	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (unsigned char)rng_next(rng);
	switch (deed) {
	case PLACE:
		send_chunk(sock, (struct chunk){.at = rng_bits(rng, 64), .len = 100}, junk, 100);
		break;
	case LENGTH:
		send_chunk(sock, (struct chunk){.len = (uint32_t)rng_bits(rng, 32) | 1 << 24}, junk,
			   sizeof(junk));
		break;
	case ACKNOWLEDGES:
		send_chunk(sock, (struct chunk){.ack = rng_bits(rng, 64) + 1}, junk, 0);
		break;
	case REPLACES:
		send_chunk(sock, (struct chunk){.len = sizeof(junk)}, junk, sizeof(junk));
		break;
	case JUNK:
		send(sock, junk, sizeof(junk), MSG_NOSIGNAL);
		break;
	case LEAVES:
		slam(sock);
		break;
	default:
		break;
	}
}

static void play(void)
{
	unsigned char stream[PACK];
	struct rng rng = {17};
	struct hello accept;
	struct name name;
	uint64_t at = 0;
	int other;

	hear(lab.end, &name, sizeof(name));
	pack(stream);
	other = make_link(&name, &accept);
	for (unsigned int i = 0; i < DEEDS * ROUNDS; i++) {
		int first = make_link(&name, &accept), stolen = take_rail(&accept);
		struct chunk c = {.at = at, .len = sizeof(stream)};

		act(i % DEEDS, stolen, &rng);
		write_all(other, &c, sizeof(c));
		write_all(other, stream, sizeof(stream));
		at += sizeof(stream);
		hear(lab.end, &(char){0}, 1);
		close(first);
		if (i % DEEDS != LEAVES)
			close(stolen);
	}
	tell(lab.end, "", 1);
}

int main(void)
{
	proof_need_library();
	rails_run(play, serve);
	return EXIT_SUCCESS;
}
