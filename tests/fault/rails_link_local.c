/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints that are bound to an IPv6 address of a link have a second rail by an interface with an address of a network. Each of
 * the two wires fails in its turn, and messages go on.
 */
#define NODE_FORMAT FI_SOCKADDR_IN6
#include "hello.h"
#include "talk.h"
#include "two_wires.h"

#define READY_MS 1000 /* in which rails are made */

static struct lab lab;
static unsigned int rounds;

static void first_address(void)
{
	if (run("ip addr add fe80::%d/64 dev eth0 nodad", lab.which + 1))
		fail("no IPv6 address of the first wire");
}

static struct name own_name(void)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
				   .sin6_scope_id = if_nametoindex("eth0")};
	struct name name = {.len = sizeof(in6)};

	inet_pton(AF_INET6, lab.which ? "fe80::2" : "fe80::1", &in6.sin6_addr);
	memcpy(name.bytes, &in6, sizeof(in6));
	return name;
}

static void pass_ms(struct node *n, unsigned int ms)
{
	struct event e;

	for (uint64_t end = now_ms() + ms; now_ms() < end;)
		if (node_poll(n, &e))
			fail("an operation too many ended, or one with %d", e.err);
}

/* Both hosts are as far. */
static void meet(struct node *n)
{
	struct event e;
	char word = 0;

	tell(lab.end, &word, 1);
	while (recv(lab.end, &word, 1, MSG_DONTWAIT) != 1)
		if (node_poll(n, &e))
			fail("an operation too many ended, or one with %d", e.err);
}

/* The first host cuts the wire: messages go on over the other one. */
static void without_wire(struct node *n, fi_addr_t peer, unsigned int wire)
{
	pass_ms(n, READY_MS);
	meet(n);
	if (lab.which == 0 && run("ip link set eth%u down", wire))
		fail("eth%u stays up", wire);
	meet(n);
	for (int i = 0; i < 3; i++)
		talk(n, peer, rounds++, lab.which);
	if (lab.which == 0 && run("ip link set eth%u up", wire))
		fail("eth%u stays down", wire);
	if (lab.which == 0 && wire == 0) /* the kernel has removed it */
		first_address();
}

static void live(void *arg)
{
	struct name name;
	fi_addr_t peer;
	struct node n;

	lab = *(struct lab *)arg;
	lab_enter(&lab);
	second_wire(&lab);
	first_address();
	if (run("ip addr add fd99::%d/64 dev eth1 nodad", lab.which + 1))
		fail("no IPv6 address of the second wire");
	setenv("FI_WEFT_RAILS", "eth1", 1);
	setenv("FI_WEFT_RAIL_TIMEOUT", "200", 1);
	name = own_name();
	node_open(&n, &name);
	peer = node_meet(&n, lab.end);
	talk(&n, peer, rounds++, lab.which);
	without_wire(&n, peer, 0);
	without_wire(&n, peer, 1);
	meet(&n);
	node_close(&n);
}

int main(void)
{
	alarm(LIMIT);
	need_lab();
	need_ipv6();
	need_network();
	two_hosts(live);
	return EXIT_SUCCESS;
}
