/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with two wires between them. Both send messages of all lengths to each other without a pause, every byte and
 * their order checked, while one wire after the other fails in different ways, at random moments, and comes back. No
 * operation may fail. So it is without a key, with one, and encrypted.
 */
#ifndef FAULT_FAILING_WIRES_H
#define FAULT_FAILING_WIRES_H

#define LIMIT wires_limit
static unsigned int wires_limit = 110;

#include "hello.h"
#include "key_file.h"
#include "rng.h"
#include "two_wires.h"

/* How wires fail, by commands of the first host with the number of the wire, and how that is undone. */
struct ways {
	const char *prepare; /* a command of both hosts before all that, or NULL */
	struct {
		const char *breaks, *mends;
	} way[8];
	unsigned int count;
	unsigned int gentle; /* so many of them, the first ones, leave connections as they are */
};

#define DEPTH      4          /* messages under way each way */
#define LEN_MAX    (1u << 20) /* bytes of a message */
#define STUCK      20000      /* ms without a message that are a failure */
#define PAUSE      1000 /* ms between two looks that count at most: the process may have been stopped */
#define LAST       UINT64_MAX   /* sequence number of the last message */
#define HAND_LIMIT 3600         /* LIMIT where the failures are counted by hand */
#define TIMEOUT    "200"        /* ms: FI_WEFT_RAIL_TIMEOUT */
#define USED       (1ull << 20) /* bytes that prove that a wire is in use */

static struct lab lab;
static const struct ways *ways;
static unsigned int failures = 15, seed = 1;
static const char *const levels[] = {NULL, "prove", "encrypt"}; /* FI_WEFT_AUTH */
static const char *level;

struct message {
	uint64_t words[LEN_MAX / 8];
};
static struct message in[DEPTH], out[DEPTH];
static bool busy[DEPTH];        /* of `out` */
static uint64_t awaited[DEPTH]; /* of `in`: messages match receives in the order of both */

static size_t length_of(uint64_t seq, int side)
{
	uint64_t x = (seq * 2 + (uint64_t)side + 1) * 0x9e3779b97f4a7c15u;

	x ^= x >> 29;
	switch (x % 4) {
	case 0:
		return 8 + x / 4 % 16 * 8;
	case 1:
		return 8 + x / 4 % 1024 * 8;
	default:
		return 8 + x / 4 % (LEN_MAX / 8) * 8;
	}
}

static uint64_t word_of(uint64_t seq, int side, size_t i)
{
	return i ? (seq + 1) * 0x9e3779b97f4a7c15u + i * 3 + (uint64_t)side : seq;
}

/* ---- The wires ---- */

static void rest(unsigned int ms)
{
	struct timespec nap = {ms / 1000, ms % 1000 * 1000000L};

	nanosleep(&nap, NULL);
}

static void break_wire(unsigned int wire, unsigned int way)
{
	if (run(ways->way[way].breaks, wire, wire) && way < ways->gentle)
		fail("wire %u does not break", wire);
}

static void mend_wire(unsigned int wire, unsigned int way)
{
	if (run(ways->way[way].mends, wire, wire))
		fail("wire %u stays broken", wire);
}

/*
 * One wire fails, for longer than the timeout or shorter. Now and then the other one does, too, for a moment in which
 * nothing arrives; no connection is reset then.
 */
static void break_wires(void *arg)
{
	struct rng rng = {*(unsigned int *)arg};

	while (run("ss -Htn state established dst 10.99.1.2 | grep -q ."))
		rest(50);
	rest(300); /* both wires have rails by then */
	for (unsigned int i = 0; i < failures; i++) {
		unsigned int wire = rng_below(&rng, 2);
		bool both = rng_one_in(&rng, 8);
		unsigned int way = rng_below(&rng, both ? ways->gentle : ways->count);
		unsigned int second = rng_below(&rng, ways->gentle);

		break_wire(wire, way);
		rest(20 + rng_below(&rng, 400));
		if (both) {
			break_wire(!wire, second);
			rest(20 + rng_below(&rng, 200));
			mend_wire(!wire, second);
		}
		mend_wire(wire, way);
		rest(300 + rng_below(&rng, 300));
	}
}

/* ---- The traffic ---- */

struct traffic {
	struct node node;
	fi_addr_t peer;
	uint64_t sent, received; /* messages begun, messages checked */
	uint64_t posted;         /* receives */
	uint64_t all;            /* messages that will come, once that is known */
	unsigned int sending;    /* under way */
	bool last_sent;
};

static void post_receive(struct traffic *t, unsigned int slot)
{
	awaited[slot] = t->posted++;
	must(fi_recv(t->node.ep, &in[slot], sizeof(in[slot]), NULL, FI_ADDR_UNSPEC, &in[slot]),
	     "fi_recv");
}

