/* SPDX-License-Identifier: BSD-2-Clause */
/* Two processes with one endpoint each, at the given interfaces, that send to each other. */
#ifndef LAB_RDM_PAIR_H
#define LAB_RDM_PAIR_H

#ifndef LIMIT
#define LIMIT 100
#endif
#include "../fault/node.h"

#include <rdma/fi_domain.h>

#define PATIENCE_MS 30000

struct side {
	const char *iface;
	int end; /* socket to the other process */
	struct node n;
	fi_addr_t peer;
	bool counts; /* counts remote operations with `reads` and `writes` */
	struct fid_cntr *reads, *writes;
};

/* A test case: one function per side. */
struct side_case {
	const char *name;
	void (*run[2])(struct side *s);
	bool counts; /* the first side counts */
};

static inline void side_bind(struct side *s)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};

	if (s->counts) {
		must(fi_cntr_open(s->n.domain, &attr, &s->reads, NULL), "fi_cntr_open");
		must(fi_cntr_open(s->n.domain, &attr, &s->writes, NULL), "fi_cntr_open");
		must(fi_ep_bind(s->n.ep, &s->reads->fid, FI_REMOTE_READ), "fi_ep_bind");
		must(fi_ep_bind(s->n.ep, &s->writes->fid, FI_REMOTE_WRITE), "fi_ep_bind");
	}
	node_bind(&s->n);
}

/* Opens the endpoint of this process and exchanges addresses with the other one. */
static inline void side_open(struct side *s)
{
	struct name mine, theirs;

	setenv("FI_TCP_IFACE", s->iface, 1);
	node_create(&s->n, NULL);
	side_bind(s);
	mine = node_name(&s->n);
	tell(s->end, &mine, sizeof(mine));
	hear(s->end, &theirs, sizeof(theirs));
	s->peer = node_insert(&s->n, &theirs);
}

/* Byte `i` of message `which`. */
static inline unsigned char side_byte(unsigned int which, size_t i)
{
	return (unsigned char)(i * 7 + (i >> 8) * 13 + (i >> 16) + which * 31 + 1);
}

static inline void side_fill(unsigned char *buf, unsigned int which, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = side_byte(which, i);
}

static inline void side_check(const unsigned char *buf, unsigned int which, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (buf[i] != side_byte(which, i))
			fail("message %u: byte %zu of %zu is wrong", which, i, len);
}

static inline void *side_memory(size_t len)
{
	void *mem = malloc(len);

	if (!mem)
		fail("no memory for %zu bytes", len);
	return mem;
}

/* A barrier of both sides. */
static inline void side_meet(struct side *s)
{
	char c = 0;

	tell(s->end, &c, 1);
	hear(s->end, &c, 1);
}

/* Makes progress until the other side sends a byte over the socket. */
static inline void side_serve(struct side *s)
{
	struct event e;
	char c;

	while (recv(s->end, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		node_poll(&s->n, &e);
}

static const struct side_case *side_chosen;
static int side_number;

static inline void side_run(void *arg)
{
	struct side *s = arg;

	s->counts = side_chosen->counts && !side_number;
	side_open(s);
	side_chosen->run[side_number](s);
}

/* Runs the named case of `cases`, whose last element has no name. */
static inline int side_main(const struct side_case *cases, int argc, char **argv)
{
	struct side sides[2] = {{0}};
	int ends[2], status, bad = 0;

	for (side_chosen = cases; side_chosen->name; side_chosen++)
		if (argc == 4 && !strcmp(side_chosen->name, argv[1]))
			break;
	if (!side_chosen->name)
		fail("a case and two names of interfaces, please");
	wire(ends);
	for (int i = 0; i < 2; i++) {
		sides[i].iface = argv[2 + i];
		sides[i].end = ends[i];
		side_number = i;
		start(i ? "side 1" : "side 0", side_run, &sides[i]);
	}
	while (wait(&status) > 0)
		bad += !WIFSIGNALED(status) && WEXITSTATUS(status);
	return bad;
}

#endif
