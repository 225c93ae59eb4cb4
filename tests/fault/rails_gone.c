/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both cables of a connection are pulled, or the peer is killed: what is under way ends with the error that it has over one wire,
 * within the same time.
 */
#define LIMIT 55

#include "hello.h"
#include "two_wires.h"

#define PEER_TIMEOUT 2000 /* ms */
#define SLACK_MS     2000 /* other processes run here, too */
#define RESET_MS     1500
#define LEN          (1u << 20)

static struct lab lab;
static bool killed; /* the peer; else the cables are pulled */
static unsigned char bytes[LEN];

static void pull_cables(void)
{
	for (unsigned int i = 0; i < 2; i++)
		if (run("ip link set eth%u down", i))
			fail("wire %u stays up", i);
}

/* Returns the event of a send. */
static struct event send_one(struct node *n, fi_addr_t peer, unsigned int ms)
{
	MUST(n->cq, fi_send(n->ep, bytes, LEN, NULL, peer, NULL));
	return node_wait(n, ms, "the end of the send");
}

static void expect(struct node *n, fi_addr_t peer)
{
	int wanted = killed ? FI_ECONNRESET : FI_ETIMEDOUT;
	uint64_t end = now_ms() + 1000; /* both wires have rails by then */
	struct event e;

	while (run("ss -Htn state established dst 10.99.1.2 | grep -q .") || now_ms() < end) {
		if (send_one(n, peer, 20000).err)
			fail("a send ends before anything fails");
		usleep(10000);
	}
	if (killed)
		tell(lab.end, "", 1);
	else
		pull_cables();
	do
		e = send_one(n, peer, killed ? RESET_MS : PEER_TIMEOUT * 3 / 2 + SLACK_MS);
	while (!e.err);
	if (e.err != wanted)
		fail("%s instead of %s", fi_strerror(e.err), fi_strerror(wanted));
}

/* Receives until it is told to end. */
static void receive(struct node *n)
{
	struct event e;

	do {
		must(fi_recv(n->ep, bytes, LEN, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
		while (!node_poll(n, &e))
			if (recv(lab.end, &(char){0}, 1, MSG_DONTWAIT) >= 0)
				_exit(EXIT_SUCCESS);
	} while (!e.err);
	hear(lab.end, &(char){0}, 1);
	_exit(EXIT_SUCCESS);
}

static void live(void *arg)
{
	struct node n;
	fi_addr_t peer;

	lab = *(struct lab *)arg;
	lab_enter(&lab);
	second_wire(&lab);
	setenv("FI_WEFT_RAILS", "2", 1);
	setenv("FI_WEFT_RAIL_TIMEOUT", "400", 1);
	setenv("FI_WEFT_PEER_TIMEOUT", "2000", 1);
	node_open(&n, NULL);
	peer = node_meet(&n, lab.end);
	if (lab.which)
		receive(&n);
	expect(&n, peer);
	if (!killed)
		tell(lab.end, "", 1);
	node_close(&n);
}

int main(void)
{
	alarm(LIMIT);
	need_lab();
	need_network();
	two_hosts(live);
	killed = true;
	two_hosts(live);
	return EXIT_SUCCESS;
}
