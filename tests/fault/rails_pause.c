/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process computes for longer than FI_WEFT_PEER_TIMEOUT, and then sends over two slow wires, so that packets wait for their
 * answers at the next looks after the rails. The peer answers: no operation may fail, and no rail be left.
 */
#define LIMIT 55

#include "hello.h"
#include "two_wires.h"

#define COUNT        8
#define LEN          (1u << 17)
#define PEER_TIMEOUT 1500 /* ms */
#define AWAIT_MS     12000

static struct lab lab;
static unsigned char bytes[COUNT][LEN];

/* Packets that nobody waits for: what is sent next waits behind them. */
static void fill_wires(void)
{
	static const char load[1400];
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (unsigned int i = 0; i < 100; i++) {
		struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};

		to.sin_addr.s_addr = htonl(0x0a630002u + ((i & 1) << 8));
		sendto(sock, load, sizeof(load), 0, (struct sockaddr *)&to, sizeof(to));
	}
	close(sock);
}

static void expect(struct node *n, const char *what)
{
	struct event e = node_wait(n, AWAIT_MS, what);

	if (e.err)
		fail("%s ended with %s", what, fi_strerror(e.err));
}

static void compute(struct node *n, unsigned int ms)
{
	struct event e;

	for (uint64_t end = now_ms() + 1000; now_ms() < end;) /* both wires have rails by then */
		if (node_poll(n, &e))
			fail("an event of nothing");
	usleep(ms * 1000);
}

static void send_all(struct node *n, fi_addr_t peer)
{
	unsigned int sent = 0, done = 0;
	struct event e;

	MUST(n->cq, fi_send(n->ep, bytes[0], 8, NULL, peer, NULL));
	expect(n, "the first message");
	compute(n, PEER_TIMEOUT + 1000);
	fill_wires();
	for (uint64_t end = now_ms() + AWAIT_MS; done < COUNT;) {
		if (sent < COUNT && !fi_send(n->ep, bytes[sent], LEN, NULL, peer, NULL))
			sent++;
		if (now_ms() > end)
			fail("%u of %u messages", done, COUNT);
		if (!node_poll(n, &e))
			continue;
		if (e.err)
			fail("message %u ended with %s", done, fi_strerror(e.err));
		done++;
	}
}

static void live(void *arg)
{
	struct node n;
	fi_addr_t peer;

	lab = *(struct lab *)arg;
	lab_enter(&lab);
	second_wire(&lab);
	slow_wires("rate 2mbit burst 1600 limit 512kb");
	setenv("FI_WEFT_RAILS", "2", 1);
	setenv("FI_WEFT_PEER_TIMEOUT", "1500", 1);
	setenv("FI_WEFT_RAIL_TIMEOUT", "400", 1);
	node_open(&n, NULL);
	peer = node_meet(&n, lab.end);
	if (lab.which == 0) {
		send_all(&n, peer);
		hear(lab.end, &(char){0}, 1);
	} else {
		for (unsigned int i = 0; i <= COUNT; i++)
			must(fi_recv(n.ep, bytes[i % COUNT], LEN, NULL, FI_ADDR_UNSPEC, NULL),
			     "fi_recv");
		for (unsigned int i = 0; i <= COUNT; i++)
			expect(&n, "a message");
		tell(lab.end, "", 1);
	}
	node_close(&n);
}

int main(void)
{
	alarm(LIMIT);
	need_lab();
	need_network();
	two_hosts(live);
	return EXIT_SUCCESS;
}
