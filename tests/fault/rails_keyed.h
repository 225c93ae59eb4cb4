/* SPDX-License-Identifier: BSD-2-Clause */
/* An endpoint with a key on one of the hosts of two_wires.h, and the hellos of one who may know it on the other. */
#ifndef FAULT_RAILS_KEYED_H
#define FAULT_RAILS_KEYED_H

#include "proof.h"
#include "rails_peer.h"

#define KEY   'k'
#define OTHER 'o'
#define TEXT  "in two parts"
#define PACK  (sizeof(struct frame) + sizeof(TEXT))

static inline void with_rails(void)
{
	setenv("FI_WEFT_RAILS", "auto", 1);
	setenv("FI_WEFT_RAIL_TIMEOUT", "500", 1);
}

/* Makes progress until the other host says that it is done. */
static inline void await_word(struct node *n)
{
	struct event e;
	char word;

	while (recv(lab.end, &word, 1, MSG_DONTWAIT) != 1)
		if (node_poll(n, &e))
			fail("an operation too many ended, or one with %d", e.err);
}

static inline void pack(unsigned char stream[PACK])
{
	struct frame f = {.head = WIRE_MSG, .len = sizeof(TEXT)};

	memcpy(stream, &f, sizeof(f));
	memcpy(stream + sizeof(f), TEXT, sizeof(TEXT));
}

static inline struct hello hello_of(uint16_t kind)
{
	static unsigned int number;
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(4711)};
	struct hello h = good_hello(++number);

	h.kind = kind;
	inet_pton(AF_INET, "10.99.0.1", &in.sin_addr);
	memcpy(h.name, &in, sizeof(in));
	if (kind == HELLO_GREETING || kind == HELLO_CHALLENGE)
		memset(h.nonce, (int)number, sizeof(h.nonce));
	return h;
}

static inline struct hello sealed(struct proof *p, enum proof_role role, struct hello h)
{
	proof_seal(p, role, &h);
	return h;
}

/* Says a hello; *heard is the answer. False: the connection has ended. */
static inline bool ask(int sock, const struct hello *h, struct hello *heard)
{
	write_all(sock, h, sizeof(*h));
	return answer(sock, heard);
}

static inline void greet(int sock, struct proof *p, struct hello *challenge)
{
	struct hello h = sealed(p, PROOF_INITIATOR, hello_of(HELLO_GREETING));

	if (!ask(sock, &h, challenge) || challenge->kind != HELLO_CHALLENGE ||
	    !proof_good(p, PROOF_TARGET, challenge))
		fail("a greeting is answered with %u", challenge->kind);
}

/* Connects as an endpoint with the key and two interfaces, by a name of this port. Returns the socket, and the answer. */
static inline int link_of_rails(const struct name *name, uint16_t port, struct hello *accept)
{
	const struct rails rails = {.count = 2, .rail = {rail_of(0), rail_of(1)}};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct proof p = proof_begin(KEY);
	int sock = raw_connect_tcp(name);
	struct hello h;

	greet(sock, &p, &h);
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

#endif
