/* SPDX-License-Identifier: BSD-2-Clause */
/* TIMEOUT=200 */
/*
 * Proves that no word which a peer writes into an endpoint's ring keeps the messages of others from it. A
 * raw peer in shared memory writes such a word, of a claim, a packet or the ring's page, and lives on;
 * the endpoint polls, or sleeps. Messages of a real peer arrive soon afterwards, and none is lost unless
 * the word has covered them or sent them elsewhere. Only if the raw peer is stopped, perhaps in the middle of a send, do
 * they wait until it is dead.
 */
#define LIMIT     195
#define NODE_WAIT FI_WAIT_UNSPEC
#include "raw_peer.h"

#define CLAIM_MS       1000 /* twice FI_WEFT_ACCESS_TIMEOUT */
#define WAIT_MS        10000
#define BATCH          300
#define BATCHES        6 /* more than a lap of the ring */
#define CLAIMED        5 /* slots */
#define RING_RECALLING (UINT64_C(1) << 61)

/* How the endpoint waits, and what it may miss. */
enum { SLEEPS = 1, LOSES = 2 };

/* ---- The raw peer's words ---- */

/* A claim of the raw peer, whose packet is written and not published. */
struct foe {
	struct raw_link link;
	struct raw_claim claim;
};

static void publish(struct foe *f, uint64_t state)
{
	raw_ring_publish(&f->link.ring, &f->claim, state);
}

static void write_claim(struct foe *f, uint64_t laps, uint64_t owner, uint32_t slots)
{
	struct raw_ring *r = &f->link.ring;

	__atomic_store_n(&r->claims[f->claim.pos & r->mask],
			 (raw_ring_lap(r, f->claim.pos) + laps) << 33 | (owner & 0xfffff) << 12 |
				 slots,
			 __ATOMIC_RELEASE);
}

static void nothing(struct foe *f)
{
	(void)f;
}

static void run(struct foe *f)
{
	(void)f;
	tell(ends[1], "", 1);
	for (;;)
		;
}

static void write_again(struct foe *f)
{
	tell(ends[1], "", 1);
	for (;;)
		write_claim(f, 0, f->link.id, CLAIMED);
}

static void publish_short(struct foe *f)
{
	publish(f, 0);
}

static void publish_long(struct foe *f)
{
	write_claim(f, 0, f->link.id, 1);
	raw_ring_slot(&f->link.ring, f->claim.pos)->len = SHM_PACKET_MAX;
	publish(f, 0);
}

static void publish_all_longer(struct foe *f)
{
	write_claim(f, 0, f->link.id, 257);
	publish_long(f);
}

static void publish_unclaimed(struct foe *f)
{
	write_claim(f, UINT64_MAX, f->link.id, 1);
	raw_ring_slot(&f->link.ring, f->claim.pos)->len = SHM_PACKET_MAX;
	publish(f, 0);
}

static void claim_nothing(struct foe *f)
{
	write_claim(f, 0, f->link.id, 0);
}

static void claim_much(struct foe *f)
{
	write_claim(f, 0, f->link.id, 4095);
}

static void claim_of_the_dead(struct foe *f)
{
	write_claim(f, 0, 0xfffff, CLAIMED);
}

static void much_of_the_dead(struct foe *f)
{
	write_claim(f, 0, 0xfffff, 4095);
}

static void claim_of_a_later_lap(struct foe *f)
{
	write_claim(f, 5, f->link.id, 1);
}

static void claims_of_later_laps(struct foe *f)
{
	for (uint32_t i = 0; i <= f->link.ring.mask; i++, f->claim.pos++)
		write_claim(f, 5, f->link.id, 1);
}

static void recall(struct foe *f)
{
	publish(f, RING_RECALLING);
}

static void cancel_nothing(struct foe *f)
{
	claim_nothing(f);
	publish(f, RING_CANCELLED);
}

static void cancel_much(struct foe *f)
{
	claim_much(f);
	publish(f, RING_CANCELLED);
}

static void spoil_much(struct foe *f)
{
	claim_much(f);
	raw_ring_slot(&f->link.ring, f->claim.pos)->len = UINT32_MAX;
	publish(f, 0);
}

static void head_at_the_begin(struct foe *f)
{
	publish_short(f);
	__atomic_store_n(&f->link.ring.page->head, 0, __ATOMIC_RELEASE);
}

static void head_far_ahead(struct foe *f)
{
	publish_short(f);
	__atomic_store_n(&f->link.ring.page->head, f->claim.pos + (UINT64_C(1) << 40),
			 __ATOMIC_RELEASE);
}

static void hint_ahead(struct foe *f)
{
	publish_short(f);
	__atomic_store_n(&f->link.ring.page->hint, f->claim.pos + 500, __ATOMIC_RELEASE);
}

static void no_sleep(struct foe *f)
{
	struct raw_ring *r = &f->link.ring;

	publish_short(f);
	usleep(200000);
	for (uint32_t i = 0; i <= r->mask; i++)
		__atomic_fetch_and(&r->claims[i], ~CLAIM_SLEEP, __ATOMIC_ACQ_REL);
}

