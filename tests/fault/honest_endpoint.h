/* SPDX-License-Identifier: BSD-2-Clause */
/* The endpoint that honest.h describes, which a hostile peer attacks. */
#ifndef FAULT_HONEST_ENDPOINT_H
#define FAULT_HONEST_ENDPOINT_H

#include "honest.h"

/* What an operation of the endpoint is for: contexts point here. */
enum errand { PEER_RECV, PEER_SEND, FOE_RECV, FOE_TRECV, FOE_OP, LATE_RECV };

struct errand_of {
	struct fi_context context; /* first */
	enum errand errand;
	unsigned int i;
	bool busy;
	unsigned char *buf;
};

static struct endpoint {
	struct node n;
	fi_addr_t peer[PEERS], foe;
	struct errand_of recv[PEERS], send[PEERS], foe_recv[2 * FOE_SLOTS], foe_op[FOE_OPS], late;
	uint64_t messages[PEERS], written[PEERS], kicks, started;
	unsigned char *memory;                /* PEERS * LONGEST for the honest peers */
	unsigned char foe_memory[3][FOE_LEN]; /* the hostile peer may write to the middle one */
	unsigned char read_only[FOE_LEN], scratch[FOE_LEN];
	struct fid_mr *mr[3];
} * at_e;

static inline void endpoint_recv(struct errand_of *o)
{
	struct fid_ep *ep = at_e->n.ep;

	if (o->errand == PEER_RECV)
		must(fi_trecv(ep, o->buf, LONGEST, NULL, at_e->peer[o->i], HONEST_TAG + o->i, 0, o),
		     "fi_trecv");
	else if (o->errand == FOE_RECV)
		must(fi_recv(ep, o->buf, FOE_LEN, NULL, FI_ADDR_UNSPEC, o), "fi_recv");
	else if (o->errand == FOE_TRECV)
		must(fi_trecv(ep, o->buf, FOE_LEN, NULL, FI_ADDR_UNSPEC, FOE_TAG, 0, o),
		     "fi_trecv");
	else
		must(fi_trecv(ep, o->buf, FOE_LEN, NULL, FI_ADDR_UNSPEC, LATE_TAG, 0, o),
		     "fi_trecv");
}

/* An honest message has come: checks it and sends it back. */
static inline void endpoint_echo(struct errand_of *o, size_t len)
{
	uint64_t seq = at_e->messages[o->i]++, end = now_ms() + OP_MS;
	ssize_t ret;

	if (len != pattern_len(o->i, seq))
		fail("message %llu of peer %u has %zu bytes", (unsigned long long)seq, o->i, len);
	pattern_check(o->buf, len, o->i, seq, "message");
	while ((ret = fi_tsend(at_e->n.ep, o->buf, len, NULL, at_e->peer[o->i], HONEST_TAG + o->i,
			       &at_e->send[o->i])) == -FI_EAGAIN) {
		if (now_ms() > end)
			fail("no echo to peer %u can be sent", o->i);
		fi_cq_read(at_e->n.cq, NULL, 0);
	}
	must(ret, "fi_tsend");
}

/* Remote CQ data: of an honest write, or of the hostile peer's with its own key. */
static inline void endpoint_data(const struct event *e)
{
	uint64_t i = e->data - HONEST_DATA;

	if (e->data == FOE_DATA)
		add(&scene->foe_events);
	else if (i < PEERS && at_e->written[i] < seen(&scene->written[i]))
		at_e->written[i]++;
	else
		fail("an event was forged: flags %#llx, data %#llx, %zu bytes",
		     (unsigned long long)e->flags, (unsigned long long)e->data, e->len);
}

static inline void endpoint_event(const struct event *e)
{
	struct errand_of *o = e->context;

	if (!o) {
		if (e->err || !(e->flags & FI_REMOTE_CQ_DATA))
			fail("an event nobody caused: flags %#llx, error %d",
			     (unsigned long long)e->flags, e->err);
		endpoint_data(e);
		return;
	}
	if (o->errand != FOE_RECV && o->errand != FOE_TRECV && o->errand != FOE_OP && e->err)
		fail("%s of peer %u ended with %s",
		     o->errand == PEER_SEND ? "an echo" : "a receive", o->i, fi_strerror(e->err));
	if (o->errand == FOE_OP) {
		o->busy = false;
		return;
	}
	if (o->errand == LATE_RECV)
		add(&scene->late_seen);
	else if (o->errand == PEER_SEND)
		o = &at_e->recv[o->i];
	else if (o->errand == PEER_RECV) {
		endpoint_echo(o, e->len);
		return;
	} else {
		add(&scene->foe_events);
	}
	endpoint_recv(o);
}

/* ---- Operations to the hostile peer: they end somehow, or wait until it is gone ---- */