static void send_next(struct traffic *t, bool last)
{
	unsigned int slot = t->sent % DEPTH;
	uint64_t seq = last ? LAST : t->sent;
	size_t len = last ? 8 : length_of(seq, lab.which);
	ssize_t ret;

	if (busy[slot])
		return;
	for (size_t i = 0; i < len / 8; i++)
		out[slot].words[i] = word_of(seq, lab.which, i);
	ret = fi_send(t->node.ep, &out[slot], len, NULL, t->peer, &busy[slot]);
	if (ret == -FI_EAGAIN)
		return;
	must(ret, "fi_send");
	busy[slot] = true;
	t->sent++;
	t->sending++;
	t->last_sent = last;
}

static void check(struct traffic *t, const struct event *e)
{
	const struct message *m = e->context;
	unsigned int slot = (unsigned int)(m - in);
	uint64_t seq = awaited[slot];

	if (e->len == 8 && m->words[0] == LAST) {
		t->all = seq;
		return;
	}
	if (e->len != length_of(seq, !lab.which))
		fail("message %llu has %zu bytes", (unsigned long long)seq, e->len);
	for (size_t i = 0; i < e->len / 8; i++)
		if (m->words[i] != word_of(seq, !lab.which, i))
			fail("message %llu of %zu bytes: byte %zu differs", (unsigned long long)seq,
			     e->len, i * 8);
	if (t->all == LAST)
		post_receive(t, slot);
	t->received++;
}

static void on_event(struct traffic *t, const struct event *e)
{
	if (e->err)
		fail("%s %llu ended with %s", e->flags & FI_RECV ? "receive" : "send",
		     (unsigned long long)(e->flags & FI_RECV ? t->received : t->sent),
		     fi_strerror(e->err));
	if (e->flags & FI_RECV)
		check(t, e);
	else
		*(bool *)e->context = false, t->sending--;
}

/* Sends and receives until `over` says that this side is done, and the other one, too. */
static void exchange(struct traffic *t, bool (*over)(void))
{
	uint64_t looked = now_ms(), quiet = 0, ms;
	struct event e;

	for (unsigned int i = 0; i < DEPTH; i++)
		post_receive(t, i);
	while (!t->last_sent || t->received != t->all || t->sending) {
		if (!t->last_sent && t->sending < DEPTH)
			send_next(t, over());
		for (; node_poll(&t->node, &e); quiet = 0)
			on_event(t, &e);
		ms = now_ms() - looked;
		looked += ms;
		quiet += ms < PAUSE ? ms : PAUSE;
		if (quiet > STUCK)
			fail("nothing within %d ms, after %llu messages", STUCK,
			     (unsigned long long)t->received);
	}
}

static pid_t breaker;

static bool breaker_is_done(void)
{
	static bool done;
	int status;

	if (!done && waitpid(breaker, &status, WNOHANG) == breaker) {
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			fail("the wires cannot be broken: %#x", (unsigned int)status);
		done = true;
	}
	return done;
}

/* The first host decides; the second ends some ms after it has heard nothing new. */
static bool other_is_done(void)
{
	char word;

	return recv(lab.end, &word, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
}

static bool first_over(void)
{
	static bool said;

	if (!breaker_is_done())
		return false;
	if (!said)
		tell(lab.end, "", 1);
	said = true;
	return true;
}

static void live(void *arg)
{
	struct traffic t = {.all = LAST};
	unsigned long long count;

	lab = *(struct lab *)arg;
	lab_enter(&lab);
	second_wire(&lab);
	for (unsigned int i = 0; ways->prepare && i < 2; i++)
		if (run(ways->prepare, i))
			fail("wire %u cannot be prepared", i);
	setenv("FI_WEFT_RAILS", "auto", 1);
	setenv("FI_WEFT_RAIL_TIMEOUT", TIMEOUT, 1);
	if (level)
		use_key(level, "a key of a good length", 22);
	if (lab.which == 0)
		breaker = start("breaker", break_wires, &seed);
	node_open(&t.node, NULL);
	t.peer = node_meet(&t.node, lab.end);
	exchange(&t, lab.which ? other_is_done : first_over);
	if (lab.which == 1)
		hear(lab.end, &(char){0}, 1);
	printf("%s, %s: %llu messages sent, %llu received\n", who, level ? level : "no key",
	       (unsigned long long)t.sent, (unsigned long long)t.received);
	for (unsigned int i = 0; i < 2; i++) {
		count = bytes_of(i);
		printf("%s: %llu MiB by eth%u\n", who, count >> 20, i);
		if (count < USED)
			fail("eth%u was hardly used", i);
	}
	tell(lab.end, "", 1);
	hear(lab.end, &(char){0}, 1);
	node_close(&t.node);
}

/* Arguments: how many failures at each level, and a seed. */
static inline void fail_wires(const struct ways *these, int argc, char **argv)
{
	ways = these;
	if (argc > 1) {
		failures = (unsigned int)atoi(argv[1]);
		wires_limit = HAND_LIMIT;
	}
	if (argc > 2)
		seed = (unsigned int)atoi(argv[2]);
	alarm(LIMIT);
	need_lab();
	need_network();
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++, seed++) {
		level = levels[i];
		if (has_library(level))
			two_hosts(live);
		else
			printf("no library for FI_WEFT_AUTH=%s here\n", level);
	}
}

#endif
