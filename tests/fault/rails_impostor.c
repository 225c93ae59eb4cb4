/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint with a key makes the second rail of a link, and somebody without the key answers there instead of its peer. He is
 * hung up on each time, the first rail goes on, and so does the second one, alone, as soon as the peer answers.
 */
#include "key_file.h"
#include "rails_keyed.h"

/* ---- The endpoint, on the second host ---- */

static void call(void)
{
	char key[PROOF_LEN];
	struct name name;
	fi_addr_t peer;
	struct event e;
	struct node n;
	ssize_t ret;

	hear(lab.end, &name, sizeof(name));
	with_rails();
	memset(key, KEY, sizeof(key));
	use_key("prove", key, sizeof(key));
	node_open(&n, NULL);
	peer = node_insert(&n, &name);
	for (int i = 0; i < 2; i++) {
		while ((ret = fi_send(n.ep, TEXT, sizeof(TEXT), NULL, peer, NULL)) == -FI_EAGAIN)
			if (node_poll(&n, &e))
				fail("an operation too many ended, or one with %d", e.err);
		must(ret, "fi_send");
		e = node_wait(&n, WAIT_MS, "a message");
		if (e.err)
			fail("message %d ended with %s", i, fi_strerror(e.err));
		await_word(&n);
	}
	node_close(&n);
}

/* ---- The peer, on the first host, and the impostor ---- */

static int listen_at(unsigned int wire, uint16_t *port)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct timeval limit = {.tv_sec = WAIT_MS / 1000};
	socklen_t len = sizeof(in);
	int sock = tcp_socket();

	in.sin_addr.s_addr = htonl(0x0a630001u + (wire << 8));
	if (bind(sock, (struct sockaddr *)&in, len) || listen(sock, 8) ||
	    getsockname(sock, (struct sockaddr *)&in, &len))
		fail("a listener: %s", strerror(errno));
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	*port = ntohs(in.sin_port);
	return sock;
}

/* The next connection of the endpoint, and its greeting. */
static int take_call(int listener, struct hello *greeting)
{
	int sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (sock < 0 || !answer(sock, greeting) || greeting->kind != HELLO_GREETING)
		fail("the endpoint does not come: %s", strerror(errno));
	return sock;
}

/* Proves the key. Returns the endpoint's next hello, which is good. */
static struct hello challenge(int sock, struct proof *p, const struct hello *greeting)
{
	struct hello h;

	if (!proof_good(p, PROOF_INITIATOR, greeting))
		fail("the greeting is no proof");
	h = sealed(p, PROOF_TARGET, hello_of(HELLO_CHALLENGE));
	if (!ask(sock, &h, &h) || !proof_good(p, PROOF_INITIATOR, &h))
		fail("a good challenge is answered with kind %u", h.kind);
	return h;
}

static int accept_link(int listener, struct hello *accept, const uint16_t ports[2])
{
	struct rails rails = {.count = 2, .rail = {rail_of(0), rail_of(1)}};
	struct proof p = proof_begin(KEY);
	struct hello h;
	int sock = take_call(listener, &h);

	h = challenge(sock, &p, &h);
	if (h.kind != HELLO_CONNECT || !(h.flags & FLAG_RAILS))
		fail("no offer of rails, but kind %u with flags %#x", h.kind, h.flags);
	for (int i = 0; i < 2; i++)
		rails.rail[i].port = ports[i];
	*accept = hello_of(HELLO_ACCEPT);
	memset(accept->nonce, 't', sizeof(accept->nonce));
	add_rails(accept, &rails);
	*accept = sealed(&p, PROOF_TARGET, *accept);
	write_all(sock, accept, sizeof(*accept));
	return sock;
}

/* Ways to answer the greeting on the second wire. */
enum reply {
	JOINS_PLAINLY,
	GREETS_BACK,
	RELAYS_BACK,
	CHALLENGES_WRONGLY,
	/* After a good challenge. */
	JOINS_WITHOUT_CODE,
	JOINS_WITH_OTHER_KEY,
	JOINS_WITHOUT_TOKEN,
	ITS_HELLO_BACK,
	REPLIES
};

static struct hello joined(const struct hello *accept)
{
	struct hello h = {
		.magic = MAGIC, .version = VERSION, .size = sizeof(h), .kind = HELLO_JOINED};

	memcpy(h.nonce, accept->nonce + HALF, HALF);
	return h;
}

/* Passes the greeting to a listener of the endpoint itself. Returns its challenge. */
static struct hello relayed(const struct hello *greeting, const struct name *endpoint)
{
	int sock = raw_connect_tcp(endpoint);
	struct hello h;

