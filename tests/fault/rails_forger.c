/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Somebody who does not know the key of two endpoints, but has read the token of their link, asks one of them for a rail of
 * it, to add one or to take one over. He is sent away each time, and the rails that there are go on. The endpoint has two keys;
 * who knows the one that is not the link's is no better.
 */
#define NODE_KEYS FI_AV_AUTH_KEY
#include "rails_keyed.h"

#define SECOND 's' /* the endpoint's other key */

/* ---- The endpoint, on the second host ---- */

static void add_key(struct node *n, char letter)
{
	char key[PROOF_LEN];
	fi_addr_t handle;

	memset(key, letter, sizeof(key));
	must(fi_av_insert_auth_key(n->av, key, sizeof(key), &handle, 0), "fi_av_insert_auth_key");
}

static void serve(void)
{
	char buf[64] = "";
	struct name name;
	struct node n;
	struct event e;

	with_rails();
	node_create(&n, NULL);
	add_key(&n, KEY);
	add_key(&n, SECOND);
	node_bind(&n);
	name = node_name(&n);
	tell(lab.end, &name, sizeof(name));
	must(fi_recv(n.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	await_word(&n);
	e = node_wait(&n, WAIT_MS, "the message");
	if (e.err || e.len != sizeof(TEXT) || strcmp(buf, TEXT) != 0)
		fail("another message, of %zu bytes: %s", e.len, fi_strerror(e.err));
	tell(lab.end, "", 1);
	await_word(&n);
	node_close(&n);
}

/* ---- The peer, on the first host, and the forger ---- */

static struct hello join_hello(const struct hello *accept)
{
	struct hello h = {.magic = MAGIC,
			  .version = VERSION,
			  .size = sizeof(h),
			  .kind = HELLO_JOIN,
			  .your_id = accept->your_id};

	add_rails(&h, &(struct rails){.number = 1});
	memcpy(h.nonce, accept->nonce, HALF);
	return h;
}

static struct hello old_greeting, old_join; /* of the rail that there is */

static int join(const struct hello *accept)
{
	struct proof p = proof_begin(KEY);
	int sock = reach_second(accept);
	struct hello h;

	old_greeting = sealed(&p, PROOF_INITIATOR, hello_of(HELLO_GREETING));
	if (!ask(sock, &old_greeting, &h) || !proof_good(&p, PROOF_TARGET, &h))
		fail("no challenge, but kind %u", h.kind);
	old_join = sealed(&p, PROOF_INITIATOR, join_hello(accept));
	if (!ask(sock, &old_join, &h) || h.kind != HELLO_JOINED ||
	    !proof_good(&p, PROOF_TARGET, &h) || memcmp(h.nonce, accept->nonce + HALF, HALF) != 0)
		fail("one who knows key and token gets kind %u", h.kind);
	return sock;
}

/* Ways to ask for the rail. */
enum way {
	NO_PROOF,
	GREETS_WITH_OTHER_KEY,
	/* After a challenge. */
	SECOND_KEY,
	NO_CODE,
	OTHER_KEY,
	OTHER_ROLE,
	ITS_OWN_CODE,
	OTHER_RAIL,  /* one who relays a good hello, changed */
	OTHER_TOKEN, /* one who knows the key, not the link */
	REPLAYED,
	WAYS
};

static struct hello false_join(enum way how, struct proof *p, const struct hello *accept,
			       const struct hello *challenge)
{
	struct hello h = join_hello(accept);

	if (how == OTHER_KEY)
		memset(p->key, OTHER, sizeof(p->key));
	if (how == OTHER_TOKEN)
		h.nonce[0] ^= 1;
	if (how != NO_CODE)
		proof_seal(p, how == OTHER_ROLE ? PROOF_TARGET : PROOF_INITIATOR, &h);
	if (how == ITS_OWN_CODE)
		memcpy(h.mac, challenge->mac, sizeof(h.mac));
	if (how == OTHER_RAIL)
		add_rails(&h, &(struct rails){.number = 0});
	return h;
}

static void join_falsely(enum way how, const struct hello *accept)
{
	struct proof p = proof_begin(how == GREETS_WITH_OTHER_KEY ? OTHER
				     : how == SECOND_KEY          ? SECOND
								  : KEY);
	int sock = reach_second(accept);
	struct hello h;

	if (how == NO_PROOF) {
		h = join_hello(accept);
	} else if (how == GREETS_WITH_OTHER_KEY) {
		h = sealed(&p, PROOF_INITIATOR, hello_of(HELLO_GREETING));
	} else if (how == REPLAYED) {
		if (!ask(sock, &old_greeting, &h))
			fail("no challenge");
		h = old_join;
	} else {
		greet(sock, &p, &h);
		h = false_join(how, &p, accept, &h);
	}
	if (ask(sock, &h, &h) && (h.kind != HELLO_REJECT || h.error != FI_EACCES))
		fail("way %u is answered with kind %u", how, h.kind);
	close(sock);
}

static void play(void)
{
	unsigned char stream[PACK];
	struct hello accept;
	struct name name;
	int first, second;
	char word = 0;

	hear(lab.end, &name, sizeof(name));
	first = link_of_rails(&name, 4711, &accept);
	for (enum way how = 0; how < REPLAYED; how++)
		join_falsely(how, &accept);
	second = join(&accept);
	for (enum way how = 0; how < WAYS; how++)
		join_falsely(how, &accept);
	pack(stream);
	send_part(second, stream, 20, sizeof(stream));
	tell(lab.end, &word, 1);
	send_part(first, stream, 0, 20);
	hear(lab.end, &word, 1);
	tell(lab.end, &word, 1);
}

int main(void)
{
	proof_need_library();
	rails_run(play, serve);
	return EXIT_SUCCESS;
}
