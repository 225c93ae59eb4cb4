/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An application may take bits out of info->caps before it opens an endpoint. What it leaves of a primary capability
 * means all of it, as in hints: FI_RMA alone reads and writes, and is read and written. fi_getinfo(3).
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "obj.h"
#include "lib/cm.h"

#define KINDS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)

static const uint64_t narrow[] = {FI_MSG, FI_TAGGED,          FI_RMA,          FI_ATOMIC,
				  KINDS,  FI_RMA | FI_ATOMIC, FI_MSG | FI_RMA, FI_MSG | FI_TAGGED};

/* Where operations start and where they arrive: in this process. */
struct ways {
	struct fid_ep *tx, *rx;
	struct fid_cq *cq; /* of both */
	fi_addr_t peer;
	struct fid_mr *mr;
};

static uint64_t memory[2], local[2];

/* ---- One operation of each kind -------------------------------------------------------------- */

static ssize_t message(struct ways *w)
{
	return fi_send(w->tx, local, 8, NULL, w->peer, NULL);
}

static ssize_t tagged(struct ways *w)
{
	return fi_tsend(w->tx, local, 8, NULL, w->peer, 7, NULL);
}

static ssize_t put(struct ways *w)
{
	return fi_write(w->tx, local, 8, NULL, w->peer, 0, fi_mr_key(w->mr), NULL);
}

static ssize_t get(struct ways *w)
{
	return fi_read(w->tx, local, 8, NULL, w->peer, 0, fi_mr_key(w->mr), NULL);
}

static ssize_t add(struct ways *w)
{
	return fi_atomic(w->tx, local, 1, NULL, w->peer, 0, fi_mr_key(w->mr), FI_UINT64, FI_SUM,
			 NULL);
}

static ssize_t fetch(struct ways *w)
{
	return fi_fetch_atomic(w->tx, local, 1, NULL, local + 1, NULL, w->peer, 0, fi_mr_key(w->mr),
			       FI_UINT64, FI_SUM, NULL);
}

static ssize_t receive(struct ways *w)
{
	return fi_recv(w->rx, memory, 8, NULL, FI_ADDR_UNSPEC, NULL);
}

static ssize_t receive_tagged(struct ways *w)
{
	return fi_trecv(w->rx, memory, 8, NULL, FI_ADDR_UNSPEC, 7, 0, NULL);
}

static const struct {
	uint64_t kind;
	ssize_t (*call[2])(struct ways *w);
} both_ways[] = {
	{FI_MSG, {receive, message}},
	{FI_TAGGED, {receive_tagged, tagged}},
	{FI_RMA, {put, get}},
	{FI_ATOMIC, {add, fetch}},
};

/* Tries all: what `caps` leaves completes, the rest is refused. */
static void try_all(struct ways *w, uint64_t caps)
{
	for (size_t i = 0; i < API_COUNT(both_ways); i++) {
		if (!(caps & both_ways[i].kind)) {
			CHECK_EQ(both_ways[i].call[0](w), -FI_EOPNOTSUPP);
			CHECK_EQ(both_ways[i].call[1](w), -FI_EOPNOTSUPP);
			continue;
		}
		POST(w->cq, both_ways[i].call[0](w));
		POST(w->cq, both_ways[i].call[1](w));
		obj_next(w->cq, NULL);
		obj_next(w->cq, NULL);
	}
}

static void try_and_close(struct ways *w, struct fid_domain *domain, uint64_t caps)
{
	OK(fi_mr_reg(domain, memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 5, 0,
		     &w->mr, NULL));
	try_all(w, caps);
	CLOSE(w->mr);
}

/* ---- Endpoints ------------------------------------------------------------------------------- */

static void plain(struct api *a)
{
	(void)a;
	for (size_t i = 0; i < API_COUNT(narrow); i++) {
		struct obj o = {.hints = obj_hints(KINDS)};
		struct ways w;

		CHECK(obj_find(&o, FI_VERSION(1, 17)));
		o.info->caps = narrow[i];
		obj_open(&o);
		w = (struct ways){o.ep, o.ep, o.cq, obj_insert_ep(o.av, o.ep), NULL};
		try_and_close(&w, o.domain, narrow[i]);
		obj_close(&o);
	}
}

