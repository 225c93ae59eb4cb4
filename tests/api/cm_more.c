/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connected endpoints with shared receive contexts, counters instead of queues, triggered and
 * deferred operations, and aliases. api_msg tests messages.
 */
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include "obj.h"
#include "lib/cm.h"

#define SHARERS 3

/* ---- Shared receive contexts ----------------------------------------------------------------- */

struct shared {
	struct cm c;
	struct fid_ep *srx;
	struct cm_end active[SHARERS], passive[SHARERS]; /* passive: with shared context */
};

static void open_shared(struct shared *s)
{
	struct obj_name name;
	struct fi_info *request;

	cm_domain(&s->c, 0, NULL);
	CHECK(s->c.o.info->domain_attr->max_ep_srx_ctx > 0);
	OK(fi_srx_context(s->c.o.domain, s->c.o.info->rx_attr, &s->srx, NULL));
	cm_listen(&s->c);
	name = obj_name(&s->c.pep->fid);
	for (int i = 0; i < SHARERS; i++) {
		cm_connect(&s->c, &s->active[i], &name);
		request = cm_request(&s->c);
		request->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
		cm_end(&s->c, &s->passive[i], request);
		OK(fi_ep_bind(s->passive[i].ep, &s->srx->fid, 0));
		OK(fi_enable(s->passive[i].ep));
		OK(fi_accept(s->passive[i].ep, NULL, 0));
		fi_freeinfo(request);
		EVENT(&s->c, s->passive[i].eq, FI_CONNECTED, &s->passive[i].ep->fid);
		EVENT(&s->c, s->active[i].eq, FI_CONNECTED, &s->active[i].ep->fid);
	}
}

/* Any connection uses the shared buffers. Buffers left by a closed connection serve the others. */
static void shared_context(struct api *a)
{
	uint64_t in[2 * SHARERS + 1], word;
	struct shared s;

	(void)a;
	open_shared(&s);
	for (int i = 0; i < 2 * SHARERS; i++)
		OK(fi_recv(s.srx, &in[i], 8, NULL, FI_ADDR_UNSPEC, &in[i]));
	for (int i = 0; i < SHARERS; i++) {
		word = 100 + (uint64_t)i;
		POST(s.active[i].cq, fi_inject(s.active[i].ep, &word, 8, 0));
		CHECK_EQ(obj_done(s.passive[i].cq, &in[i]).len, 8);
		CHECK_EQ(in[i], word);
	}
	cm_close_end(&s.c, &s.active[0]);
	EVENT(&s.c, s.passive[0].eq, FI_SHUTDOWN, &s.passive[0].ep->fid);
	obj_quiet(s.passive[0].cq, 5);
	cm_close_end(&s.c, &s.passive[0]);
	for (int i = 1; i < SHARERS; i++) {
		word = 200 + (uint64_t)i;
		POST(s.active[i].cq, fi_inject(s.active[i].ep, &word, 8, 0));
		obj_done(s.passive[i].cq, &in[SHARERS + i - 1]);
		CHECK_EQ(in[SHARERS + i - 1], word);
	}
	for (int i = 1; i < SHARERS; i++) {
		cm_close_end(&s.c, &s.active[i]);
		EVENT(&s.c, s.passive[i].eq, FI_SHUTDOWN, &s.passive[i].ep->fid);
		obj_quiet(s.passive[i].cq, 5);
		cm_close_end(&s.c, &s.passive[i]);
	}
	CLOSE(s.srx);
	cm_close(&s.c);
}

/* ---- Counters -------------------------------------------------------------------------------- */

struct counted {
	struct fid_eq *eq;
	struct fid_cntr *sent, *received;
	struct fid_ep *ep;
};

static void open_counted(struct cm *c, struct counted *e, struct fi_info *info)
{
	e->eq = cm_eq(c, FI_WAIT_UNSPEC);
	e->sent = obj_cntr(&c->o, FI_WAIT_NONE);
	e->received = obj_cntr(&c->o, FI_WAIT_UNSPEC);
	OK(fi_endpoint(c->o.domain, info, &e->ep, NULL));
	OK(fi_ep_bind(e->ep, &e->eq->fid, 0));
	OK(fi_ep_bind(e->ep, &e->sent->fid, FI_SEND));
	OK(fi_ep_bind(e->ep, &e->received->fid, FI_RECV));
	OK(fi_enable(e->ep));
}

