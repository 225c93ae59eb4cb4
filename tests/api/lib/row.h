/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rank 0 sends several long messages to rank 1, connected (EP=msg) or not. Each process has one
 * queue to poll for sends, and one to sleep on for receives. Needs obj.h.
 */
#ifndef API_ROW_H
#define API_ROW_H

#include <pthread.h>

#include "pair.h"

#define ROW_LEN   60000 /* TCP: five messages exceed 256 KiB, later ones may be queued */
#define ROW_PLAIN 5
#define ROW       8
#define ROW_MOST  10

struct row {
	struct obj o; /* o.cq takes sends */
	struct fid_cq *rx;
	struct pair pair;
	fi_addr_t to;
	struct api *a;
};

struct row_opts {
	enum fi_progress progress;
	uint64_t tx_flags, tx_bind;
};

static unsigned char row_out[ROW_MOST][ROW_LEN], row_in[ROW_MOST][ROW_LEN];

/* Returns whether the sender pushes the data. On other transports the receiver fetches it. */
static inline bool row_sent_whole(void)
{
	return !strcmp(api_provider(), "tcp");
}

static inline void row_call(void *arg)
{
	struct row *r = arg;

	fi_cq_read(r->o.cq, NULL, 0);
	fi_cq_read(r->rx, NULL, 0);
}

static inline void row_domain(struct row *r, const struct row_opts *w)
{
	struct fi_info *hints = obj_hints(pair_bare() ? FI_MSG : FI_MSG | FI_TAGGED);

	hints->ep_attr->type = pair_type();
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode = pair_mr_mode(0);
	hints->domain_attr->data_progress = hints->domain_attr->control_progress = w->progress;
	hints->tx_attr->op_flags = w->tx_flags;
	r->o.hints = hints;
	if (!obj_find(&r->o, FI_VERSION(1, 17)) && pair_bare())
		api_skip("not what a bare queue pair does");
	obj_domain(&r->o);
}

/* Connects both sides, so that later sends are not queued for the connection setup. */
static inline void row_greet(struct row *r)
{
	uint64_t word = 1, got;

	if (r->a->rank) {
		OK(fi_recv(r->o.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
		obj_done(r->rx, &got);
	} else {
		POST(r->o.cq, fi_inject(r->o.ep, &word, sizeof(word), r->to));
	}
	api_meet(r->a);
}

static inline void row_open(struct row *r, struct api *a, const struct row_opts *w)
{
	*r = (struct row){.a = a};
	obj_time_limit(30);
	row_domain(r, w);
	r->o.av = obj_av(&r->o, FI_AV_UNSPEC, 0);
	r->o.cq = obj_cq(&r->o, FI_WAIT_NONE);
	r->rx = obj_cq(&r->o, FI_WAIT_UNSPEC);
	r->o.ep = pair_endpoint(&r->pair, a, r->o.fabric, r->o.domain, r->o.info);
	OK(fi_ep_bind(r->o.ep, &r->o.av->fid, 0));
	OK(fi_ep_bind(r->o.ep, &r->o.cq->fid, FI_TRANSMIT | w->tx_bind));
	OK(fi_ep_bind(r->o.ep, &r->rx->fid, FI_RECV));
	OK(fi_enable(r->o.ep));
	if (pair_wanted())
		pair_meet(&r->pair, a, r->o.ep);
	else
		r->to = obj_swap(a, r->o.ep, r->o.av);
	a->progress = row_call;
	a->progress_arg = r;
	row_greet(r);
}

static inline void row_close(struct row *r)
{
	api_meet(r->a);
	r->a->progress = NULL;
	CLOSE(r->o.ep);
	r->o.ep = NULL;
	pair_close(&r->pair);
	CLOSE(r->rx);
	obj_close(&r->o);
}

static inline void row_post(struct row *r, int count)
{
	for (int i = 0; i < count; i++)
		OK(fi_recv(r->o.ep, row_in[i], ROW_LEN, NULL, FI_ADDR_UNSPEC, row_in[i]));
	api_meet_still(r->a);
}

static inline void row_take(struct row *r, int count)
{
	for (int i = 0; i < count; i++) {
		CHECK_EQ(obj_done(r->rx, row_in[i]).len, ROW_LEN);
		data_check(row_in[i], ROW_LEN, (unsigned int)i);
		memset(row_in[i], 0, ROW_LEN);
	}
}

/*
 * Sends the row when the receives are posted and the other thread sleeps. Those after ROW_PLAIN
 * have `flags`.
 */
static inline void row_send(struct row *r, uint64_t flags)
{
	for (int i = 0; i < ROW; i++)
		data_fill(row_out[i], ROW_LEN, (unsigned int)i);
	api_meet_still(r->a);
	obj_sleep_us(100000);
	for (int i = 0; i < ROW; i++) {
		struct iovec iov = {row_out[i], ROW_LEN};
		struct fi_msg msg = {
			.msg_iov = &iov, .iov_count = 1, .addr = r->to, .context = row_out[i]};
		uint64_t asked = FI_COMPLETION | (i < ROW_PLAIN ? 0 : flags);
		ssize_t ret;

		OBJ_UNTIL((ret = fi_sendmsg(r->o.ep, &msg, asked)) != -FI_EAGAIN,
			  obj_sleep_us(1000));
		CHECK_EQ(ret, 0);
	}
}

/* Waits for the other process without calling the library. */
static inline void row_wait(struct row *r)
{
	char all_there;

	r->a->progress = NULL;
	api_hear(r->a, !r->a->rank, &all_there, 1);
	r->a->progress = row_call;
}

struct row_sleeper {
	struct row *r;
	uint64_t word; /* payload of the message that ends the sleep */
};

static inline void *row_asleep(void *arg)
{
	struct fi_cq_tagged_entry entry;
	struct row_sleeper *s = arg;

	CHECK_EQ(fi_cq_sread(s->r->rx, &entry, 1, NULL, 2 * (int)obj_slower() * OBJ_PATIENCE_MS),
		 1);
	CHECK_EQ((uintptr_t)entry.op_context, (uintptr_t)s);
	return NULL;
}

/*
 * One thread sleeps in fi_cq_sread on the receive queue while this thread sends and then waits on a
 * socket.
 */
static inline void row_send_beside_sleeper(struct row *r, uint64_t flags)
{
	struct row_sleeper s = {.r = r};
	pthread_t thread;

	OK(fi_recv(r->o.ep, &s.word, sizeof(s.word), NULL, FI_ADDR_UNSPEC, &s));
	CHECK(pthread_create(&thread, NULL, row_asleep, &s) == 0);
	row_send(r, flags);
	row_wait(r);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK_EQ(s.word, ROW);
	for (int i = 0; i < ROW; i++)
		obj_next(r->o.cq, NULL);
}

#endif
