/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a restarted peer is reached. A receiver is killed while messages are sent to it, and
 * another process takes its address. The sender reaches the new process by the same fi_addr_t;
 * messages sent to the dead process never reach the new one.
 */
#include <poll.h>

#include "node.h"

#define GENERATIONS 40
#define ENOUGH      20     /* messages that each receiver has to get */
#define SLOTS       16     /* sends under way, at most */
#define LONG        300001 /* bytes of every other message */
#define SMALL       1000
#define DEEP        32 /* receives posted */
#define WAIT_MS     2000

struct stamp {
	uint32_t generation, number;
};

/* ---- Receivers: each takes the address of its predecessor ---- */

struct birth {
	uint32_t generation;
	struct name name; /* empty for the first */
	struct name sender;
	int end;
};

static void post(struct node *n, unsigned char *buf)
{
	must(fi_recv(n->ep, buf, LONG, NULL, FI_ADDR_UNSPEC, buf), "fi_recv");
}

/* Opens the node with the predecessor's address, set by fi_setname or src_addr in turn. */
static void be_born(struct node *n, const struct birth *b)
{
	bool named = b->name.len != 0;
	struct name is;

	node_create(n, named && b->generation % 2 ? &b->name : NULL);
	if (named && b->generation % 2 == 0)
		must(fi_setname(&n->ep->fid, (void *)(uintptr_t)b->name.bytes, b->name.len),
		     "fi_setname");
	node_bind(n);
	is = node_name(n);
	if (named && (is.len != b->name.len || memcmp(is.bytes, b->name.bytes, is.len)))
		fail("asked for the address of the dead one and got another");
}

static void check(const unsigned char *buf, size_t len, uint32_t generation)
{
	struct stamp stamp;

	memcpy(&stamp, buf, sizeof(stamp));
	if (stamp.generation != generation)
		fail("got message %u of generation %u, and is generation %u", stamp.number,
		     stamp.generation, generation);
	for (size_t i = sizeof(stamp); i < len; i++)
		if (buf[i] != (unsigned char)(generation * 7))
			fail("byte %zu of message %u (%zu bytes) is %#x", i, stamp.number, len,
			     buf[i]);
}

/* False: there is no connection yet. */
static bool greet(struct node *n, fi_addr_t to)
{
	static unsigned char hello[8];
	ssize_t ret = fi_send(n->ep, hello, 8, NULL, to, NULL);

	if (ret == -FI_EAGAIN)
		return false;
	must(ret, "fi_send");
	return true;
}

static void receiver(void *arg)
{
	static unsigned char bufs[DEEP][LONG];
	const struct birth *b = arg;
	struct name is;
	struct node n;
	bool greets = b->generation % 3 == 2;
	int got = 0;

	be_born(&n, b);
	for (int i = 0; i < DEEP; i++)
		post(&n, bufs[i]);
	/* Sometimes the new receiver sends first, before the sender knows that the old one died. */
	if (greets)
		greets = !greet(&n, node_insert(&n, &b->sender));
	is = node_name(&n);
	tell(b->end, &is, sizeof(is));
	for (;;) {
		struct event e = node_wait(&n, 10 * WAIT_MS, "a message for a receiver");

		if (e.flags & FI_SEND)
			continue;
		if (e.err)
			fail("a receive ended with %s", fi_strerror(e.err));
		check(e.context, e.len, b->generation);
		post(&n, e.context);
		if (greets)
			greets = !greet(&n, node_insert(&n, &b->sender));
		if (++got == ENOUGH)
			tell(b->end, "", 1);
	}
}

/* ---- The sender ---- */

enum order { ORDER_SEND, ORDER_PAUSE, ORDER_END };

struct word {
	enum order order;
	uint32_t generation;
	bool look; /* PAUSE: go on reading completions. SEND: the sender did so before */
};

struct sender {
	struct node n;
	fi_addr_t to;
	int end, fds;
	uint32_t number, generation;
	unsigned char bufs[SLOTS][LONG];
	uint32_t of[SLOTS]; /* generation + 1 of the send in this slot; 0: free */
	unsigned char inbox[8];
};

static void reap(struct sender *s)
{
	struct event e;

	while (node_poll(&s->n, &e)) {
		if (e.context == s->inbox) {
			must(fi_recv(s->n.ep, s->inbox, 8, NULL, FI_ADDR_UNSPEC, s->inbox),
			     "fi_recv");
			continue;
		}
		*(uint32_t *)e.context = 0;
	}
}

