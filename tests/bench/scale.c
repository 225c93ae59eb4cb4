/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long collectives would take in groups that no machine here can hold: all members run the
 * library's own plans (coll/plan/plan.h) in one process, in simulated time.
 *
 *     scale ALPHA BETA ALPHA BETA GAMMA     of shared memory, of the network, of reducing
 *
 * Reads lines "barrier|allreduce|broadcast SIZE HOSTS EACH levels|flat|dealt": bytes of the vector
 * of doubles, hosts, members a host. levels: members know who shares a host; flat: they do not, but
 * those of a host have neighbouring ranks; dealt: they do not, and ranks go round the hosts. Prints
 * for each "US ROUNDS LOCAL_MESSAGES LOCAL_BYTES NET_MESSAGES NET_BYTES": ROUNDS are those of the member
 * that has the most, messages and bytes those of all members.
 *
 * The model: a message of n bytes costs ALPHA us, half of it the sender's time and half of it the
 * receiver's, and n * BETA us on the way, in which its sender can send nothing else by that kind of
 * link, and its receiver receive nothing else. Over the network that is so for all members of a
 * host, which share its link. Reducing or copying n bytes takes n * GAMMA us. Each member has a
 * processor.
 */
#include <rdma/fi_collective.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/plan/plan.h"

enum { WIDTH = sizeof(double) };

struct link {
	double alpha, beta; /* us, us per byte */
	double *out, *in;   /* by owner of a port: when it is free */
	size_t messages, bytes;
};

/* A message that its receiver has not taken yet. */
struct message {
	struct message *next;
	uint32_t from;
	double came, alpha;
};

struct member {
	struct plan plan;
	struct layout layout;
	struct plan_round round;
	size_t next;              /* index of the next round */
	unsigned int received;    /* of the current round's messages, sends included */
	double time;              /* its processor is busy until then */
	double sent;              /* the last send of the round is done */
	bool waits;               /* for messages of the round */
	struct message *messages; /* in the order they were sent */
};

static struct link local, net;
static double gamma_us; /* per byte */
static struct member *member;
static uint32_t size, hosts, each;
static bool dealt;
static uint32_t *heap, heaped; /* members that can go on, the earliest first */

static void *reserve(size_t count, size_t len)
{
	void *memory = calloc(count, len);

	if (!memory) {
		fputs("scale: no memory\n", stderr);
		exit(EXIT_FAILURE);
	}
	return memory;
}

static double later(double a, double b)
{
	return a > b ? a : b;
}

static uint32_t host(uint32_t rank)
{
	return dealt ? rank % hosts : rank / each;
}

/* ---- Members that can go on ------------------------------------------------------------------ */

static bool earlier(uint32_t a, uint32_t b)
{
	return member[heap[a]].time < member[heap[b]].time;
}

static void swap(uint32_t a, uint32_t b)
{
	uint32_t kept = heap[a];

	heap[a] = heap[b];
	heap[b] = kept;
}

static void push(uint32_t rank)
{
	uint32_t at = heaped++;

	for (heap[at] = rank; at && earlier(at, (at - 1) / 2); at = (at - 1) / 2)
		swap(at, (at - 1) / 2);
}

