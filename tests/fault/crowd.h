/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many endpoints of one process, with one queue and one address vector. Each message names its sender, its round and its
 * length in every byte; the receiver checks them, and that each peer sends one in a round.
 */
#ifndef FAULT_CROWD_H
#define FAULT_CROWD_H

#include <sys/mman.h>

#include "node.h"

#ifndef CROWD_MOST
#define CROWD_MOST 1024 /* endpoints, or peers of one */
#endif
#ifndef CROWD_LEN
#define CROWD_LEN 512 /* bytes of the longest message */
#endif
#ifndef CROWD_MS
#define CROWD_MS 20000 /* the longest wait */
#endif
#define CROWD_NAP_US 50

struct crowd_message {
	uint32_t sender, round;
	unsigned char bytes[CROWD_LEN];
};

struct crowd {
	struct node n; /* n.ep is the first endpoint */
	unsigned int count;
	struct fid_ep *ep[CROWD_MOST];
	unsigned int inserted;
	fi_addr_t peer[CROWD_MOST]; /* in the order of insertion */
	struct crowd_message in[CROWD_MOST], out[CROWD_MOST];
	unsigned int heard[CROWD_MOST]; /* the round of the last message, + 1, by sender */
};

/* Returns memory that processes started later share. */
static inline void *crowd_share(size_t len)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	return at;
}

static inline void crowd_open(struct crowd *c, unsigned int count)
{
	node_open(&c->n, NULL);
	c->ep[0] = c->n.ep;
	c->count = count;
	for (unsigned int i = 1; i < count; i++) {
		must(fi_endpoint(c->n.domain, c->n.info, &c->ep[i], NULL), "fi_endpoint");
		must(fi_ep_bind(c->ep[i], &c->n.av->fid, 0), "fi_ep_bind");
		must(fi_ep_bind(c->ep[i], &c->n.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
		must(fi_enable(c->ep[i]), "fi_enable");
	}
}

static inline void crowd_close(struct crowd *c)
{
	for (unsigned int i = 1; i < c->count; i++)
		must(fi_close(&c->ep[i]->fid), "fi_close");
	node_close(&c->n);
}

static inline struct name crowd_name(struct crowd *c, unsigned int i)
{
	struct name name = {.len = sizeof(name.bytes)};

	must(fi_getname(&c->ep[i]->fid, name.bytes, &name.len), "fi_getname");
	return name;
}

static inline void crowd_insert(struct crowd *c, const struct name *name)
{
	c->peer[c->inserted++] = node_insert(&c->n, name);
}

/* Reads a completion. False: there is none; the processor is left to others a while. */
static inline bool crowd_poll(struct crowd *c, struct event *e)
{
	bool any = node_poll(&c->n, e);

	if (!any)
		usleep(CROWD_NAP_US);
	return any;
}

/* ---- Messages ---- */

/* Each eighth is as long as can be. */
static inline size_t crowd_len(uint32_t sender, uint32_t round)
{
	return 8 + ((sender + round) % 8 ? (sender * 13 + round * 7) % CROWD_LEN : CROWD_LEN);
}

static inline unsigned char crowd_byte(const struct crowd_message *m, size_t i)
{
	return (unsigned char)(m->sender * 31 + m->round * 17 + i * 7);
}

static inline void crowd_fill(struct crowd_message *m, uint32_t sender, uint32_t round)
{
	m->sender = sender;
	m->round = round;
	for (size_t i = 0; i < crowd_len(sender, round) - 8; i++)
		m->bytes[i] = crowd_byte(m, i);
}

/* Posts a receive for each endpoint of so many; an endpoint alone has all of them. */
static inline void crowd_receive(struct crowd *c, unsigned int first, unsigned int count)
{
	for (unsigned int i = first; i < first + count; i++)
		must(fi_recv(c->ep[i % c->count], &c->in[i], sizeof(c->in[i]), NULL, FI_ADDR_UNSPEC,
			     &c->in[i]),
		     "fi_recv");
}

/* Checks a message; returns its sender. */
static inline uint32_t crowd_check(struct crowd *c, const struct event *e, uint32_t round)
{
	const struct crowd_message *m = e->context;

	if (e->err)
		fail("a receive ended with %s", fi_strerror(e->err));
	if (m->sender >= CROWD_MOST || m->round != round || e->len != crowd_len(m->sender, round))
		fail("%zu bytes of %u came in round %u, and say round %u", e->len, m->sender, round,
		     m->round);
	for (size_t i = 0; i < e->len - 8; i++)
		if (m->bytes[i] != crowd_byte(m, i))
			fail("byte %zu of %u's message differs", i, m->sender);
	if (c->heard[m->sender] == round + 1)
		fail("%u's message of round %u comes twice", m->sender, round);
	c->heard[m->sender] = round + 1;
	return m->sender;
}

/* Endpoint `i` sends its message of the round to peer `to`. */
static inline void crowd_send(struct crowd *c, unsigned int i, unsigned int to, uint32_t round)
{
	crowd_fill(&c->out[i], i, round);
	MUST(c->n.cq, fi_send(c->ep[i % c->count], &c->out[i], crowd_len(i, round), NULL,
			      c->peer[to], &c->out[i]));
}

/* So many endpoints from `first` on send, each to peer `to`, or each to the peer of its own number (CROWD_OWN). */
#define CROWD_OWN CROWD_MOST
static inline void crowd_send_all(struct crowd *c, unsigned int first, unsigned int count,
				  unsigned int to, uint32_t round)
{
	bool sent[CROWD_MOST] = {false};
	unsigned int left = count;

	for (unsigned int i = first; i < first + count; i++)
		crowd_fill(&c->out[i], i, round);
	while (left) {
		for (unsigned int i = first; i < first + count; i++) {
			ssize_t ret =
				sent[i] ? -FI_EAGAIN
					: fi_send(c->ep[i % c->count], &c->out[i],
						  crowd_len(i, round), NULL,
						  c->peer[to == CROWD_OWN ? i : to], &c->out[i]);

			if (ret == -FI_EAGAIN)
				continue;
			must(ret, "fi_send");
			sent[i] = true;
			left--;
		}
		fi_cq_read(c->n.cq, NULL, 0);
	}
}

/* Waits for so many sends and receives. */
static inline void crowd_await(struct crowd *c, unsigned int events, uint32_t round)
{
	uint64_t end = now_ms() + CROWD_MS;
	struct event e;

	while (events) {
		if (now_ms() > end)
			fail("%u operations have not ended in round %u", events, round);
		if (!crowd_poll(c, &e))
			continue;
		if (e.err)
			fail("a %s ended with %s", e.flags & FI_RECV ? "receive" : "send",
			     fi_strerror(e.err));
		if (e.flags & FI_RECV)
			crowd_check(c, &e, round);
		events--;
	}
}

/* Takes the round's message of so many peers, one of each; sends each its own back if `answers`. */
static inline void crowd_take(struct crowd *c, unsigned int count, uint32_t round, bool answers)
{
	unsigned int left = answers ? 2 * count : count;
	uint64_t end = now_ms() + CROWD_MS;
	struct event e;

	while (left) {
		uint32_t from;

		if (now_ms() > end)
			fail("%u messages and answers are missing in round %u", left, round);
		if (!crowd_poll(c, &e))
			continue;
		left--;
		if (!(e.flags & FI_RECV)) {
			if (e.err)
				fail("an answer ended with %s", fi_strerror(e.err));
			continue;
		}
		from = crowd_check(c, &e, round);
		if (answers)
			crowd_send(c, from, from, round);
	}
}

#endif
