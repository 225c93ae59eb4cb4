/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * With manual progress an application that finds entries at each call still serves everybody who waits for it: peers'
 * messages and atomics, newcomers, its own first message. All endpoints are in one process, so what is counted are
 * calls; nothing depends on who has a core.
 */
#include <rdma/fi_atomic.h>

#include "obj.h"
#include "lib/rma.h"

#define LOOK     16   /* calls that find entries, of which one has to make progress */
#define NEWS     64   /* calls that take a message from memory, of which one has to do all */
#define STEPS    16   /* progress calls in which a newcomer is connected and served */
#define STORE    40   /* completions that are left unread */
#define PAUSE_US 5000 /* sockets are looked at once in a tick of the clock */

struct node {
	struct obj o;
	struct fid_mr *mr;
	struct fid_wait *set;
	struct fid_poll *poll;
	struct rma_key key;
	volatile uint64_t memory, inbox;
};

/* How the application reads. The entries may be fewer than it asks for. */
static void read_one(struct node *n)
{
	struct fi_cq_tagged_entry e;

	CHECK(fi_cq_read(n->o.cq, &e, 1) == 1);
}

static void read_eight(struct node *n)
{
	struct fi_cq_tagged_entry e[8];

	CHECK(fi_cq_read(n->o.cq, e, 8) > 0);
}

static void read_from(struct node *n)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t src;

	CHECK(fi_cq_readfrom(n->o.cq, &e, 1, &src) == 1);
}

static void sread_one(struct node *n)
{
	struct fi_cq_tagged_entry e;

	CHECK(fi_cq_sread(n->o.cq, &e, 1, NULL, 0) == 1);
}

static void poll_it(struct node *n)
{
	void *context;

	CHECK_EQ(fi_poll(n->poll, &context, 1), 1);
}

static void try_wait(struct node *n)
{
	struct fid *fid = &n->o.cq->fid;

	CHECK_EQ(fi_trywait(n->o.fabric, &fid, 1), -FI_EAGAIN);
}

static void wait_set(struct node *n)
{
	CHECK_EQ(fi_wait(n->set, 0), 0);
}

enum wait_kind { WAIT_NOT, WAIT_QUEUE, WAIT_SET };

static const struct reader {
	const char *name;
	void (*read)(struct node *n);
	enum wait_kind wait;
	bool takes_one; /* of the queue, and no more */
} readers[] = {
	{"fi_cq_read of one", read_one, WAIT_NOT, true},
	{"fi_cq_read of eight", read_eight, WAIT_NOT, false},
	{"fi_cq_readfrom", read_from, WAIT_NOT, true},
	{"fi_cq_sread", sread_one, WAIT_QUEUE, true},
	{"fi_poll", poll_it, WAIT_NOT, false},
	{"fi_trywait", try_wait, WAIT_QUEUE, false},
	{"fi_wait", wait_set, WAIT_SET, false},
};

static struct fid_cq *queue_open(struct node *n, enum wait_kind wait)
{
	struct fi_wait_attr set = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_SET};
	struct fid_cq *cq;

	if (wait != WAIT_SET)
		return obj_cq(&n->o, wait == WAIT_NOT ? FI_WAIT_NONE : FI_WAIT_UNSPEC);
	OK(fi_wait_open(n->o.fabric, &set, &n->set));
	attr.wait_set = n->set;
	OK(fi_cq_open(n->o.domain, &attr, &cq, NULL));
	return cq;
}

static void node_open(struct node *n, enum wait_kind wait)
{
	static uint64_t key;

	*n = (struct node){.memory = 0};
	n->o.hints = obj_hints(FI_MSG | FI_RMA | FI_ATOMIC);
	n->o.hints->domain_attr->mr_mode = RMA_PROVIDED;
	n->o.hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	n->o.hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	obj_domain(&n->o);
	n->o.cq = queue_open(n, wait);
	obj_open(&n->o);
	OK(fi_mr_reg(n->o.domain, (void *)&n->memory, 8, RMA_REMOTE, 0, ++key, 0, &n->mr, NULL));
	n->key.base =
		rma_mode(&(struct rma){.o = n->o}, FI_MR_VIRT_ADDR) ? (uintptr_t)&n->memory : 0;
	n->key.key = fi_mr_key(n->mr);
	if (wait == WAIT_NOT) {
		OK(fi_poll_open(n->o.domain, &(struct fi_poll_attr){0}, &n->poll));
		OK(fi_poll_add(n->poll, &n->o.cq->fid, 0));
	}
}

