/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protocol of rdma_peer.c with its partners, and its verbs. A connection is reliable (RC); all
 * numbers are in network byte order.
 *
 * Each side has a window: memory that the other side reads, writes and changes by atomics. As soon
 * as the connection is up, each side sends a `struct peer_place`, which describes its window. Then
 * follow the steps given to both sides. In each step first the connecting side is the initiator and
 * the listening side the server, then the other way round:
 *
 *	the server prepares its window and sends                  struct peer_sync{step, PEER_READY}
 *	the initiator runs the operation of the step
 *	the initiator sends, after the operation has completed    struct peer_sync{step, PEER_DONE}
 *
 *	send    a message of `size` bytes, the data of the step
 *	write   the data of the step into the window, with immediate PEER_IMMEDIATE
 *	read    the whole window, which the server has filled with the data of the step
 *	add     fetch-and-add of PEER_ADDEND to the window's first 8 bytes, which held PEER_FIRST
 *	swap    compare-and-swap there: first a compare that fails, then PEER_FIRST by PEER_SECOND
 *
 * After the last step the side that does not end the connection sends a struct
 * peer_sync{PEER_STEPS, PEER_DONE}; the other side ends the connection when it has that message, so
 * all other operations have completed by then. The sender does not wait for the completion of that
 * last message, as a message can be received before its sender's completion.
 *
 * Atomics use the byte order of the machines, which is the same. The data of a step is that of
 * peer_fill(), with twice the step as seed, plus one if the listening side initiates.
 */
#ifndef LAB_RDMA_PEER_H
#define LAB_RDMA_PEER_H

#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum peer_step { PEER_SEND, PEER_WRITE, PEER_READ, PEER_ADD, PEER_SWAP, PEER_STEPS };
enum peer_what { PEER_READY = 1, PEER_DONE };

struct peer_place {
	uint64_t addr; /* of the window */
	uint32_t rkey;
	uint32_t size; /* bytes of the window, and of the messages of step `send` */
};

struct peer_sync {
	uint32_t step; /* enum peer_step */
	uint32_t what; /* enum peer_what */
};

#define PEER_IMMEDIATE 0x77656674u
#define PEER_FIRST     0x0102030405060708u
#define PEER_SECOND    0x1112131415161718u
#define PEER_ADDEND    0x0001000100010001u

#define PEER_RECVS   4         /* receives posted at any time */
#define PEER_MOST    (1 << 20) /* maximum bytes of a message */
#define PEER_CQ_SIZE 32

/* A received message or write. The data of a message stays until peer_release(). */
struct peer_rxreq {
	struct ibv_wc wc;
	char *data;
};

struct peer {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr; /* covers all of `memory` */
	char *memory;      /* blocks of `size` bytes: window, send, read and receive buffers */
	uint32_t size;
	struct peer_place theirs; /* in host byte order */
	struct peer_rxreq arrived[PEER_RECVS];
	unsigned int arrivals; /* in `arrived`, not yet taken */
	unsigned int sent;     /* send completions not yet taken */
	double patience;       /* seconds to wait for any event */
	int events;            /* descriptor of the connection's events */
	double gone;           /* time when the first event was seen, 0: none */
};

#define PEER_LINGER 1.0 /* seconds to wait for completions after the other side has left */

enum { PEER_WINDOW, PEER_OUT, PEER_IN, PEER_RECV, PEER_BLOCKS = PEER_RECV + PEER_RECVS };

static inline __attribute__((noreturn, format(printf, 1, 2))) void peer_fail(const char *format,
									     ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "rdma_peer: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(EXIT_FAILURE);
}

static inline double peer_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns byte `i` of the data of a step; no 8 consecutive bytes are equal. */
static inline char peer_byte(size_t i, unsigned int seed)
{
	return (char)((i * 31 + (i >> 8) * 7 + seed * 101) & 0xff);
}

static inline void peer_fill(char *data, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		data[i] = peer_byte(i, seed);
}

static inline void peer_compare(const char *data, size_t len, unsigned int seed, const char *what)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] != peer_byte(i, seed))
			peer_fail("%s: byte %zu of %zu is %#x, not %#x", what, i, len,
				  data[i] & 0xff, peer_byte(i, seed) & 0xff);
}

static inline char *peer_block(const struct peer *p, unsigned int n)
{
	return p->memory + (size_t)n * p->size;
}

static inline void peer_post_recv(struct peer *p, unsigned int n)
{
	struct ibv_sge sge = {(uintptr_t)peer_block(p, PEER_RECV + n), p->size, p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;

	if (ibv_post_recv(p->qp, &wr, &bad))
		peer_fail("ibv_post_recv: %m");
}

/* Sleeps when no completion is there. Any event on a connection means its end. */
static inline void peer_idle(struct peer *p)
{
	struct pollfd fd = {.fd = p->events, .events = POLLIN};

	if (poll(&fd, 1, 0) < 1)
		usleep(20);
	else if (p->gone == 0)
		p->gone = peer_now();
	else if (peer_now() > p->gone + PEER_LINGER)
		peer_fail("the other side is gone");
}

/* Takes one completion, if there is one. */
static inline void peer_poll(struct peer *p)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(p->cq, 1, &wc);

	if (n < 0)
		peer_fail("ibv_poll_cq fails");
	if (!n) {
		peer_idle(p);
		return;
	}
	if (wc.status != IBV_WC_SUCCESS)
		peer_fail("a completion says: %s", ibv_wc_status_str(wc.status));
	if (!(wc.opcode & IBV_WC_RECV)) {
		p->sent++;
		return;
	}
	p->arrived[p->arrivals++] =
		(struct peer_rxreq){wc, peer_block(p, PEER_RECV + (unsigned int)wc.wr_id)};
}