static void close_counted(struct cm *c, struct counted *e)
{
	CLOSE(e->ep);
	CLOSE(e->sent);
	CLOSE(e->received);
	cm_close_eq(c, e->eq);
}

/* Counters without any completion queue. */
static void counters(struct api *a)
{
	struct counted active, passive;
	struct fi_info *request;
	uint64_t word = 9, heard = 0;
	struct obj_name name;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	cm_listen(&c);
	name = obj_name(&c.pep->fid);
	open_counted(&c, &active, c.o.info);
	OK(fi_connect(active.ep, name.bytes, NULL, 0));
	request = cm_request(&c);
	open_counted(&c, &passive, request);
	OK(fi_accept(passive.ep, NULL, 0));
	fi_freeinfo(request);
	EVENT(&c, passive.eq, FI_CONNECTED, &passive.ep->fid);
	EVENT(&c, active.eq, FI_CONNECTED, &active.ep->fid);
	OK(fi_recv(passive.ep, &heard, 8, NULL, 0, NULL));
	OK(fi_send(active.ep, &word, 8, NULL, 0, NULL));
	OK(fi_cntr_wait(passive.received, 1, OBJ_PATIENCE_MS));
	CHECK_EQ(heard, 9);
	CHECK_EQ(fi_cntr_read(active.sent), 1);
	close_counted(&c, &active);
	EVENT(&c, passive.eq, FI_SHUTDOWN, &passive.ep->fid);
	close_counted(&c, &passive);
	cm_close(&c);
}

/* ---- Address vectors ------------------------------------------------------------------------- */

/* A vector may be bound, and its entries may change at any time. Entry 0 is not the peer. */
static void vector(struct api *a)
{
	struct cm_end active, passive;
	struct obj_name name;
	fi_addr_t addr;
	struct cm c;

	(void)a;
	cm_domain(&c, FI_MSG, NULL);
	cm_listen(&c);
	name = obj_name(&c.pep->fid);
	c.o.av = obj_av(&c.o, FI_AV_TABLE, 0);
	cm_end(&c, &active, c.o.info);
	OK(fi_ep_bind(active.ep, &c.o.av->fid, 0));
	OK(fi_enable(active.ep));
	addr = obj_insert(c.o.av, &name);
	OK(fi_av_remove(c.o.av, &addr, 1, 0));
	OK(fi_connect(active.ep, name.bytes, NULL, 0));
	cm_accept(&c, &passive, cm_request(&c));
	EVENT(&c, active.eq, FI_CONNECTED, &active.ep->fid);
	addr = obj_insert(c.o.av, &name);
	cm_talk(&active, &passive);
	OK(fi_av_remove(c.o.av, &addr, 1, 0));
	cm_talk(&active, &passive);
	if (api_other()) /* other libraries may report no end, and keep the vector in use */
		return;
	addr = obj_insert(c.o.av, &name);
	cm_close_end(&c, &passive);
	EVENT(&c, active.eq, FI_SHUTDOWN, &active.ep->fid);
	OK(fi_av_remove(c.o.av, &addr, 1, 0));
	CHECK_EQ(fi_close(&c.o.av->fid), -FI_EBUSY);
	cm_close_end(&c, &active);
	cm_close(&c);
}

/*
 * ---- Triggered and deferred operations ---------------------------------------------------------
 */

/* A triggered send starts at its threshold; the address given is ignored. */
static void triggered(struct api *a)
{
	struct fi_triggered_context trigger = {.event_type = FI_TRIGGER_THRESHOLD};
	uint64_t word = 3, heard = 0;
	struct iovec iov = {&word, sizeof(word)};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &trigger};
	struct cm_end active, passive;
	struct fid_cntr *cntr;
	struct cm c;

	(void)a;
	cm_domain(&c, FI_MSG | FI_TRIGGER, NULL);
	cm_both(&c, &active, &passive);
	cntr = obj_cntr(&c.o, FI_WAIT_NONE);
	trigger.trigger.threshold.cntr = cntr;
	trigger.trigger.threshold.threshold = 2;
	OK(fi_recv(passive.ep, &heard, 8, NULL, 0, &heard));
	OK(fi_sendmsg(active.ep, &msg, FI_TRIGGER | FI_COMPLETION));
	OK(fi_cntr_add(cntr, 1));
	obj_quiet(passive.cq, 5);
	OK(fi_cntr_add(cntr, 1));
	obj_done(passive.cq, &heard);
	obj_done(active.cq, &trigger);
	CHECK_EQ(heard, 3);
	cm_close_end(&c, &active);
	cm_close_end(&c, &passive);
	CLOSE(cntr);
	cm_close(&c);
}

