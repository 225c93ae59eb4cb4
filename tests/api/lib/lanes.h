/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects made from a seed, to be used by several threads with the locks around them that a threading level asks of the
 * application: endpoints, scalable endpoints with contexts, queues that are shared or not, counters, a poll set. The two processes
 * make the same.
 */
#ifndef API_LANES_H
#define API_LANES_H

#include <pthread.h>
#include <rdma/fi_rma.h>

#include "../obj.h"
#include "../../fault/rng.h"

#define BITS    2 /* of a context's index in an address */
#define BASES   3
#define LANES   (BASES << BITS)
#define MOST    200 /* operations of a lane */
#define LONGEST 70000
#define MR_KEY  7
#define THINGS  (2 * LANES + BASES + 2 * LANES + LANES + 1)

/* What a level may ask to serialize; `group`: the thing with the lock, NULL: the library alone locks. */
struct thing {
	pthread_mutex_t mutex;
	struct thing *group;
	struct thing *base; /* an endpoint's or context's endpoint, else itself */
};

struct queue {
	struct thing *thing;
	struct fid_cq *cq;
};

struct lane;

struct op {
	struct lane *at, *to; /* of this process, of the peer */
	unsigned int tag;     /* a receive's is its message's */
	bool receives, reads, done;
	size_t len;
	unsigned char *buf;
};

/* A transmit and a receive side: of one endpoint, or a pair of contexts. */
struct lane {
	struct thing *tx_thing, *rx_thing, *cntr_thing;
	struct fid_ep *tx, *rx;
	struct queue *tx_q, *rx_q;
	struct fid_cntr *sends; /* NULL: none */
	fi_addr_t peer;
	unsigned int posted[2], flying[2]; /* [0] sends and reads, [1] receives */
	unsigned int receives, messages;
	struct op op[2][LANES * MOST];
};

static struct world {
	struct obj o;
	struct rng rng;
	bool scalable; /* there is a scalable endpoint */
	struct thing things[THINGS];
	unsigned int thing_count;
	struct {
		struct fid_ep *ep; /* NULL: a plain endpoint */
		unsigned int first, count;
	} base[BASES];
	struct lane lane[LANES];
	unsigned int lane_count;
	struct queue queue[2 * LANES];
	unsigned int queue_count;
	struct fid_poll *poll;
	struct thing *poll_thing;
	struct fid_mr *mr;
	unsigned int left; /* atomic: operations that have not ended */
} w;

static unsigned char memory[LONGEST]; /* what peers read */
static unsigned int most;             /* operations of a lane */

static struct thing *thing_new(struct thing *base)
{
	struct thing *t = &w.things[w.thing_count++];

	pthread_mutex_init(&t->mutex, NULL);
	t->base = base ? base : t;
	return t;
}

static void hold(struct thing *t)
{
	if (t->group)
		pthread_mutex_lock(&t->group->mutex);
}

static void drop(struct thing *t)
{
	if (t->group)
		pthread_mutex_unlock(&t->group->mutex);
}

/* ---- Making a world -------------------------------------------------------------------------- */

static struct queue *some_queue(void)
{
	struct queue *q = &w.queue[w.queue_count];

	if (w.queue_count && rng_one_in(&w.rng, 3))
		return &w.queue[rng_below(&w.rng, w.queue_count)];
	*q = (struct queue){thing_new(NULL), obj_cq(&w.o, FI_WAIT_NONE)};
	w.queue_count++;
	return q;
}