static inline ssize_t endpoint_start(struct errand_of *o, uint64_t kind)
{
	struct endpoint *e = at_e;

	switch (kind % 5) {
	case 0:
		return fi_tsend(e->n.ep, o->buf, 8, NULL, e->foe, FOE_TAG, o);
	case 1:
		return fi_tsend(e->n.ep, o->buf, 30000, NULL, e->foe, FOE_TAG, o);
	case 2:
		return fi_send(e->n.ep, o->buf, FOE_LEN * 8, NULL, e->foe, o);
	case 3:
		return fi_write(e->n.ep, o->buf, FOE_LEN, NULL, e->foe, 0, 5, o);
	default:
		return fi_read(e->n.ep, o->buf, FOE_LEN, NULL, e->foe, 0, 5, o);
	}
}

static inline void endpoint_kicked(void)
{
	struct fid_mr *mr;

	for (unsigned int i = 0; i < FOE_OPS; i++)
		if (!at_e->foe_op[i].busy)
			at_e->foe_op[i].busy = !endpoint_start(&at_e->foe_op[i], at_e->started++);
	/* A region that peers could have used is closed: nobody can make that wait. */
	must(fi_mr_reg(at_e->n.domain, at_e->scratch, FOE_LEN, FI_REMOTE_WRITE, 0, FOE_KEY + 1, 0,
		       &mr, NULL),
	     "fi_mr_reg");
	must(fi_close(&mr->fid), "fi_close");
}

/* Nobody has written what nobody may write. */
static inline void endpoint_memory(void)
{
	for (size_t i = 0; i < FOE_LEN; i++)
		if (at_e->read_only[i] != (unsigned char)(i * 7) || at_e->foe_memory[0][i] ||
		    at_e->foe_memory[2][i])
			fail("byte %zu of memory that peers cannot write was written", i);
}

/* ---- The endpoint's process ---- */

static inline void endpoint_region(void *buf, size_t len, uint64_t access, uint64_t key,
				   struct fid_mr **mr)
{
	must(fi_mr_reg(at_e->n.domain, buf, len, access, 0, key, 0, mr, NULL), "fi_mr_reg");
}

static inline void endpoint_errand(struct errand_of *o, enum errand errand, unsigned int i,
				   size_t len)
{
	*o = (struct errand_of){.errand = errand, .i = i, .buf = len ? calloc(1, len) : NULL};
}

static inline void endpoint_open(void)
{
	at_e = calloc(1, sizeof(*at_e));
	node_open(&at_e->n, NULL);
	at_e->memory = calloc(PEERS, LONGEST);
	for (size_t i = 0; i < FOE_LEN; i++)
		at_e->read_only[i] = (unsigned char)(i * 7);
	endpoint_region(at_e->memory, PEERS * LONGEST, FI_REMOTE_READ | FI_REMOTE_WRITE, HONEST_KEY,
			&at_e->mr[0]);
	endpoint_region(at_e->foe_memory[1], FOE_LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, FOE_KEY,
			&at_e->mr[1]);
	endpoint_region(at_e->read_only, FOE_LEN, FI_REMOTE_READ, READ_KEY, &at_e->mr[2]);
	scene->endpoint = node_name(&at_e->n);
	add(&scene->ready);
	await_word(&scene->ready, PEERS + 1, "the names");
	for (unsigned int i = 0; i < PEERS; i++) {
		at_e->peer[i] = node_insert(&at_e->n, &scene->peer[i]);
		endpoint_errand(&at_e->recv[i], PEER_RECV, i, LONGEST);
		endpoint_errand(&at_e->send[i], PEER_SEND, i, 0);
		endpoint_recv(&at_e->recv[i]);
	}
	at_e->foe = node_insert(&at_e->n, &scene->foe);
	for (unsigned int i = 0; i < 2 * FOE_SLOTS; i++) {
		endpoint_errand(&at_e->foe_recv[i], i % 2 ? FOE_RECV : FOE_TRECV, i, FOE_LEN);
		endpoint_recv(&at_e->foe_recv[i]);
	}
	for (unsigned int i = 0; i < FOE_OPS; i++)
		endpoint_errand(&at_e->foe_op[i], FOE_OP, i, FOE_LEN * 8);
	endpoint_errand(&at_e->late, LATE_RECV, 0, FOE_LEN);
	endpoint_recv(&at_e->late);
}

static inline void endpoint_process(void *arg)
{
	struct event e;

	(void)arg;
	endpoint_open();
	while (!seen(&scene->stop) || seen(&scene->peers_stopped) < PEERS) {
		if (node_poll(&at_e->n, &e))
			endpoint_event(&e);
		else
			usleep(20);
		if (seen(&scene->kicks) == at_e->kicks)
			continue;
		at_e->kicks = seen(&scene->kicks);
		endpoint_kicked();
		endpoint_memory();
	}
	while (node_poll(&at_e->n, &e))
		endpoint_event(&e);
	for (unsigned int i = 0; i < PEERS; i++)
		if (at_e->written[i] != seen(&scene->written[i]))
			fail("%llu writes with data of peer %u, events of %llu",
			     (unsigned long long)seen(&scene->written[i]), i,
			     (unsigned long long)at_e->written[i]);
	for (unsigned int i = 0; i < 3; i++)
		must(fi_close(&at_e->mr[i]->fid), "fi_close");
	node_close(&at_e->n);
}

#endif
