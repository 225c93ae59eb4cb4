/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a peer that changes its packets while they are read harms nobody else. A raw peer in
 * shared memory publishes packets; a word of each, such as a count, a length or a key, changes
 * between two reads of the endpoint. The endpoint's own process sees to that: it executes every
 * instruction that touches the page of the packet by itself, and changes the word after the n-th,
 * for each n. The endpoint goes on, and serves a real peer.
 */
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA | FI_ATOMIC)
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <ucontext.h>

#include "raw_peer.h"

#define READS   40 /* of a packet, at most: the word changes after each of them once */
#define POLLS   4  /* until a packet is read */
#define WAIT_MS 3000
#define ROOM    65536
#define KEY     1
static unsigned char source[ROOM];

/* What changes in the packet that is published next. */
struct order {
	size_t page; /* offset of its page in the ring's file */
	size_t slot; /* of the packet, in the page */
	size_t word; /* in the page */
	uint64_t bad;
	int reads; /* before the word changes */
	bool late; /* the receive is posted afterwards */
};

/* ---- Single steps ---- */

#if defined(__x86_64__)
enum { STEPS = 1 };
static void step(void *context, bool on)
{
	ucontext_t *at = context;

	at->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
	at->uc_mcontext.gregs[REG_EFL] |= on ? 0x100 : 0;
}
#else
enum { STEPS = 0 };
static void step(void *context, bool on)
{
	(void)context, (void)on;
}
#endif

static struct order now;
static unsigned char *page; /* of the packet; no access but by steps */
static bool counts;         /* the instruction under way reads the packet */

/* SIGSEGV: the next instruction touches the page. */
static void touch(int signal, siginfo_t *info, void *context)
{
	unsigned char *at = info->si_addr;

	if (signal != SIGSEGV || !page || at < page || at >= page + 4096) {
		static const char text[] = "the endpoint touched memory of nobody\n";

		if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0 || signal)
			_exit(EXIT_FAILURE);
	}
	counts = at >= page + now.slot && at < page + now.slot + 128;
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
	step(context, true);
}

/* SIGTRAP: that instruction is done. */
static void touched(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info;
	if (counts && now.reads-- == 0)
		memcpy(page + now.word, &now.bad, sizeof(now.bad));
	step(context, false);
	mprotect(page, 4096, PROT_NONE);
}

static void catch_steps(void)
{
	struct sigaction sa = {.sa_flags = SA_SIGINFO};

	sa.sa_sigaction = touch;
	sigaction(SIGSEGV, &sa, NULL);
	sa.sa_sigaction = touched;
	sigaction(SIGTRAP, &sa, NULL);
}

/* Returns where this process has its ring mapped. */
static unsigned char *own_ring(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long at, offset;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "memfd:weft-ring") &&
		    sscanf(line, "%lx-%*x %*s %lx", &at, &offset) == 2 && !offset) {
			fclose(maps);
			return (unsigned char *)at;
		}
	fail("this process has no ring");
}

/* ---- The endpoint ---- */

static void post(struct node *n)
{
	static unsigned char buf[ROOM];

	must(fi_trecv(n->ep, buf, ROOM, NULL, FI_ADDR_UNSPEC, 5, UINT64_MAX, buf), "fi_trecv");
}

static void obey(struct node *n, const struct order *o)
{
	if (!o->late)
		post(n);
	now = *o;
	page = own_ring() + o->page;
	mprotect(page, 4096, PROT_NONE);
	for (int i = 0; i < POLLS; i++)
		fi_cq_read(n->cq, NULL, 0);
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
	page = NULL;
	if (o->late)
		post(n);
	tell(ends[1], "", 1);
}

static void server(void *arg)
{
	static unsigned char region[ROOM];
	struct fid_mr *mr;
	struct order o;
	struct event e;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	must(fi_mr_reg(n.domain, region, sizeof(region), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY,
		       0, &mr, NULL),
	     "fi_mr_reg");
	server_name = node_name(&n);
	tell(ends[1], &server_name, sizeof(server_name));
	catch_steps();
	for (;;) {
		if (recv(ends[1], &o, sizeof(o), MSG_DONTWAIT) == sizeof(o))
			obey(&n, &o);
		else if (!node_poll(&n, &e))
			usleep(50);
	}
}

/* ---- The raw peer ---- */

#define RTS(len)                                                                                   \
	{                                                                                          \
		len, 1, 0, 100, 0                                                                  \
	}
#define SUM  (FI_SUM | FI_UINT64 << 8 | UINT64_C(8) << 32)
#define HUGE (UINT64_C(1) << 40)