	if (!ask(sock, greeting, &h) || h.kind != HELLO_CHALLENGE)
		fail("a relayed greeting is answered with %u", h.kind);
	close(sock);
	return h;
}

static struct hello false_reply(enum reply how, struct proof *p, const struct hello *accept,
				const struct hello *heard)
{
	struct proof wrong = proof_begin(OTHER);
	struct hello h = joined(accept);

	memcpy(wrong.chain, p->chain, sizeof(wrong.chain));
	switch (how) {
	case JOINS_WITH_OTHER_KEY:
		return sealed(&wrong, PROOF_TARGET, h);
	case JOINS_WITHOUT_TOKEN:
		h.nonce[0] ^= 1;
		return sealed(p, PROOF_TARGET, h);
	case GREETS_BACK:
	case ITS_HELLO_BACK:
		return *heard;
	case CHALLENGES_WRONGLY:
		proof_good(&wrong, PROOF_INITIATOR, heard);
		return sealed(&wrong, PROOF_TARGET, hello_of(HELLO_CHALLENGE));
	default:
		return h;
	}
}

static void reply_falsely(enum reply how, int listener, const struct hello *accept,
			  const struct name *endpoint)
{
	struct proof p = proof_begin(KEY);
	struct hello h;
	int sock = take_call(listener, &h);

	if (how >= JOINS_WITHOUT_CODE)
		h = challenge(sock, &p, &h);
	h = how == RELAYS_BACK ? relayed(&h, endpoint) : false_reply(how, &p, accept, &h);
	if (ask(sock, &h, &h))
		fail("reply %u: a hello of kind %#x follows", how, h.kind);
	close(sock);
}

static int take_rail(int listener, const struct hello *accept)
{
	struct proof p = proof_begin(KEY);
	struct hello h;
	int sock = take_call(listener, &h);

	h = challenge(sock, &p, &h);
	if (h.kind != HELLO_JOIN || rails_in(&h).number != 1 || h.your_id != accept->your_id ||
	    memcmp(h.nonce, accept->nonce, HALF) != 0)
		fail("the endpoint does not ask for its rail, but says kind %#x", h.kind);
	h = sealed(&p, PROOF_TARGET, joined(accept));
	write_all(sock, &h, sizeof(h));
	return sock;
}

/* Puts what comes by a rail into its place, until message `which` is there, and acknowledges that. */
static void hear_message(int sock, int which)
{
	static unsigned char stream[2 * PACK], wanted[PACK];
	struct chunk c = {.len = 0};

	pack(wanted);
	while (memcmp(stream + (size_t)which * PACK, wanted, PACK) != 0) {
		if (recv(sock, &c, sizeof(c), MSG_WAITALL) != sizeof(c) || c.at > sizeof(stream) ||
		    c.len > sizeof(stream) - c.at ||
		    recv(sock, stream + c.at, c.len, MSG_WAITALL) != (ssize_t)c.len)
			fail("no message, but %u bytes at %llu", c.len, (unsigned long long)c.at);
	}
	c = (struct chunk){.ack = (uint64_t)(which + 1) * PACK};
	write_all(sock, &c, sizeof(c));
}

/* The endpoint's address, as a hello of it tells. */
static struct name name_in(const struct hello *h)
{
	struct name name = {.len = h->name_len};

	memcpy(name.bytes, h->name, name.len);
	return name;
}

static void play(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct name name = {.len = sizeof(in)}, endpoint;
	uint16_t ports[2];
	int first, second, listeners[2];
	struct hello accept, h;

	for (unsigned int i = 0; i < 2; i++)
		listeners[i] = listen_at(i, &ports[i]);
	in.sin_port = htons(ports[0]);
	inet_pton(AF_INET, "10.99.0.1", &in.sin_addr);
	memcpy(name.bytes, &in, sizeof(in));
	tell(lab.end, &name, sizeof(name));
	first = accept_link(listeners[0], &accept, ports);
	second = take_call(listeners[1], &h);
	endpoint = name_in(&h);
	close(second);
	for (enum reply how = 0; how < REPLIES; how++)
		reply_falsely(how, listeners[1], &accept, &endpoint);
	hear_message(first, 0);
	second = take_rail(listeners[1], &accept);
	close(first);
	tell(lab.end, "", 1);
	hear_message(second, 1);
	tell(lab.end, "", 1);
}

int main(void)
{
	proof_need_library();
	rails_run(play, call);
	return EXIT_SUCCESS;
}