static uint32_t pop(void)
{
	uint32_t first = heap[0], at = 0, child;

	heap[0] = heap[--heaped];
	while ((child = 2 * at + 1) < heaped) {
		child += child + 1 < heaped && earlier(child + 1, child);
		if (!earlier(child, at))
			break;
		swap(at, child);
		at = child;
	}
	return first;
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Takes the messages of the round that have been sent. Returns whether all have. */
static bool receive(struct member *m)
{
	for (; m->received < m->round.messages; m->received++) {
		struct message **at = &m->messages, *taken;

		while (*at && (*at)->from != m->round.message[m->received].peer)
			at = &(*at)->next;
		taken = *at;
		if (!taken)
			return false;
		*at = taken->next;
		m->time = later(m->time, taken->came) + taken->alpha / 2;
		free(taken);
	}
	return true;
}

static void send(uint32_t rank, const struct plan_message *p)
{
	bool near = host(rank) == host(p->peer);
	struct link *link = near ? &local : &net;
	uint32_t from = near ? rank : host(rank), to = near ? p->peer : host(p->peer);
	struct member *m = &member[rank], *peer = &member[p->peer];
	struct message *message = reserve(1, sizeof(*message)), **last = &peer->messages;
	double took = (double)p->count * WIDTH * link->beta, begin;

	m->time += link->alpha / 2;
	begin = later(m->time, link->out[from]);
	link->out[from] = begin + took;
	link->in[to] = later(begin, link->in[to]) + took;
	m->sent = later(m->sent, link->out[from]);
	link->messages++;
	link->bytes += p->count * WIDTH;
	*message = (struct message){NULL, rank, link->in[to], link->alpha};
	while (*last)
		last = &(*last)->next;
	*last = message;
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

static void compute(struct member *m)
{
	for (unsigned int i = 0; i < m->round.locals; i++)
		m->time += (double)(m->round.local[i].count * m->round.local[i].blocks) * WIDTH *
			   gamma_us;
}

/* The member has sent its messages of the round: can it go on? */
static void go_on(uint32_t rank)
{
	member[rank].waits = !receive(&member[rank]);
	if (!member[rank].waits)
		push(rank);
}

/* Ends a member's round and begins the next one. */
static void step(uint32_t rank)
{
	struct member *m = &member[rank];

	if (m->next) {
		m->time = later(m->time, m->sent);
		compute(m);
	}
	if (!plan_round(&m->plan, m->next, &m->round))
		return;
	m->next++;
	for (unsigned int i = 0; i < m->round.sends; i++)
		send(rank, &m->round.message[i]);
	m->received = m->round.sends;
	go_on(rank);
	for (unsigned int i = 0; i < m->round.sends; i++)
		if (member[m->round.message[i].peer].waits)
			go_on(m->round.message[i].peer);
}

static uint64_t host_of(void *arg, uint32_t rank)
{
	(void)arg;
	return host(rank);
}

static void begin(struct plan_shape shape, const struct layout *layout)
{
	for (uint32_t i = 0; i < size; i++) {
		struct member *m = &member[i];

		if (layout) {
			m->layout = *layout;
			m->layout.mine = host(i);
			shape.layout = &m->layout;
		}
		shape.rank = i;
		plan_make(&m->plan, &shape);
		push(i);
	}
}

static void simulate(const struct plan_shape *shape, const struct layout *layout)
{
	struct link *links[] = {&local, &net};
	double end = 0;
	size_t rounds = 0;

	member = reserve(size, sizeof(*member));
	heap = reserve(size, sizeof(*heap));
	for (int i = 0; i < 2; i++) {
		links[i]->out = reserve(size, sizeof(double));
		links[i]->in = reserve(size, sizeof(double));
		links[i]->messages = links[i]->bytes = 0;
	}
	begin(*shape, layout);
	while (heaped)
		step(pop());
	for (uint32_t i = 0; i < size; i++) {
		end = later(end, member[i].time);
		rounds = member[i].next > rounds ? member[i].next : rounds;
	}
	printf("%.3f %zu %zu %zu %zu %zu\n", end, rounds, local.messages, local.bytes, net.messages,
	       net.bytes);
	for (int i = 0; i < 2; i++) {
		free(links[i]->out);
		free(links[i]->in);
	}
	free(heap);
	free(member);
}

static void one(const char *what, size_t bytes, bool levels)
{
	struct plan_shape shape = {.size = size, .count = bytes / WIDTH, .width = WIDTH};
	struct layout *layout = levels ? layout_make(0, size, host_of, NULL) : NULL;

	shape.kind = !strcmp(what, "barrier")     ? FI_BARRIER
		     : !strcmp(what, "allreduce") ? FI_ALLREDUCE
						  : FI_BROADCAST;
	shape.cpus = each;
	shape.shares = true;
	if (shape.kind == FI_BARRIER)
		shape.count = 0;
	simulate(&shape, layout);
	layout_free(layout);
}

int main(int argc, char **argv)
{
	char what[16], how[16];
	size_t bytes;

	if (argc != 6) {
		fputs("Usage: scale ALPHA BETA ALPHA BETA GAMMA\n", stderr);
		return EXIT_FAILURE;
	}
	local = (struct link){.alpha = atof(argv[1]), .beta = atof(argv[2])};
	net = (struct link){.alpha = atof(argv[3]), .beta = atof(argv[4])};
	gamma_us = atof(argv[5]);
	while (scanf("%15s %zu %u %u %15s", what, &bytes, &hosts, &each, how) == 5) {
		size = hosts * each;
		dealt = !strcmp(how, "dealt");
		one(what, bytes, !strcmp(how, "levels"));
		fflush(stdout);
	}
	return EXIT_SUCCESS;
}
