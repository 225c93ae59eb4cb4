/* SPDX-License-Identifier: BSD-2-Clause */
/* Exchange of messages of all kinds between two endpoints, with every byte checked. */
#ifndef FAULT_TALK_H
#define FAULT_TALK_H

#include "node.h"

#define TALK_MS   5000 /* the longest wait for one completion */
#define TALK_KIND 6
#define TALK_MAX  1000000

/* Bytes of the messages of a round; the last goes out in three segments. */
static const size_t talk_len[TALK_KIND] = {8, 4096, 9000, 70000, TALK_MAX, 123457};
static unsigned char talk_in[TALK_KIND][TALK_MAX], talk_out[TALK_KIND][TALK_MAX];

static inline unsigned char talk_byte(unsigned int round, unsigned int kind, int side, size_t i)
{
	return (unsigned char)(round * 31 + kind * 17 + (unsigned int)side * 101 + i * 7 + i / 253);
}

static inline ssize_t talk_post(struct node *n, fi_addr_t peer, unsigned int kind)
{
	unsigned char *out = talk_out[kind];
	size_t len = talk_len[kind];
	const struct iovec iov[3] = {
		{out, 1000}, {out + 1000, 50000}, {out + 51000, len > 51000 ? len - 51000 : 0}};

	return kind == TALK_KIND - 1 ? fi_sendv(n->ep, iov, NULL, 3, peer, NULL)
				     : fi_send(n->ep, out, len, NULL, peer, NULL);
}

static inline void talk_done(const struct event *e, int *left)
{
	if (e->err)
		fail("a %s ended with %s", e->flags & FI_RECV ? "receive" : "send",
		     fi_strerror(e->err));
	--*left;
}

/* Exchanges one message of each kind both ways; `side` is 0 in one process and 1 in the other. */
static inline void talk(struct node *n, fi_addr_t peer, unsigned int round, int side)
{
	uint64_t end = now_ms() + TALK_MS;
	int left = 2 * TALK_KIND;
	struct event e;
	ssize_t ret;

	for (unsigned int k = 0; k < TALK_KIND; k++)
		must(fi_recv(n->ep, talk_in[k], TALK_MAX, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	for (unsigned int k = 0; k < TALK_KIND; k++) {
		for (size_t i = 0; i < talk_len[k]; i++)
			talk_out[k][i] = talk_byte(round, k, side, i);
		while ((ret = talk_post(n, peer, k)) == -FI_EAGAIN && now_ms() < end)
			if (node_poll(n, &e))
				talk_done(&e, &left);
		must(ret, "fi_send");
	}
	while (left) {
		e = node_wait(n, TALK_MS, "an exchange");
		talk_done(&e, &left);
	}
	for (unsigned int k = 0; k < TALK_KIND; k++)
		for (size_t i = 0; i < talk_len[k]; i++)
			if (talk_in[k][i] != talk_byte(round, k, !side, i))
				fail("round %u, message of %zu bytes: byte %zu differs", round,
				     talk_len[k], i);
}

#endif