static void open_lane(struct fid_ep *tx, struct fid_ep *rx, struct thing *base)
{
	struct lane *l = &w.lane[w.lane_count++];

	l->tx = tx;
	l->rx = rx;
	l->tx_thing = thing_new(base);
	l->rx_thing = tx == rx ? l->tx_thing : thing_new(base);
	l->tx_q = some_queue();
	l->rx_q = some_queue();
	OK(fi_ep_bind(tx, &l->tx_q->cq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(rx, &l->rx_q->cq->fid, FI_RECV));
	if (rng_one_in(&w.rng, 2)) {
		l->sends = obj_cntr(&w.o, FI_WAIT_NONE);
		l->cntr_thing = thing_new(NULL);
		OK(fi_ep_bind(tx, &l->sends->fid, FI_SEND));
	}
	OK(fi_enable(tx));
	if (rx != tx)
		OK(fi_enable(rx));
}

static void open_scalable(unsigned int b)
{
	unsigned int count = 1 + rng_below(&w.rng, 1 << BITS);
	struct thing *base = thing_new(NULL);
	struct fid_ep *tx, *rx;

	w.o.info->ep_attr->tx_ctx_cnt = w.o.info->ep_attr->rx_ctx_cnt = count;
	OK(fi_scalable_ep(w.o.domain, w.o.info, &w.base[b].ep, NULL));
	OK(fi_scalable_ep_bind(w.base[b].ep, &w.o.av->fid, 0));
	OK(fi_enable(w.base[b].ep));
	w.base[b].count = count;
	for (unsigned int i = 0; i < count; i++) {
		OK(fi_tx_context(w.base[b].ep, (int)i, NULL, &tx, NULL));
		OK(fi_rx_context(w.base[b].ep, (int)i, NULL, &rx, NULL));
		open_lane(tx, rx, base);
	}
	w.o.info->ep_attr->tx_ctx_cnt = w.o.info->ep_attr->rx_ctx_cnt = 1;
}

static void open_plain(unsigned int b)
{
	struct fid_ep *ep = obj_ep(&w.o);

	OK(fi_ep_bind(ep, &w.o.av->fid, 0));
	w.base[b].count = 1;
	open_lane(ep, ep, NULL);
}

static void open_bases(enum fi_threading level, bool scalable)
{
	w.o.hints = obj_hints(FI_TAGGED | FI_RMA | FI_NAMED_RX_CTX);
	w.o.hints->domain_attr->threading = level;
	obj_domain(&w.o);
	CHECK_EQ(w.o.info->domain_attr->threading, level);
	w.o.av = obj_av(&w.o, FI_AV_UNSPEC, BITS);
	OK(fi_mr_reg(w.o.domain, memory, sizeof(memory), FI_REMOTE_READ, 0, MR_KEY, 0, &w.mr,
		     NULL));
	for (unsigned int b = 0; b < BASES; b++) {
		bool one = scalable && (b == BASES - 1 ? !w.scalable : rng_one_in(&w.rng, 2));

		w.base[b].first = w.lane_count;
		if (one)
			open_scalable(b);
		else
			open_plain(b);
		w.scalable |= one;
	}
}

static void open_poll(void)
{
	struct fi_poll_attr attr = {0};

	OK(fi_poll_open(w.o.domain, &attr, &w.poll));
	w.poll_thing = thing_new(NULL);
	for (unsigned int i = 0; i < w.queue_count; i++)
		OK(fi_poll_add(w.poll, &w.queue[i].cq->fid, 0));
}

static void swap_addresses(struct api *a)
{
	for (unsigned int b = 0; b < BASES; b++) {
		struct fid_ep *ep = w.base[b].ep ? w.base[b].ep : w.lane[w.base[b].first].tx;
		fi_addr_t peer = obj_swap(a, ep, w.o.av);

		for (unsigned int i = 0; i < w.base[b].count; i++)
			w.lane[w.base[b].first + i].peer = fi_rx_addr(peer, (int)i, BITS);
	}
}

/* Operation n of a lane, the same in both processes: a read, or a message to a lane of the peer's. */
static void plan_op(unsigned int lane, unsigned int n)
{
	static const size_t lens[] = {0, 8, 200, 4000, 20000, LONGEST};
	struct lane *from = &w.lane[lane], *to = &w.lane[rng_below(&w.rng, w.lane_count)];
	struct op op = {
		.at = from, .to = to, .tag = lane * MOST + n, .len = RNG_CHOOSE(&w.rng, lens)};

	op.reads = rng_one_in(&w.rng, 5);
	from->op[0][n] = op;
	w.left++;
	if (op.reads)
		return;
	from->messages++;
	op.at = to;
	op.receives = true;
	to->op[1][to->receives++] = op;
	w.left++;
}

static void close_world(void)
{
	for (unsigned int i = 0; i < w.lane_count; i++) {
		struct lane *l = &w.lane[i];

		if (l->sends)
			CHECK_EQ(fi_cntr_read(l->sends), l->messages);
		CLOSE(l->tx);
		if (l->rx != l->tx)
			CLOSE(l->rx);
		if (l->sends)
			CLOSE(l->sends);
	}
	for (unsigned int b = 0; b < BASES; b++)
		if (w.base[b].ep)
			CLOSE(w.base[b].ep);
	for (unsigned int i = 0; i < w.queue_count; i++) {
		if (w.poll)
			OK(fi_poll_del(w.poll, &w.queue[i].cq->fid, 0));
		CLOSE(w.queue[i].cq);
	}
	if (w.poll)
		CLOSE(w.poll);
	CLOSE(w.mr);
	obj_close(&w.o);
}

#endif