static void node_close(struct node *n)
{
	if (n->poll) {
		OK(fi_poll_del(n->poll, &n->o.cq->fid, 0));
		CLOSE(n->poll);
	}
	CLOSE(n->mr);
	CLOSE(n->o.ep);
	n->o.ep = NULL;
	CLOSE(n->o.cq);
	n->o.cq = NULL;
	if (n->set)
		CLOSE(n->set);
	obj_close(&n->o);
}

/* Progress, and nothing else. */
static void drive(struct node *n)
{
	CHECK_EQ(fi_cq_read(n->o.cq, NULL, 0), -FI_EAGAIN);
}

static void receive(struct node *n)
{
	OK(fi_recv(n->o.ep, (void *)&n->inbox, 8, NULL, FI_ADDR_UNSPEC, n));
}

/* Sends while both make progress. */
static void send_to(struct node *from, struct node *to, fi_addr_t addr, uint64_t word)
{
	while (fi_inject(from->o.ep, &word, 8, addr) == -FI_EAGAIN) {
		drive(from);
		drive(to);
	}
}

/* Sends and receives one message, so both know each other; the receive's completion is taken. */
static void connect_to(struct node *from, struct node *to, fi_addr_t addr)
{
	receive(to);
	send_to(from, to, addr, 1);
	OBJ_UNTIL(to->inbox, drive(from); drive(to));
	obj_done(to->o.cq, to);
	to->inbox = 0;
}

/* A greedy endpoint `me` sends to `sink`; `third` wants something of it. */
struct scene {
	const struct reader *reader;
	struct node me, sink, third;
	fi_addr_t sink_of_me, me_of_third, me_of_sink;
	bool fed; /* what is read are messages of `sink`, not what was sent to it */
	unsigned int limit;
};

static void scene_open(struct scene *s)
{
	node_open(&s->me, s->reader->wait);
	node_open(&s->sink, WAIT_NOT);
	node_open(&s->third, WAIT_NOT);
	s->sink_of_me = obj_insert_ep(s->me.o.av, s->sink.o.ep);
	s->me_of_third = obj_insert_ep(s->third.o.av, s->me.o.ep);
	s->me_of_sink = obj_insert_ep(s->sink.o.av, s->me.o.ep);
	connect_to(&s->me, &s->sink, s->sink_of_me);
	connect_to(&s->sink, &s->me, s->me_of_sink);
}

static void scene_close(struct scene *s)
{
	node_close(&s->third);
	node_close(&s->sink);
	node_close(&s->me);
}

/* Makes one more entry for `me` to find. */
static void feed(struct scene *s)
{
	uint64_t word = 0;
	ssize_t ret;

	if (s->fed) {
		receive(&s->me);
		send_to(&s->sink, &s->me, s->me_of_sink, word);
		drive(&s->sink); /* else it may wait for others to go with it */
		return;
	}
	while ((ret = fi_send(s->me.o.ep, &word, 8, NULL, s->sink_of_me, NULL)) == -FI_EAGAIN)
		drive(&s->sink);
	OK(ret);
}

/*
 * Reads until `word` of `me` is written, by what `third` has posted. Or by what it posts by this call: then it is a
 * newcomer, which has to make progress, too.
 */
static void await(struct scene *s, volatile uint64_t *word, ssize_t (*post)(struct scene *s))
{
	ssize_t ret = -FI_EAGAIN;
	unsigned int steps = 0;

	for (; !*word && steps < s->limit; steps++) {
		feed(s);
		s->reader->read(&s->me);
		if (!post)
			continue;
		if (ret == -FI_EAGAIN)
			ret = post(s);
		drive(&s->third);
		if (steps % LOOK == 0)
			obj_sleep_us(PAUSE_US);
	}
	if (!*word)
		fprintf(stderr, "%s found entries %u times\n", s->reader->name, steps);
	CHECK(*word);
}

/* Leaves completions unread. */
static void store(struct scene *s)
{
	for (unsigned int i = 0; i < STORE; i++)
		feed(s);
	drive(&s->me);
}

