/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint and its honest peers, each in a process of its own. The peers send tagged messages,
 * which the endpoint checks and sends back, and write and read its memory; each byte is checked.
 * The endpoint accepts messages, writes and reads of a hostile peer, too, but any event that nobody
 * had a right to cause ends it.
 */
#ifndef FAULT_HONEST_H
#define FAULT_HONEST_H

#include <rdma/fi_rma.h>
#include <sys/mman.h>

#include "node.h"
#include "rng.h"

#define PEERS       2
#define LONGEST     ((size_t)1 << 20)
#define OP_MS       10000 /* bound of an honest operation; it takes a few ms */
#define FOE_SLOTS   4
#define FOE_LEN     65536u
#define FOE_OPS     8 /* operations of the endpoint to the hostile peer at a time */
#define HONEST_TAG  UINT64_C(0x1111222200000000)
#define LATE_TAG    UINT64_C(0x3333444400000000)
#define FOE_TAG     UINT64_C(0x5555666600000000)
#define HONEST_DATA UINT64_C(0x7777000000000000)
#define FOE_DATA    UINT64_C(0x0a0b0c0d0e0f1011) /* with a key that grants the access */
#define FORGED_DATA UINT64_C(0xbad0bad0bad0bad0) /* without one */

/* Keys: of the honest peers; what the hostile one may write and read; what it may only read. */
#define HONEST_KEY UINT64_C(0x123456789abcdef1)
#define FOE_KEY    UINT64_C(0x2468ace013579bdf)
#define READ_KEY   UINT64_C(0x369cf258be147ad0)

/* What the processes share. */
struct scene {
	struct name endpoint, peer[PEERS], foe;
	uint64_t ready;           /* processes that have their names and addresses */
	uint64_t done[PEERS];     /* honest operations that have ended */
	uint64_t written[PEERS];  /* writes with remote CQ data among them */
	uint64_t late, late_seen; /* messages of honest peers that came later */
	uint64_t kicks;           /* the endpoint is asked to send to the hostile peer */
	uint64_t foe_events;      /* what the hostile peer had a right to cause */
	uint64_t stop, peers_stopped, stopped;
};
static struct scene *scene;

static inline uint64_t seen(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void add(uint64_t *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_ACQ_REL);
}

static inline void await_word(const uint64_t *word, uint64_t value, const char *what)
{
	uint64_t end = now_ms() + OP_MS;

	while (seen(word) < value) {
		if (now_ms() > end)
			fail("%s: not within %d ms", what, OP_MS);
		usleep(200);
	}
}

/* ---- Content of operation `seq` of peer `i` ---- */

static inline uint64_t pattern_word(unsigned int i, uint64_t seq, size_t at)
{
	return (seq * 0x9e3779b1 + i * 77 + 1) * UINT64_C(0x100000001b3) + at * 0x01010107;
}

static inline size_t pattern_len(unsigned int i, uint64_t seq)
{
	struct rng r = {seq * PEERS + i};

	return rng_one_in(&r, 50) ? LONGEST : (size_t)rng_bits(&r, 20);
}

static inline void pattern_fill(unsigned char *buf, size_t len, unsigned int i, uint64_t seq)
{
	for (size_t at = 0; at < len; at += 8) {
		uint64_t word = pattern_word(i, seq, at);

		memcpy(buf + at, &word, len - at < 8 ? len - at : 8);
	}
}

static inline void pattern_check(const unsigned char *buf, size_t len, unsigned int i, uint64_t seq,
				 const char *what)
{
	for (size_t at = 0; at < len; at += 8) {
		uint64_t word = pattern_word(i, seq, at);

		if (memcmp(buf + at, &word, len - at < 8 ? len - at : 8))
			fail("%s %llu of %zu bytes of peer %u differs near byte %zu", what,
			     (unsigned long long)seq, len, i, at);
	}
}

/* ---- An honest peer ---- */

struct honest {
	struct node n;
	fi_addr_t to;
	unsigned int i;
	uint64_t messages;
	unsigned char *out, *in;
};