static const struct way {
	const char *name;
	void (*act)(struct foe *f);
	unsigned int how;
	bool stopped;
} ways[] = {
	{"a peer that sleeps", nothing, 0, false},
	{"a peer that runs", run, 0, false},
	{"a peer that writes its claim again and again", write_again, 0, false},
	{"a packet shorter than its claim", publish_short, 0, false},
	{"the same while the endpoint sleeps", publish_short, SLEEPS, false},
	{"a packet longer than its claim", publish_long, LOSES, false},
	{"the same while the endpoint sleeps", publish_long, SLEEPS, false},
	{"a packet that outgrew its claim", publish_all_longer, LOSES, false},
	{"a packet without a claim", publish_unclaimed, LOSES, false},
	{"a claim of no slots", claim_nothing, 0, false},
	{"a claim of 4095", claim_much, 0, false},
	{"a claim of a dead peer", claim_of_the_dead, 0, false},
	{"a claim of a dead peer, of 4095", much_of_the_dead, 0, false},
	{"a claim of a later lap", claim_of_a_later_lap, 0, false},
	{"claims of later laps", claims_of_later_laps, 0, false},
	{"a packet being recalled", recall, 0, false},
	{"a recalled packet of no slots", cancel_nothing, 0, false},
	{"a recalled packet of 4095", cancel_much, 0, false},
	{"a packet of no length, of 4095 slots", spoil_much, 0, false},
	{"a ring that looks full", head_at_the_begin, 0, false},
	{"the same while the endpoint sleeps", head_at_the_begin, SLEEPS, false},
	{"a ring that looks far ahead", head_far_ahead, LOSES, false},
	{"a wrong hint", hint_ahead, 0, false},
	{"a sleep that nobody sees", no_sleep, SLEEPS, false},
	{"a peer that is stopped", nothing, 0, true},
};

static void raw(void *arg)
{
	const struct way *way = arg;
	struct frame frame = {.head = HEAD(WIRE_MSG, TAGGED, 0, 0), .tag = 9, .len = 8};
	struct foe f;

	raw_link_enter(&f.link, &server_name, 9);
	if (way->how & SLEEPS)
		usleep(200000);
	if (!raw_ring_claim(&f.link.ring, f.link.sock, f.link.id, CLAIMED, &f.claim))
		fail("no room");
	raw_ring_fill(&f.link.ring, &f.claim, &frame, f.link.id, &f, 8);
	way->act(&f);
	if (way->how & SLEEPS)
		usleep(200000);
	tell(ends[1], "", 1);
	for (;;)
		pause();
}

/* ---- The endpoint receives, and tells how many messages have come, in order. ---- */

/* Reads the next completion; false: there was none when asked to stop. */
static bool next_event(struct node *n, unsigned int how, struct event *e)
{
	struct fi_cq_tagged_entry entry;
	char word;

	if (how & SLEEPS) {
		*e = (struct event){.err = fi_cq_sread(n->cq, &entry, 1, NULL, -1) != 1};
		return true;
	}
	while (!node_poll(n, e))
		if (recv(ends[1], &word, 1, MSG_DONTWAIT) >= 0)
			return false;
	return true;
}

static void server(void *arg)
{
	const struct way *way = arg;
	uint64_t buf, next = 0, count = 0;
	struct event e;
	struct node n;

	node_open(&n, NULL);
	server_name = node_name(&n);
	tell(ends[1], &server_name, sizeof(server_name));
	must(fi_recv(n.ep, &buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	while (next_event(&n, way->how, &e)) {
		if (e.err || buf < next || (buf > next && !(way->how & LOSES)))
			fail("message %llu instead of %llu: %s", (unsigned long long)buf,
			     (unsigned long long)next, fi_strerror(e.err));
		next = buf + 1;
		must(fi_recv(n.ep, &buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
		if (++count % BATCH == 0)
			tell(ends[1], "", 1);
	}
	node_close(&n);
}

/* ---- A real peer ---- */

static void send_batch(struct node *n, uint64_t *number, const char *name)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct event e;

	for (int i = 0; i < BATCH; i++) {
		while (fi_inject(n->ep, number, sizeof(*number), 0) == -FI_EAGAIN) {
			node_poll(n, &e);
			if (now_ms() > end)
				fail("%s: message %llu cannot be sent", name,
				     (unsigned long long)*number);
		}
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

/* Batches come, or, where messages may be lost, come after others have been sent. */
static void send_batches(struct node *n, uint64_t *number, const struct way *way)
{
	uint64_t end = now_ms() + WAIT_MS;

	for (int i = 0; i < BATCHES; i++) {
		while (!come(n, way->how & LOSES ? 100 : WAIT_MS)) {
			if (!(way->how & LOSES) || now_ms() > end)
				fail("%s: batch %d does not come", way->name, i);
			send_batch(n, number, way->name);
		}
		send_batch(n, number, way->name);
	}
}

static void one(const struct way *way)
{
	uint64_t number = 0;
	pid_t pid, peer;
	struct node n;

	wire(ends);
	pid = start("endpoint", server, (void *)(uintptr_t)way);
	hear(ends[0], &server_name, sizeof(server_name));
	node_open(&n, NULL);
	node_insert(&n, &server_name);
	send_batch(&n, &number, "before");
	if (!come(&n, WAIT_MS))
		fail("messages do not come at all");
	peer = start("raw peer", raw, (void *)(uintptr_t)way);
	hear(ends[0], &(char){0}, 1);
	if (way->stopped)
		stop(peer);
	send_batch(&n, &number, way->name);
	if (way->stopped) {
		if (come(&n, 4 * CLAIM_MS))
			fail("the packet of a stopped peer was skipped");
		slay(peer);
	}
	send_batches(&n, &number, way);
	if (!(way->how & SLEEPS)) {
		tell(ends[0], "", 1);
		finish(pid, "endpoint");
	} else {
		slay(pid);
	}
	if (!way->stopped)
		slay(peer);
	node_close(&n);
	close(ends[0]);
	close(ends[1]);
}

int main(int argc, char **argv)
{
	alarm(LIMIT);
	need_memory();
	setenv("FI_WEFT_ACCESS_TIMEOUT", "500", 1);
	setenv("FI_WEFT_RING_SIZE", "65536", 1);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (argc < 2 || (size_t)atoi(argv[1]) == i)
			one(&ways[i]);
	return EXIT_SUCCESS;
}
