/* SPDX-License-Identifier: BSD-2-Clause */
/* The cost of peers to the one who talks to them, an endpoint in a process of its own. All peers are endpoints of
 * a second process:
 *
 *     star [-n] PROVIDER peers NUMBER       so many peers, all connected
 *     star -n PROVIDER unknown NUMBER     peers whose addresses are not among so many in the vector
 *
 * -n: over a network. Prints lines "WHAT NUMBER VALUE". WHAT is
 *     connecting   microseconds for each peer until a message has gone there and one has come back
 *     sending      nanoseconds for a message of 8 bytes and its completion, if all peers get them by turns
 *     idle         nanoseconds for a call of fi_cq_read while nobody sends anything
 *     memory       bytes of the process for each peer, its address included, the kernel's not
 *     first        microseconds until the first message of a peer has come, which it connects for
 * Status 77: the provider is not available, or there are too few descriptors. The same file runs on
 * any libfabric.so.1 in LD_LIBRARY_PATH. */
#define _GNU_SOURCE
#include "addresses.h"
#include "fabric.h"
#include "memory.h"

#define PEERS_MAX 2000
#define UNKNOWN   21
#define BURST     64   /* messages, or one for each peer if that is more */
#define IDLE_US   2000 /* of a repeat while nobody sends */
#define MANY      100  /* minimum peers to measure memory */

/* An endpoint of the second process, or the first one's view of it. */
struct spoke {
	struct fid_ep *ep;
	fi_addr_t addr;
	struct fi_context2 receives;
	char room[8];
};

static char *provider;
static bool unknown;
static size_t number, peers, burst;
static struct spoke spokes[PEERS_MAX];
static char message[8] = "message";
static size_t posted, sent, received;
static struct fi_context2 sends[PEERS_MAX]; /* by turns */

static void receive(struct spoke *s)
{
	must(fi_recv(s->ep, s->room, sizeof s->room, NULL, FI_ADDR_UNSPEC, &s->receives),
	     "fi_recv");
}

/* A receive is posted anew at once. */
static void progress(void)
{
	struct fi_cq_tagged_entry entry[16];
	ssize_t count = fabric_read(entry, 16);

	for (ssize_t i = 0; i < count; i++) {
		struct fi_context2 *context = entry[i].op_context;

		if (!(entry[i].flags & FI_RECV)) {
			sent++;
			continue;
		}
		received++;
		receive((struct spoke *)((char *)context - offsetof(struct spoke, receives)));
	}
}

static void transmit(struct spoke *s)
{
	ssize_t ret;

	while ((ret = fi_send(s->ep, message, sizeof message, NULL, s->addr,
			      &sends[posted % PEERS_MAX])) == -FI_EAGAIN)
		progress();
	must(ret, "fi_send");
	posted++;
}

static void await_sent(void)
{
	while (sent < posted)
		progress();
}

static void await_received(size_t more)
{
	static size_t all;

	for (all += more; received < all;)
		progress();
}

/* The first process has one endpoint, of which each spoke is a way to a peer. */
static void open_all(void)
{
	fabric_open();
	for (size_t i = 0; i < peers; i++)
		spokes[i].ep = side == 0 || i == 0 ? ep : fabric_endpoint(NULL);
}

static void meet(void)
{
	char mine[NAME_ROOM], theirs[NAME_ROOM];

	for (size_t i = 0; i < peers; i++) {
		fabric_name(spokes[i].ep, mine);
		pair_swap(mine, theirs, sizeof mine);
		spokes[i].addr = side == 1 && i ? spokes[0].addr : fabric_insert(theirs);
		receive(&spokes[i]);
	}
}

static void say(const char *what, double value)
{
	if (side == 0)
		printf("%s %zu %.4g\n", what, number, value);
}