static inline void honest_wait(struct honest *h, size_t len, bool received, const char *what)
{
	struct event e;
	uint64_t end = now_ms() + OP_MS;

	while (!node_poll(&h->n, &e)) {
		if (now_ms() > end)
			fail("%s of peer %u has not ended within %d ms", what, h->i, OP_MS);
		usleep(20);
	}
	if (e.err)
		fail("%s of peer %u ended with %s", what, h->i, fi_strerror(e.err));
	if (received && e.flags & FI_RECV && e.len != len)
		fail("%s of peer %u: %zu bytes instead of %zu", what, h->i, e.len, len);
}

#define HONEST_POST(h, call)                                                                       \
	do {                                                                                       \
		uint64_t end = now_ms() + OP_MS;                                                   \
		ssize_t ret;                                                                       \
		struct event none;                                                                 \
		while ((ret = (call)) == -FI_EAGAIN && now_ms() < end)                             \
			if (node_poll(&(h)->n, &none))                                             \
				fail("an event of peer %u that nobody caused", (h)->i);            \
		must(ret, #call);                                                                  \
	} while (0)

/* Sends a message and checks its echo. */
static inline void honest_message(struct honest *h)
{
	uint64_t tag = HONEST_TAG + h->i, seq = h->messages++;
	size_t len = pattern_len(h->i, seq);

	pattern_fill(h->out, len, h->i, seq);
	memset(h->in, 0, len);
	must(fi_trecv(h->n.ep, h->in, LONGEST, NULL, h->to, tag, 0, NULL), "fi_trecv");
	HONEST_POST(h, fi_tsend(h->n.ep, h->out, len, NULL, h->to, tag, NULL));
	honest_wait(h, len, true, "a message");
	honest_wait(h, len, true, "a message");
	pattern_check(h->in, len, h->i, seq, "the echo of message");
}

/* Writes a part of the endpoint's memory, sometimes with data, and reads it back. */
static inline void honest_access(struct honest *h, uint64_t number)
{
	size_t len = pattern_len(h->i, ~number), at = number * 64 % (LONGEST - len + 1);
	struct iovec iov = {h->out, len};
	struct fi_rma_iov remote = {h->i * LONGEST + at, len, HONEST_KEY};
	struct fi_msg_rma m = {.msg_iov = &iov,
			       .iov_count = 1,
			       .addr = h->to,
			       .rma_iov = &remote,
			       .rma_iov_count = 1,
			       .data = HONEST_DATA + h->i};
	uint64_t flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;

	if (number % 4 == 0) {
		flags |= FI_REMOTE_CQ_DATA;
		add(&scene->written[h->i]);
	}
	pattern_fill(h->out, len, h->i, number);
	memset(h->in, 0, len);
	HONEST_POST(h, fi_writemsg(h->n.ep, &m, flags));
	honest_wait(h, len, false, "a write");
	iov.iov_base = h->in;
	HONEST_POST(h, fi_readmsg(h->n.ep, &m, FI_COMPLETION));
	honest_wait(h, len, false, "a read");
	pattern_check(h->in, len, h->i, number, "the memory written by");
}

static inline void honest_peer(void *arg)
{
	static struct honest h;

	h.i = *(const unsigned int *)arg;
	h.out = malloc(LONGEST);
	h.in = malloc(LONGEST);
	node_open(&h.n, NULL);
	scene->peer[h.i] = node_name(&h.n);
	add(&scene->ready);
	await_word(&scene->ready, PEERS + 1, "the names");
	h.to = node_insert(&h.n, &scene->endpoint);
	for (uint64_t number = 0; !seen(&scene->stop); number++) {
		if (number % 5 < 3)
			honest_message(&h);
		else
			honest_access(&h, number);
		add(&scene->done[h.i]);
	}
	node_close(&h.n);
}

/* A peer that comes later, sends one message and goes. */
static inline void honest_late(void *arg)
{
	struct honest h = {.i = PEERS};

	(void)arg;
	node_open(&h.n, NULL);
	h.to = node_insert(&h.n, &scene->endpoint);
	add(&scene->late);
	HONEST_POST(&h, fi_tsend(h.n.ep, "late", 4, NULL, h.to, LATE_TAG, NULL));
	honest_wait(&h, 4, false, "the message of a peer that came later");
	await_word(&scene->late_seen, seen(&scene->late), "the message of a peer that came later");
	node_close(&h.n);
}

#endif