static void with_each(void (*run)(struct scene *s))
{
	for (unsigned int i = 0; i < API_COUNT(readers); i++) {
		struct scene s = {.reader = &readers[i]};

		scene_open(&s);
		run(&s);
		scene_close(&s);
	}
}

static void hear(struct scene *s)
{
	connect_to(&s->third, &s->me, s->me_of_third);
	receive(&s->me);
	store(s);
	send_to(&s->third, &s->me, s->me_of_third, 1);
	drive(&s->third);
	s->limit = 2 * LOOK;
	await(s, &s->me.inbox, NULL);
}

static void message(struct api *a)
{
	(void)a;
	with_each(hear);
}

static ssize_t fetch(struct scene *s)
{
	static uint64_t one = 1, old;

	return fi_fetch_atomic(s->third.o.ep, &one, 1, NULL, &old, NULL, s->me_of_third,
			       s->me.key.base, s->me.key.key, FI_UINT64, FI_SUM, NULL);
}

static void serve(struct scene *s)
{
	connect_to(&s->third, &s->me, s->me_of_third);
	store(s);
	OK(fetch(s));
	drive(&s->third);
	s->limit = 2 * LOOK;
	await(s, &s->me.memory, NULL);
	obj_next(s->third.o.cq, NULL);
}

static void atomic(struct api *a)
{
	(void)a;
	with_each(serve);
}

static ssize_t call(struct scene *s)
{
	static uint64_t word = 1;

	return fi_send(s->third.o.ep, &word, 8, NULL, s->me_of_third, NULL);
}

static void welcome(struct scene *s)
{
	receive(&s->me);
	store(s);
	s->limit = STEPS * LOOK;
	await(s, &s->me.inbox, call);
}

static void newcomer(struct api *a)
{
	(void)a;
	with_each(welcome);
}

/* The same while messages of another peer come: what is read past the queue, or has just come. */
static void served_beside(struct api *a)
{
	(void)a;
	for (unsigned int i = 0; i < API_COUNT(readers); i++) {
		struct scene s = {.reader = &readers[i], .fed = true, .limit = STEPS * NEWS};

		if (!readers[i].takes_one)
			continue;
		scene_open(&s);
		await(&s, &s.me.memory, fetch);
		scene_close(&s);
	}
}

/* ---- Two greet each other, and each reads no more when it has heard the other ---- */

struct greeter {
	struct node n;
	fi_addr_t other;
	bool sent;
};

static void greet(struct greeter *g)
{
	uint64_t word = 1;
	ssize_t ret;

	if (g->sent)
		return;
	ret = fi_send(g->n.o.ep, &word, 8, NULL, g->other, NULL);
	if (ret != -FI_EAGAIN)
		OK(ret);
	g->sent = ret == 0;
}

static void step(struct greeter *g)
{
	struct fi_cq_tagged_entry e;

	greet(g);
	if (!g->n.inbox)
		fi_cq_read(g->n.o.cq, &e, 1);
}

/* `ahead`: calls of the first one before the other one's. */
static void greet_each_other(unsigned int ahead)
{
	const unsigned int limit = NEWS + STEPS;
	struct greeter g[2] = {{.sent = false}, {.sent = false}};
	unsigned int steps = 0;

	for (int i = 0; i < 2; i++)
		node_open(&g[i].n, WAIT_NOT);
	for (int i = 0; i < 2; i++) {
		g[i].other = obj_insert_ep(g[i].n.o.av, g[!i].n.o.ep);
		receive(&g[i].n);
	}
	for (unsigned int i = 0; i < ahead; i++)
		step(&g[0]);
	for (; steps < limit && !(g[0].n.inbox && g[1].n.inbox); steps++) {
		step(&g[0]);
		step(&g[1]);
		if (steps % LOOK == 0)
			obj_sleep_us(PAUSE_US);
	}
	if (steps == limit)
		fprintf(stderr, "ahead by %u\n", ahead);
	CHECK(g[0].n.inbox);
	CHECK(g[1].n.inbox);
	for (int i = 0; i < 2; i++)
		node_close(&g[i].n);
}

static void greeting(struct api *a)
{
	(void)a;
	for (unsigned int ahead = 0; ahead < 70; ahead += 3)
		greet_each_other(ahead);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"message", message, 1, {0}},   {"atomic", atomic, 1, {0}},
		{"newcomer", newcomer, 1, {0}}, {"served-beside", served_beside, 1, {0}},
		{"greeting", greeting, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
