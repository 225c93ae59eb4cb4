/* SPDX-License-Identifier: BSD-2-Clause */
/* TIMEOUT=100 */
/*
 * Proves that no peer keeps the messages of others from an endpoint. A raw peer in shared memory
 * claims part of the endpoint's ring and lives on: it never publishes the packet, publishes one
 * shorter than its claim, or writes a claim that nobody could make. Messages of a real peer arrive
 * soon afterwards, and none is lost. Only if the raw peer is stopped, perhaps in the middle of a
 * send, do they wait until it is dead.
 */
#define LIMIT 95
#include "raw_shm.h"

#define CLAIM_MS 1000 /* FI_WEFT_CLAIM_TIMEOUT */
#define WAIT_MS  10000
#define BATCH    300

enum way {
	WAY_SLEEPS,
	WAY_RUNS,
	WAY_SHORT,
	WAY_EMPTY,
	WAY_HUGE,
	WAY_DEAD,
	WAY_RECALLS,
	WAY_STOPPED,
	WAYS
};

static const char *const names[WAYS] = {
	"a peer that sleeps",      "a peer that runs",      "a packet shorter than its claim",
	"a claim of no slots",     "a claim of 4095",       "a claim of a dead peer",
	"a packet being recalled", "a peer that is stopped"};

static int ends[2];
static struct name server_name;

/* ---- The endpoint receives, and tells how many messages have come in order. ---- */

static void server(void *arg)
{
	uint64_t buf, next = 0;
	struct event e;
	struct node n;
	char word;

	(void)arg;
	node_open(&n, NULL);
	server_name = node_name(&n);
	tell(ends[1], &server_name, sizeof(server_name));
	must(fi_recv(n.ep, &buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	while (recv(ends[1], &word, 1, MSG_DONTWAIT) < 0) {
		if (!node_poll(&n, &e))
			continue;
		if (e.err || buf != next++)
			fail("message %llu: %s", (unsigned long long)buf, fi_strerror(e.err));
		must(fi_recv(n.ep, &buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
		if (next % BATCH == 0)
			tell(ends[1], "", 1);
	}
	node_close(&n);
}

/* ---- The raw peer ---- */

static void write_claim(const struct raw_ring *r, uint64_t owner, uint32_t slots)
{
	unsigned int shift = (unsigned int)__builtin_ctz(r->mask + 1);

	__atomic_store_n(&r->claims[r->pos & r->mask],
			 r->pos >> shift << 33 | (owner & 0xfffff) << 12 | slots, __ATOMIC_RELEASE);
}

static void raw(void *arg)
{
	enum way way = *(const enum way *)arg;
	struct raw_slot head = {.head = HEAD(WIRE_MSG, 1, 0, 0), .tag = 9, .len = 8};
	struct raw_peer p = raw_join(&server_name, 9);

	if (!raw_claim(&p, 5))
		fail("no room");
	raw_fill(&p, head, &p);
	if (way == WAY_SHORT)
		raw_publish(&p);
	else if (way == WAY_EMPTY)
		write_claim(&p.ring, p.id, 0);
	else if (way == WAY_HUGE)
		write_claim(&p.ring, p.id, 4095);
	else if (way == WAY_DEAD)
		write_claim(&p.ring, 0xfffff, 5);
	else if (way == WAY_RECALLS)
		raw_slot(&p.ring)->token = p.ring.page->secret + p.ring.pos + (UINT64_C(1) << 61);
	tell(ends[1], "", 1);
	while (way == WAY_RUNS)
		;
	for (;;)
		pause();
}

/* ---- A real peer ---- */

static void send_batch(struct node *n, uint64_t *number)
{
	struct event e;

	for (int i = 0; i < BATCH; i++) {
		while (fi_inject(n->ep, number, sizeof(*number), 0) == -FI_EAGAIN)
			node_poll(n, &e);
		++*number;
	}
}

/* Returns whether the endpoint has got another batch within `ms`. */
static bool come(struct node *n, unsigned int ms)
{
	uint64_t end = now_ms() + ms;
	struct event e;
	char word;

	while (recv(ends[0], &word, 1, MSG_DONTWAIT) != 1) {
		node_poll(n, &e);
		if (now_ms() > end)
			return false;
	}
	return true;
}

static void one(enum way way)
{
	uint64_t number = 0;
	pid_t pid, peer;
	struct node n;
	int status;

	wire(ends);
	pid = start("endpoint", server, NULL);
	hear(ends[0], &server_name, sizeof(server_name));
	node_open(&n, NULL);
	node_insert(&n, &server_name);
	send_batch(&n, &number);
	if (!come(&n, WAIT_MS))
		fail("messages do not come at all");
	peer = start("raw peer", raw, &way);
	hear(ends[0], &(char){0}, 1);
	if (way == WAY_STOPPED) {
		kill(peer, SIGSTOP);
		waitpid(peer, &status, WUNTRACED);
	}
	send_batch(&n, &number);
	if (way == WAY_STOPPED) {
		if (come(&n, 4 * CLAIM_MS))
			fail("the packet of a stopped peer was skipped");
		slay(peer);
	}
	for (int i = 0; i < 4; i++) {
		if (!come(&n, WAIT_MS))
			fail("%s: batch %d does not come", names[way], i);
		send_batch(&n, &number);
	}
	if (!come(&n, WAIT_MS))
		fail("%s: the last batch does not come", names[way]);
	tell(ends[0], "", 1);
	finish(pid, "endpoint");
	if (way != WAY_STOPPED)
		slay(peer);
	node_close(&n);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	alarm(LIMIT);
	need_provider();
	if (!strcmp(provider(), "tcp")) {
		printf("nothing of tcp is in shared memory\n");
		return 77;
	}
	setenv("FI_WEFT_CLAIM_TIMEOUT", "1000", 1);
	for (enum way way = 0; way < WAYS; way++)
		one(way);
	return EXIT_SUCCESS;
}