static void send_more(struct sender *s)
{
	struct stamp stamp = {s->generation, s->number};
	unsigned int i;
	ssize_t ret;

	for (i = 0; i < SLOTS && s->of[i]; i++)
		;
	if (i == SLOTS)
		return;
	memset(s->bufs[i], (int)(s->generation * 7 & 0xff), LONG);
	memcpy(s->bufs[i], &stamp, sizeof(stamp));
	ret = fi_send(s->n.ep, s->bufs[i], s->number % 2 ? LONG : SMALL, NULL, s->to, &s->of[i]);
	if (ret == -FI_EAGAIN)
		return;
	must(ret, "fi_send");
	s->of[i] = s->generation + 1;
	s->number++;
}

/* Returns the number of sends of generations before `first` that have not ended. */
static int pending(const struct sender *s, uint32_t first)
{
	int n = 0;

	for (unsigned int i = 0; i < SLOTS; i++)
		n += s->of[i] && s->of[i] - 1 < first;
	return n;
}

static void no_pending(struct sender *s, uint32_t first)
{
	uint64_t end = now_ms() + DEAD_MS;

	while (pending(s, first) && now_ms() < end)
		reap(s);
	if (pending(s, first))
		fail("%d sends to the dead never ended", pending(s, first));
}

/* Obeys an order; checks that sends to earlier generations end, and that no descriptor leaks. */
static void obey(struct sender *s, const struct word *w)
{
	if (w->order == ORDER_PAUSE || w->look)
		no_pending(s, w->generation);
	if (w->order == ORDER_PAUSE && w->generation == 1)
		s->fds = count_fds(getpid());
	if (w->order == ORDER_PAUSE && w->generation > 1 && count_fds(getpid()) != s->fds)
		fail("%d descriptors have become %d", s->fds, count_fds(getpid()));
	s->generation = w->generation;
	if (w->order == ORDER_PAUSE)
		tell(s->end, "", 1);
}

static void sender(void *arg)
{
	static struct sender s;
	struct word w = {.order = ORDER_PAUSE};
	struct name name;

	s.end = *(int *)arg;
	node_open(&s.n, NULL);
	name = node_name(&s.n);
	tell(s.end, &name, sizeof(name));
	hear(s.end, &name, sizeof(name));
	s.to = node_insert(&s.n, &name);
	must(fi_recv(s.n.ep, s.inbox, 8, NULL, FI_ADDR_UNSPEC, s.inbox), "fi_recv");
	while (w.order != ORDER_END) {
		bool blind = w.order == ORDER_PAUSE && !w.look;

		if (recv(s.end, &w, sizeof(w), blind ? 0 : MSG_DONTWAIT) > 0)
			obey(&s, &w);
		if (w.order == ORDER_SEND)
			send_more(&s);
		reap(&s);
	}
	no_pending(&s, UINT32_MAX);
	node_close(&s.n);
}

/* ---- Generations ---- */

static void content(int end, uint32_t generation)
{
	struct pollfd p = {.fd = end, .events = POLLIN};
	char word;

	if (poll(&p, 1, WAIT_MS) != 1)
		fail("generation %u was not reached within %d ms", generation, WAIT_MS);
	hear(end, &word, 1);
}

static void halt(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		fail("a receiver ended with status %#x", (unsigned int)status);
}

/* Runs one generation: start, ENOUGH messages, stopped while more are sent, killed. */
static void live(uint32_t generation, struct birth *b, int sender_end, bool look)
{
	struct word send = {ORDER_SEND, generation, generation && !look},
		    stop = {ORDER_PAUSE, generation, look};
	int ends[2];
	pid_t pid;

	wire(ends);
	b->generation = generation;
	b->end = ends[1];
	pid = start("receiver", receiver, b);
	close(ends[1]);
	hear(ends[0], &b->name, sizeof(b->name));
	if (generation == 0)
		tell(sender_end, &b->name, sizeof(b->name));
	tell(sender_end, &send, sizeof(send));
	content(ends[0], generation);
	halt(pid);
	usleep(1000 + generation % 5 * 3000);
	tell(sender_end, &stop, sizeof(stop));
	hear(sender_end, &(char){0}, 1);
	slay(pid);
	close(ends[0]);
}

int main(void)
{
	struct word end = {.order = ORDER_END, .generation = UINT32_MAX};
	struct birth b = {.generation = 0};
	int ends[2];
	pid_t pid;

	alarm(LIMIT);
	need_provider();
	wire(ends);
	pid = start("sender", sender, &ends[1]);
	close(ends[1]);
	hear(ends[0], &b.sender, sizeof(b.sender));
	for (uint32_t g = 0; g < GENERATIONS; g++)
		live(g, &b, ends[0], g % 2);
	tell(ends[0], &end, sizeof(end));
	finish(pid, "sender");
	return EXIT_SUCCESS;
}
