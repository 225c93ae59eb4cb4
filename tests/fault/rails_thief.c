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
	struct hello challenge;

	greet(sock, &p, &challenge);
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
	uint16_t port = 5001; /* another name each time */
	struct hello accept;
	struct name name;
	uint64_t at = 0;
	int other;

	hear(lab.end, &name, sizeof(name));
	pack(stream);
	other = link_of_rails(&name, port++, &accept);
	for (unsigned int i = 0; i < DEEDS * ROUNDS; i++) {
		int first = link_of_rails(&name, port++, &accept), stolen = take_rail(&accept);
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
