/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with two wires. Endpoints that listen on all addresses are one peer under either address: whichever side
 * knows which one, both begin at once, or the connection is lost and the other side makes it anew, by the other wire.
 * Needs root. Not for shm.
 */
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE)
#include <arpa/inet.h>

#include "talk.h"
#include "two_wires.h"

#define PORT    47130 /* of host 0; host 1 has the next one */
#define WIRES   2
#define ENDED   (void *)1
#define LOST_MS 5000

static struct lab *lab;

static struct name address(int host, int wire)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(PORT + host))};
	struct name name = {.len = sizeof(in)};
	char text[INET_ADDRSTRLEN];

	snprintf(text, sizeof(text), wire < 0 ? "0.0.0.0" : "10.99.%d.%d", wire, host + 1);
	inet_pton(AF_INET, text, &in.sin_addr);
	memcpy(name.bytes, &in, sizeof(in));
	return name;
}

static void meet(void)
{
	char word = 0;

	tell(lab->end, &word, 1);
	hear(lab->end, &word, 1);
}

/* Makes progress until the other host comes as far. */
static void meet_awake(struct node *n)
{
	struct event e;
	char word = 0;

	tell(lab->end, &word, 1);
	while (recv(lab->end, &word, 1, MSG_DONTWAIT) != 1)
		if (node_poll(n, &e))
			fail("an event too many: %s", fi_strerror(e.err));
}

static fi_addr_t open_and_insert(struct node *n, int wire)
{
	struct name mine = address(lab->which, -1), theirs = address(!lab->which, wire);
	fi_addr_t peer;

	node_open(n, &mine);
	peer = node_insert(n, &theirs);
	meet();
	return peer;
}

/* Each host numbers words; those of the other one are received from its entry alone. */
static void exchange(struct node *n, fi_addr_t peer, bool sends, bool receives)
{
	uint64_t out = 4711, in = 0;
	struct event e;
	ssize_t ret;

	if (receives)
		must(fi_recv(n->ep, &in, sizeof(in), NULL, peer, &in), "fi_recv");
	while (sends && (ret = fi_send(n->ep, &out, sizeof(out), NULL, peer, NULL)) == -FI_EAGAIN)
		if (node_poll(n, &e))
			fail("an event too early: %s", fi_strerror(e.err));
	if (sends)
		must(ret, "fi_send");
	for (int left = sends + receives; left; left--) {
		e = node_wait(n, TALK_MS, sends ? "a send or receive" : "a receive");
		if (e.err)
			fail("an operation ended with %s", fi_strerror(e.err));
	}
	if (receives && in != 4711)
		fail("a wrong word: %llu", (unsigned long long)in);
}

/* Host 0 knows the other one by wire `to[0]`, host 1 by `to[1]`. */
static void at_once(const int to[2])
{
	struct node n;
	fi_addr_t peer = open_and_insert(&n, to[lab->which]);

	exchange(&n, peer, true, true);
	talk(&n, peer, 0, lab->which);
	meet_awake(&n);
	node_close(&n);
}

/* Closes the connections of this process. */
static void lose(void)
{
	struct sockaddr_storage at;

	for (int fd = 3; fd < 256; fd++) {
		socklen_t len = sizeof(at);

		if (!getpeername(fd, (struct sockaddr *)&at, &len) && at.ss_family == AF_INET)
			shutdown(fd, SHUT_RDWR);
	}
}

/* Host 0 connects by its entry; after the loss host 1 does, by its own. */
static void one_then_the_other(const int to[2])
{
	struct node n;
	fi_addr_t peer = open_and_insert(&n, to[lab->which]);
	bool first = lab->which == 0;
	struct event e;
	char word;

	exchange(&n, peer, first, !first);
	must(fi_recv(n.ep, &word, 1, NULL, peer, ENDED), "fi_recv");
	meet_awake(&n);
	if (first)
		lose();
	e = node_wait(&n, LOST_MS, "a receive from who is gone");
	if (!e.err || e.context != ENDED)
		fail("the connection is not lost: %s", fi_strerror(e.err));
	meet_awake(&n);
	exchange(&n, peer, !first, first);
	talk(&n, peer, 0, lab->which);
	meet_awake(&n);
	node_close(&n);
}

static void live(void *arg)
{
	lab = arg;
	lab_enter(lab);
	second_wire(lab);
	meet();
	lab_wait_for_wire("eth1");
	meet();
	for (int i = 0; i < WIRES * WIRES; i++) {
		const int to[2] = {i % WIRES, i / WIRES};

		at_once(to);
		one_then_the_other(to);
	}
}

int main(void)
{
	alarm(LIMIT);
	if (!strcmp(provider(), "shm")) {
		printf("shm names endpoints by strings\n");
		return 77;
	}
	need_provider();
	need_lab();
	two_hosts(live);
	return EXIT_SUCCESS;
}
