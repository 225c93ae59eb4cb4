/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=120
 * How long messages stay away when one of two wires fails under load, with the default FI_WEFT_RAIL_TIMEOUT: no longer than
 * that, whatever the failure.
 */
#define LIMIT 110

#include "hello.h"
#include "two_wires.h"

#define DEPTH    4u
#define WORDS    8192u
#define BOUND_MS 2000
#define SLACK_MS 2000 /* other processes run here, too */
#define LAST     UINT64_MAX

static struct lab lab;
static uint64_t bytes[DEPTH][WORDS];

/* On the first host, which sends. The wire that the connection began with fails. */
static const struct {
	const char *what, *breaks, *mends;
} ways[] = {
	{"reset", "ss -K dst 10.99.0.2 >/dev/null 2>&1", "true"},
	{"down", "ip link set eth0 down", "ip link set eth0 up"},
	{"dark", "ip neigh replace 10.99.0.2 lladdr 02:00:00:00:00:99 dev eth0 nud permanent",
	 "ip neigh del 10.99.0.2 dev eth0"},
	{"without address", "ip addr del 10.99.0.1/24 dev eth0",
	 "ip addr add 10.99.0.1/24 dev eth0"},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* Keeps messages under way for so long, each of which names the way. */
static void send_for(struct node *n, fi_addr_t peer, uint64_t way, unsigned int ms)
{
	static unsigned int sent, done;
	struct event e;

	for (uint64_t end = now_ms() + ms; now_ms() < end;) {
		uint64_t *at = bytes[sent % DEPTH];

		at[0] = way;
		if (sent - done < DEPTH && !fi_send(n->ep, at, sizeof(bytes[0]), NULL, peer, NULL))
			sent++;
		if (!node_poll(n, &e))
			continue;
		if (e.err)
			fail("a message ended with %s", fi_strerror(e.err));
		done++;
	}
}

#define USED (1ull << 20) /* bytes that prove that a wire is in use */

/* Goes on until the first wire is in use, and the second one has a connection and some time to become a rail. */
static void warm_up(struct node *n, fi_addr_t peer, uint64_t way)
{
	unsigned long long first = bytes_of(0);

	while (bytes_of(0) < first + USED ||
	       run("ss -Htn state established dst 10.99.1.2 | grep -q ."))
		send_for(n, peer, way, 50);
	send_for(n, peer, way, 1000);
}

static void send_all(struct node *n, fi_addr_t peer)
{
	for (uint64_t way = 0; way < WAYS; way++) {
		warm_up(n, peer, way);
		if (run("%s", ways[way].breaks))
			fail("a wire cannot be broken: %s", ways[way].what);
		send_for(n, peer, way, BOUND_MS + 1000);
		if (run("%s", ways[way].mends))
			fail("a wire cannot be mended: %s", ways[way].what);
	}
	while (fi_send(n->ep, &(uint64_t){LAST}, 8, NULL, peer, NULL))
		send_for(n, peer, WAYS - 1, 1);
}

static void receive_all(struct node *n)
{
	uint64_t gap[WAYS] = {0}, before = UINT64_MAX, way = 0;
	bool late = false;

	for (unsigned int i = 0; i < DEPTH; i++)
		must(fi_recv(n->ep, bytes[i], sizeof(bytes[0]), NULL, FI_ADDR_UNSPEC, bytes[i]),
		     "fi_recv");
	while (way != LAST) {
		struct event e = node_wait(n, 20000, "a message");
		uint64_t now = now_ms();

		if (e.err)
			fail("a message ended with %s", fi_strerror(e.err));
		way = *(const uint64_t *)e.context;
		if (way < WAYS && now > before && now - before > gap[way])
			gap[way] = now - before;
		before = now;
		must(fi_recv(n->ep, e.context, sizeof(bytes[0]), NULL, FI_ADDR_UNSPEC, e.context),
		     "fi_recv");
	}
	for (unsigned int i = 0; i < WAYS; i++) {
		printf("%s: no message for %llu ms\n", ways[i].what, (unsigned long long)gap[i]);
		late |= gap[i] > BOUND_MS + SLACK_MS;
	}
	if (late)
		fail("that is longer than %d ms", BOUND_MS + SLACK_MS);
}

static void live(void *arg)
{
	struct node n;
	fi_addr_t peer;

	lab = *(struct lab *)arg;
	lab_enter(&lab);
	second_wire(&lab);
	setenv("FI_WEFT_RAILS", "2", 1);
	node_open(&n, NULL);
	peer = node_meet(&n, lab.end);
	if (lab.which == 0) {
		uint64_t end;

		send_all(&n, peer);
		end = now_ms() + 5000;
		while (recv(lab.end, &(char){0}, 1, MSG_DONTWAIT) < 0 && now_ms() < end)
			node_poll(&n, &(struct event){0});
	} else {
		receive_all(&n);
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