/* Waits for the next arrival: a message, or if `immediate` a write with immediate data. */
static inline struct peer_rxreq peer_hear(struct peer *p, bool immediate, const char *what)
{
	double end = peer_now() + p->patience;
	struct peer_rxreq first;

	while (!p->arrivals) {
		if (peer_now() > end)
			peer_fail("%s: nothing came in", what);
		peer_poll(p);
	}
	first = p->arrived[0];
	p->arrivals--;
	memmove(p->arrived, p->arrived + 1, p->arrivals * sizeof(first));
	if (first.wc.opcode != (immediate ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		peer_fail("%s: came in as opcode %d", what, (int)first.wc.opcode);
	return first;
}

/* Posts the receive buffer of `a` again. */
static inline void peer_release(struct peer *p, const struct peer_rxreq *a)
{
	peer_post_recv(p, (unsigned int)a->wc.wr_id);
}

/* Posts one operation on block `block` and, unless it is a send, the other side's window. */
static inline void peer_post(struct peer *p, struct ibv_send_wr *wr, unsigned int block, size_t len,
			     const char *what)
{
	struct ibv_sge sge = {(uintptr_t)peer_block(p, block), (uint32_t)len, p->mr->lkey};
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr->wr.atomic.remote_addr = p->theirs.addr;
		wr->wr.atomic.rkey = p->theirs.rkey;
	} else {
		wr->wr.rdma.remote_addr = p->theirs.addr;
		wr->wr.rdma.rkey = p->theirs.rkey;
	}
	if (ibv_post_send(p->qp, wr, &bad))
		peer_fail("%s: ibv_post_send: %m", what);
}

/* Posts one operation and waits for its completion. */
static inline void peer_do(struct peer *p, struct ibv_send_wr *wr, unsigned int block, size_t len,
			   const char *what)
{
	double end = peer_now() + p->patience;

	peer_post(p, wr, block, len, what);
	while (!p->sent) {
		if (peer_now() > end)
			peer_fail("%s: does not complete", what);
		peer_poll(p);
	}
	p->sent--;
}

static inline void peer_send(struct peer *p, size_t len, const char *what)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	peer_do(p, &wr, PEER_OUT, len, what);
}

static inline void peer_tell_sync(struct peer *p, enum peer_step step, enum peer_what what)
{
	struct peer_sync half = {htonl(step), htonl(what)};

	memcpy(peer_block(p, PEER_OUT), &half, sizeof(half));
	peer_send(p, sizeof(half), "a half");
}

static inline void peer_hear_sync(struct peer *p, enum peer_step step, enum peer_what what)
{
	struct peer_rxreq a = peer_hear(p, false, "a half");
	struct peer_sync half;

	if (a.wc.byte_len != sizeof(half))
		peer_fail("a half of %u bytes", a.wc.byte_len);
	memcpy(&half, a.data, sizeof(half));
	if (ntohl(half.step) != step || ntohl(half.what) != what)
		peer_fail("half %u of step %u, not %u of %u", ntohl(half.what), ntohl(half.step),
			  what, step);
	peer_release(p, &a);
}

/* Tells the other side that it may end the connection, after the last step. */
static inline void peer_allow_end(struct peer *p)
{
	struct peer_sync half = {htonl(PEER_STEPS), htonl(PEER_DONE)};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	memcpy(peer_block(p, PEER_OUT), &half, sizeof(half));
	peer_post(p, &wr, PEER_OUT, sizeof(half), "the last half");
}

/* Both sides exchange the places of their windows. */
static inline void peer_exchange_places(struct peer *p)
{
	struct peer_place place = {htobe64((uintptr_t)peer_block(p, PEER_WINDOW)),
				   htonl(p->mr->rkey), htonl(p->size)};
	struct peer_rxreq a;

	memcpy(peer_block(p, PEER_OUT), &place, sizeof(place));
	peer_send(p, sizeof(place), "our place");
	a = peer_hear(p, false, "their place");
	if (a.wc.byte_len != sizeof(place))
		peer_fail("a place of %u bytes", a.wc.byte_len);
	memcpy(&place, a.data, sizeof(place));
	p->theirs = (struct peer_place){be64toh(place.addr), ntohl(place.rkey), ntohl(place.size)};
	peer_release(p, &a);
	if (p->theirs.size != p->size)
		peer_fail("the other side has %u bytes, not %u", p->theirs.size, p->size);
}

#endif
