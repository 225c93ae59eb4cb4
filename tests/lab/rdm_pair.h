/* SPDX-License-Identifier: BSD-2-Clause */
/* Two processes with an endpoint each, at the interfaces named, and what they send each other. */
#ifndef LAB_RDM_PAIR_H
#define LAB_RDM_PAIR_H

#ifndef LIMIT
#define LIMIT 100
#endif
#include "../fault/node.h"

#define PATIENCE_MS 30000

struct side {
	const char *iface;
	int end; /* of the wire to the other */
	struct node n;
	fi_addr_t peer;
};

/* Opens the endpoint of this process and meets the other one. */
static inline void side_open(struct side *s)
{
	struct name mine, theirs;

	setenv("FI_TCP_IFACE", s->iface, 1);
	node_open(&s->n, NULL);
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

/* Both see the other here. */
static inline void side_meet(struct side *s)
{
	char c = 0;

	tell(s->end, &c, 1);
	hear(s->end, &c, 1);
}

/* Makes progress until the other side says something. */
static inline void side_serve(struct side *s)
{
	struct event e;
	char c;

	while (recv(s->end, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		node_poll(&s->n, &e);
}

#endif
