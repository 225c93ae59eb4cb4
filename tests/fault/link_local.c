/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts whose only addresses are IPv6 ones of the link: each host has a scope number of its own for the same wire, so a
 * name that comes from the other host has a scope that means nothing here. Applications pass on names as they are, or put
 * in their own scope; receives that name their sender match in both cases.
 */
#define NODE_FORMAT FI_SOCKADDR_IN6
#include <net/if.h>

#include "hello.h"
#include "talk.h"
#include "two_wires.h"

#define ROUNDS 3

static struct lab lab;
static bool as_is; /* the other host's name is inserted as it is */

/* Adds a wire with addresses of the link alone; the second host has an interface more, so its number differs. */
static void link_wire(void)
{
	if (lab.which == 1 && run("ip link add spare0 type veth peer name spare1"))
		fail("no spare interface");
	make_second_wire(&lab);
	if (run("ip addr add fe80::%d/64 dev eth1 nodad && ip link set eth1 up", lab.which + 1))
		fail("no IPv6 address of a link");
	lab_wait_for_wire("eth1");
}

static struct name own_name(void)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
				   .sin6_scope_id = if_nametoindex("eth1")};
	struct name name = {.len = sizeof(in6)};

	inet_pton(AF_INET6, lab.which ? "fe80::2" : "fe80::1", &in6.sin6_addr);
	memcpy(name.bytes, &in6, sizeof(in6));
	return name;
}

/* Exchanges names; the scopes of the two hosts differ. */
static fi_addr_t meet(struct node *n)
{
	struct name mine = node_name(n), theirs;
	struct sockaddr_in6 in6;

	tell(lab.end, &mine, sizeof(mine));
	hear(lab.end, &theirs, sizeof(theirs));
	memcpy(&in6, theirs.bytes, sizeof(in6));
	if (in6.sin6_scope_id == if_nametoindex("eth1"))
		fail("both hosts have the number %u for the wire", in6.sin6_scope_id);
	if (!as_is)
		in6.sin6_scope_id = if_nametoindex("eth1");
	memcpy(theirs.bytes, &in6, sizeof(in6));
	return node_insert(n, &theirs);
}

/* A message each way, to a receive that names its sender. */
static void talk_directed(struct node *n, fi_addr_t peer)
{
	char in[8], out[8] = "by name";
	struct event e;

	must(fi_recv(n->ep, in, sizeof(in), NULL, peer, NULL), "fi_recv");
	MUST(n->cq, fi_send(n->ep, out, sizeof(out), NULL, peer, NULL));
	for (int i = 0; i < 2; i++) {
		e = node_wait(n, TALK_MS, "a message of a known sender");
		if (e.err)
			fail("a message of a known sender: %s", fi_strerror(e.err));
	}
}

static void live(void *arg)
{
	struct name name;
	fi_addr_t peer;
	struct node n;

	lab = *(struct lab *)arg;
	lab_enter(&lab);
	link_wire();
	name = own_name();
	node_open(&n, &name);
	peer = meet(&n);
	talk_directed(&n, peer);
	for (unsigned int i = 0; i < ROUNDS; i++)
		talk(&n, peer, i, lab.which);
	tell(lab.end, "", 1);
	hear(lab.end, &(char){0}, 1);
	node_close(&n);
}

int main(void)
{
	alarm(LIMIT);
	need_lab();
	need_ipv6();
	need_network();
	two_hosts(live);
	as_is = true;
	two_hosts(live);
	return EXIT_SUCCESS;
}