/* A message to each peer, and one back. */
static void connect_all(void)
{
	double start = microseconds();

	for (size_t i = 0; i < peers && side == 0; i++)
		transmit(&spokes[i]);
	await_received(peers);
	for (size_t i = 0; i < peers && side == 1; i++)
		transmit(&spokes[i]);
	await_sent();
	fabric_sync(progress);
	say("connecting", (microseconds() - start) / (double)peers);
}

/* Returns nanoseconds. Only the sender's own work is timed: the receivers are waited for afterwards. */
static double send_burst(void)
{
	double start = microseconds(), took;

	for (size_t i = 0; i < burst && side == 0; i++)
		transmit(&spokes[i % peers]);
	await_sent();
	took = (microseconds() - start) * 1000 / (double)burst;
	if (side == 1)
		await_received(burst);
	fabric_sync(progress);
	return took;
}

/* Returns nanoseconds. A repeat is long enough to have what is done only now and then. */
static double idle_calls(void)
{
	double start = microseconds(), now = start;
	size_t calls = 0;

	while (now < start + IDLE_US) {
		for (int i = 0; i < 16; i++)
			progress();
		calls += 16;
		now = microseconds();
	}
	return (now - start) * 1000 / (double)calls;
}

static void measure(const char *what, double (*once)(void), int repeats)
{
	double values[REPEATS_MAX];

	for (int i = 0; i < repeats; i++)
		values[i] = once();
	say(what, clock_median(values, repeats));
}

static void know_others(void)
{
	struct sockaddr_in one;

	for (size_t i = 0; i < number; i++) {
		addresses_make(&one, i, 1);
		fabric_insert((const char *)&one);
	}
}

static void run_unknown(void)
{
	double values[UNKNOWN];
	char mine[NAME_ROOM], theirs[NAME_ROOM];

	open_all();
	if (side == 0)
		know_others();
	fabric_name(ep, mine);
	pair_swap(mine, theirs, sizeof mine);
	for (size_t i = 0; i < UNKNOWN; i++) {
		receive(&spokes[i]);
		spokes[i].addr = side == 0 ? FI_ADDR_UNSPEC
				 : i       ? spokes[0].addr
					   : fabric_insert(theirs);
	}
	for (size_t i = 0; i < UNKNOWN; i++) {
		double start = (pair_sync(), microseconds());

		if (side == 0)
			await_received(1);
		else
			transmit(&spokes[i]);
		values[i] = microseconds() - start;
		fabric_sync(progress);
	}
	say("first", clock_median(values, UNKNOWN));
}

static void run_peers(void)
{
	struct use before;

	open_all();
	before = memory_use();
	meet();
	connect_all();
	if (peers >= MANY)
		say("memory", memory_since(before) / (double)peers);
	measure("sending", send_burst, burst > BURST ? REPEATS : REPEATS_MAX);
	pair_sync();
	if (side == 0)
		measure("idle", idle_calls, REPEATS_MAX / 4);
}

static void run(void)
{
	fabric_descriptors(2 * peers + 64);
	fabric_offered(fabric_find(fabric_hints(provider, FI_MSG, false)), "fi_getinfo");
	memset(spokes, 1, sizeof spokes);
	unknown ? run_unknown() : run_peers();
	pair_sync();
	for (size_t i = 1; i < peers && side == 1; i++)
		fi_close(&spokes[i].ep->fid);
	fabric_close();
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "-n")) {
		pair_network = true;
		argc--;
		argv++;
	}
	number = argc == 4 ? strtoul(argv[3], NULL, 0) : 0;
	unknown = argc == 4 && !strcmp(argv[2], "unknown");
	peers = unknown ? UNKNOWN : number;
	if (!number || peers > PEERS_MAX || (!unknown && strcmp(argv[2], "peers") != 0)) {
		fputs("Usage: star [-n] PROVIDER peers|unknown NUMBER\n", stderr);
		return EXIT_FAILURE;
	}
	provider = argv[1];
	burst = peers > BURST ? peers : BURST;
	return pair_run(run);
}