/* The attributes of both contexts are narrowed, too. */
static void open_contexts(struct obj *o, struct ways *w, uint64_t caps)
{
	struct fi_tx_attr tx = *o->info->tx_attr;
	struct fi_rx_attr rx = *o->info->rx_attr;

	tx.caps = rx.caps = caps;
	OK(fi_scalable_ep(o->domain, o->info, &o->ep, NULL));
	OK(fi_scalable_ep_bind(o->ep, &o->av->fid, 0));
	OK(fi_enable(o->ep));
	OK(fi_tx_context(o->ep, 0, &tx, &w->tx, NULL));
	OK(fi_rx_context(o->ep, 0, &rx, &w->rx, NULL));
	OK(fi_ep_bind(w->tx, &w->cq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(w->rx, &w->cq->fid, FI_RECV));
	OK(fi_enable(w->tx));
	OK(fi_enable(w->rx));
}

static void scalable(struct api *a)
{
	(void)a;
	for (size_t i = 0; i < API_COUNT(narrow); i++) {
		struct obj o = {.hints = obj_hints(KINDS)};
		struct ways w = {0};

		o.hints->ep_attr->tx_ctx_cnt = o.hints->ep_attr->rx_ctx_cnt = 1;
		obj_domain(&o);
		o.info->caps = narrow[i];
		o.av = obj_av(&o, FI_AV_UNSPEC, 0);
		w.cq = o.cq = obj_cq(&o, FI_WAIT_NONE);
		open_contexts(&o, &w, narrow[i]);
		w.peer = obj_insert_ep(o.av, o.ep);
		try_and_close(&w, o.domain, narrow[i]);
		CLOSE(w.tx);
		CLOSE(w.rx);
		obj_close(&o);
	}
}

/* Both ends come from one narrowed entry, the accepting one by its passive endpoint's request. */
static void connected(struct api *a)
{
	(void)a;
	for (size_t i = 0; i < API_COUNT(narrow); i++) {
		struct cm_end active, passive;
		struct obj_name name;
		struct fi_info *request;
		struct ways w;
		struct cm c;

		cm_domain(&c, KINDS, NULL);
		c.o.info->caps = narrow[i];
		cm_listen(&c);
		name = obj_name(&c.pep->fid);
		cm_connect(&c, &active, &name);
		request = cm_request(&c);
		OK(fi_endpoint(c.o.domain, request, &passive.ep, NULL));
		passive.eq = cm_eq(&c, FI_WAIT_UNSPEC);
		OK(fi_ep_bind(passive.ep, &passive.eq->fid, 0));
		OK(fi_ep_bind(passive.ep, &active.cq->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_enable(passive.ep));
		OK(fi_accept(passive.ep, NULL, 0));
		fi_freeinfo(request);
		EVENT(&c, passive.eq, FI_CONNECTED, &passive.ep->fid);
		EVENT(&c, active.eq, FI_CONNECTED, &active.ep->fid);
		w = (struct ways){active.ep, passive.ep, active.cq, FI_ADDR_UNSPEC, NULL};
		try_and_close(&w, c.o.domain, narrow[i]);
		CLOSE(passive.ep);
		cm_close_eq(&c, passive.eq);
		cm_close_end(&c, &active);
		cm_close(&c);
	}
}

/* A direction that is left stays the only one. */
static void one_direction(struct api *a)
{
	struct obj o = {.hints = obj_hints(KINDS)};
	struct ways w;

	(void)a;
	CHECK(obj_find(&o, FI_VERSION(1, 17)));
	o.info->caps = FI_RMA | FI_MSG | FI_READ | FI_REMOTE_READ | FI_SEND;
	obj_open(&o);
	w = (struct ways){o.ep, o.ep, o.cq, obj_insert_ep(o.av, o.ep), NULL};
	OK(fi_mr_reg(o.domain, memory, sizeof(memory), FI_REMOTE_READ, 0, 5, 0, &w.mr, NULL));
	CHECK_EQ(put(&w), -FI_EOPNOTSUPP);
	CHECK_EQ(receive(&w), -FI_EOPNOTSUPP);
	POST(o.cq, get(&w));
	obj_next(o.cq, NULL);
	CLOSE(w.mr);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"plain", plain, 1, {0}},
		{"scalable", scalable, 1, {0}},
		{"connected", connected, 1, {0}},
		{"one_direction", one_direction, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