static const struct flip {
	const char *name;
	uint64_t head;
	uint64_t payload[10]; /* an RTS gets its address later */
	size_t len;           /* of the payload */
	size_t at;            /* offset of the word in the packet */
	uint64_t bad;
	bool late;
} flips[] = {
	{"count of an RTS", HEAD(WIRE_RTS, TAGGED, 0, 1), RTS(100), 40, 40, 4000, false},
	{"count of a kept RTS", HEAD(WIRE_RTS, TAGGED, 0, 1), RTS(100), 40, 40, 4000, true},
	{"length of an RTS", HEAD(WIRE_RTS, TAGGED, 0, 1), RTS(100), 40, 32, HUGE, false},
	{"length of a kept RTS", HEAD(WIRE_RTS, TAGGED, 0, 1), RTS(100), 40, 32, HUGE, true},
	{"length of a segment", HEAD(WIRE_RTS, TAGGED, 0, 1), RTS(100), 40, 56, HUGE, false},
	{"count of a write", HEAD(WIRE_PUT, LONG, 0, 1), {0, 1, 0, 8, KEY, 1}, 48, 40, 4000, false},
	{"length of a write",
	 HEAD(WIRE_PUT, LONG, 0, 1),
	 {0, 1, 0, 8, KEY, 1},
	 48,
	 56,
	 UINT64_MAX - 4,
	 false},
	{"count of an atomic",
	 HEAD(WIRE_AMO, LONG, 0, 1),
	 {0, 1, 0, 8, KEY, SUM, 1},
	 56,
	 40,
	 3,
	 false},
	{"address of a matched atomic",
	 HEAD(WIRE_AMO, LONG | MATCH, 0, 1),
	 {0, 1, 0, 8, 5, SUM, 1},
	 56,
	 48,
	 HUGE,
	 false},
	{"length of a kept atomic",
	 HEAD(WIRE_AMO, LONG | MATCH, 0, 1),
	 {0, 1, 0, 8, 5, SUM, 1},
	 56,
	 56,
	 4096,
	 true},
	{"length of a packet",
	 HEAD(WIRE_MSG, TAGGED, 0, 0),
	 {1},
	 8,
	 8,
	 UINT64_C(0xfffffff0) << 32 | 1,
	 false},
	{"kind of a packet",
	 HEAD(WIRE_GROUP, 0, 0, 0),
	 {1},
	 40,
	 16,
	 HEAD(WIRE_RTS, TAGGED, 0, 1),
	 false},
};

/* Publishes one packet, whose word changes after so many reads. */
static void one_packet(struct raw_link *l, const struct flip *f, int reads)
{
	struct frame frame = {.head = f->head, .tag = 5, .len = (uint32_t)f->len};
	uint32_t slots = raw_ring_slots(&frame, f->len);
	uint64_t end = now_ms() + WAIT_MS;
	uint64_t payload[10];
	struct order o = {.bad = f->bad, .reads = reads, .late = f->late};
	struct raw_claim c;
	size_t at;
	char word;

	memcpy(payload, f->payload, sizeof(payload));
	if ((f->head & 0xff) == WIRE_RTS)
		payload[2] = (uintptr_t)source;
	while (!raw_ring_claim(&l->ring, l->sock, l->id, slots, &c))
		if (now_ms() > end)
			fail("%s: the endpoint reads no more packets", f->name);
	at = (size_t)((char *)raw_ring_slot(&l->ring, c.pos) - (char *)l->ring.page);
	if (at % 4096 > 4096 - 128)
		o.reads = READS * READS; /* it would change on the next page */
	o.page = at & ~(size_t)4095;
	o.slot = at & 4095;
	o.word = o.slot + f->at;
	raw_ring_fill(&l->ring, &c, &frame, l->id, payload, f->len);
	raw_ring_publish(&l->ring, &c, 0);
	if (send(ends[0], &o, sizeof(o), MSG_NOSIGNAL) != sizeof(o) ||
	    recv(ends[0], &word, 1, 0) != 1)
		fail("%s: the endpoint ended when it changed after %d reads", f->name, reads);
	raw_link_hear(l);
}

/* Checks that a real peer can still connect and send. */
static void come_in(const char *when)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct node n;
	fi_addr_t to;

	node_open(&n, NULL);
	to = node_insert(&n, &server_name);
	while (fi_send(n.ep, "", 1, NULL, to, NULL) == -FI_EAGAIN)
		if (now_ms() > end)
			fail("%s: a real peer is kept out", when);
	if (node_wait(&n, WAIT_MS, when).err)
		fail("%s: a real peer is refused", when);
	node_close(&n);
}

static void one(const struct flip *f)
{
	struct raw_link l;
	pid_t pid;

	wire(ends);
	pid = start(f->name, server, NULL);
	close(ends[1]);
	hear(ends[0], &server_name, sizeof(server_name));
	raw_link_enter(&l, &server_name, 7);
	for (int reads = 0; reads < READS; reads++)
		one_packet(&l, f, reads);
	come_in(f->name);
	slay(pid);
	raw_link_close(&l, false);
	close(ends[0]);
}

int main(void)
{
	alarm(LIMIT);
	need_memory();
	if (!STEPS) {
		printf("no single steps on this machine\n");
		return 77;
	}
	for (size_t i = 0; i < sizeof(flips) / sizeof(flips[0]); i++)
		one(&flips[i]);
	return EXIT_SUCCESS;
}