/* Deferred writes at the end of the connection: one completed before, one fails. */
static void deferred(struct api *a)
{
	uint64_t word = 0x77, target = 0;
	struct iovec iov = {&word, sizeof(word)};
	struct fi_rma_iov remote = {.len = sizeof(target)};
	struct fi_op_rma op[2];
	struct fi_deferred_work work[2];
	struct fid_cntr *start, *done;
	struct cm_end active, passive;
	struct fid_mr *mr;
	struct cm c;

	(void)a;
	cm_domain(&c, FI_MSG | FI_RMA | FI_TRIGGER, NULL);
	cm_both(&c, &active, &passive);
	OK(fi_mr_reg(c.o.domain, &target, sizeof(target), FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL));
	remote.key = fi_mr_key(mr);
	start = obj_cntr(&c.o, FI_WAIT_NONE);
	done = obj_cntr(&c.o, FI_WAIT_NONE);
	for (size_t i = 0; i < 2; i++) {
		op[i] = (struct fi_op_rma){.ep = active.ep,
					   .msg = {.msg_iov = &iov,
						   .iov_count = 1,
						   .addr = 4711,
						   .rma_iov = &remote,
						   .rma_iov_count = 1}};
		work[i] = (struct fi_deferred_work){.threshold = i + 1,
						    .triggering_cntr = start,
						    .completion_cntr = done,
						    .op_type = FI_OP_WRITE,
						    .op.rma = &op[i]};
		OK(fi_control(&c.o.domain->fid, FI_QUEUE_WORK, &work[i]));
	}
	OK(fi_cntr_add(start, 1));
	OBJ_UNTIL(fi_cntr_read(done) == 1, cm_progress(&c));
	CHECK_EQ(target, 0x77);
	cm_close_end(&c, &passive);
	EVENT(&c, active.eq, FI_SHUTDOWN, &active.ep->fid);
	OK(fi_cntr_add(start, 1));
	OBJ_UNTIL(fi_cntr_readerr(done) == 1, cm_progress(&c));
	CHECK_EQ(fi_cntr_read(done), 1);
	cm_close_end(&c, &active);
	CLOSE(mr);
	CLOSE(start);
	CLOSE(done);
	cm_close(&c);
}

/* An alias opened before the connection shares it until after its end. */
static void alias(struct api *a)
{
	struct cm_end active, passive;
	uint64_t word = 6, heard = 0;
	struct fid_ep *early, *late;
	struct obj_name name, peer;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	cm_listen(&c);
	name = obj_name(&c.pep->fid);
	cm_end(&c, &active, c.o.info);
	OK(fi_ep_alias(active.ep, &early, FI_TRANSMIT | FI_COMPLETION));
	OK(fi_connect(early, name.bytes, NULL, 0));
	cm_accept(&c, &passive, cm_request(&c));
	EVENT(&c, active.eq, FI_CONNECTED, &active.ep->fid);
	OK(fi_ep_alias(active.ep, &late, FI_TRANSMIT | FI_COMPLETION));
	peer = cm_peer(late);
	CHECK(!memcmp(peer.bytes, name.bytes, name.len));
	for (int i = 0; i < 2; i++) {
		OK(fi_recv(passive.ep, &heard, 8, NULL, 0, &heard));
		word++;
		OK(fi_send(i ? late : early, &word, 8, NULL, 0, &word));
		obj_done(passive.cq, &heard);
		obj_done(active.cq, &word);
		CHECK_EQ(heard, word);
	}
	OK(fi_shutdown(late, 0));
	EVENT(&c, active.eq, FI_SHUTDOWN, &active.ep->fid);
	CHECK_EQ(fi_send(early, &word, 8, NULL, 0, &word), -FI_ENOTCONN);
	CHECK_EQ(fi_recv(late, &word, 8, NULL, 0, &word), -FI_ENOTCONN);
	CLOSE(early);
	CLOSE(late);
	cm_close_both(&c, &active, &passive);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"shared-context", shared_context, 1, {0}},
		{"counters", counters, 1, {0}},
		{"vector", vector, 1, {0}},
		{"triggered", triggered, 1, {0}},
		{"deferred", deferred, 1, {0}},
		{"alias", alias, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
