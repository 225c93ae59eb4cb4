/* SPDX-License-Identifier: BSD-2-Clause */
/* A link over two fake devices, which note what is posted to them. */
#ifndef UNIT_FAKE_RAILS_H
#define UNIT_FAKE_RAILS_H

#include <arpa/inet.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/forked.h"
#include "core/domain.h"
#include "hw/verbs/rails/verbs_rails.h"
#include "suite.h"
#include "xfer/events.h"
#include "xfer/worker.h"

#define SENDS     64
#define REQUESTS  256
#define QUESTIONS 8
#define LONG      ((size_t)1 << 20)
#define PEER      7u

/* A request for RDMA that a fake device has been given. */
struct request {
	uint64_t number, at;
	uint32_t len, rkey;
	unsigned char first; /* byte of our memory */
};

/* A rail: a device of ours, its end of the link, and what was posted. */
struct end {
	struct verbs_dev dev;
	struct ibv_context ctx;
	struct ibv_cq cq;
	struct ibv_srq srq;
	struct ibv_qp qp, direct;
	struct verbs_link *l;
	struct verbs_head sent[SENDS];
	char first[SENDS];              /* first byte of each payload */
	const char *from[SENDS];        /* where the device reads each payload */
	struct verbs_rail_message said; /* the last message about rails */
	unsigned int sends;
	struct verbs_head credit[SENDS];  /* packets of credits alone: a ring */
	unsigned int alone, pings;        /* number of these, and of requests without bytes */
	unsigned int slots;               /* posted to receive packets */
	unsigned int slots_before;        /* so many were, at the last packet of credits */
	uint32_t returned;                /* credits, by packets of their own */
	struct request request[REQUESTS]; /* a ring */
	unsigned int requests, done;
	unsigned int access; /* of the peer, by the queue pair for packets */
	int refusal;         /* error of posting further requests; 0: none */
};

static struct end ends[VERBS_RAILS];
static struct verbs v;
static struct verbs_multi multi;
static struct domain dom;
/* Without an endpoint: it knows no peer. */
static struct worker worker = {.conn.opener = {.events = &worker_events, .dom = &dom}};
static struct verbs_rails *r;
static struct link *link_made;
static struct ibv_mr mr;
static unsigned char *memory; /* that a message is read to */
static unsigned char times_read[LONG];
static struct verbs_rail_message asked; /* the last question about a key; `what` 0: answered */
static struct verbs_rail_message question[QUESTIONS]; /* all of them: a ring */
static unsigned int questions;
static unsigned int made; /* queue pairs */
static unsigned int registrations, registrations_max, deregistrations;

static inline struct verbs *device(unsigned int i)
{
	return i ? &multi.further[0] : &v;
}

static inline int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct end *e = qp->qp_context;

	(void)bad;
	if (!wr->num_sge) {
		e->pings++;
		return 0;
	}
	if (qp == &e->direct && e->refusal)
		return e->refusal;
	if (qp == &e->direct) {
		e->request[e->requests++ % REQUESTS] = (struct request){
			wr->wr_id, wr->wr.rdma.remote_addr, wr->sg_list[0].length, wr->wr.rdma.rkey,
			*(unsigned char *)(uintptr_t)wr->sg_list[0].addr};
		return 0;
	}
	memcpy(&e->sent[e->sends], (void *)(uintptr_t)wr->sg_list[0].addr, sizeof(e->sent[0]));
	e->from[e->sends] = (char *)(uintptr_t)wr->sg_list[0].addr + sizeof(e->sent[0]);
	if (wr->sg_list[0].length > sizeof(e->sent[0]))
		e->first[e->sends] = *e->from[e->sends];
	if (e->sent[e->sends].flags & VERBS_RAIL) {
		memcpy(&e->said, e->from[e->sends], sizeof(e->said));
		if (e->said.what == VERBS_RAIL_KEY_ASKED)
			question[questions++ % QUESTIONS] = asked = e->said;
	}
	if (e->sent[e->sends].head) {
		e->sends++;
	} else {
		e->credit[e->alone++ % SENDS] = e->sent[e->sends];
		e->slots_before = e->slots;
		e->returned += e->sent[e->sends].freed;
	}
	return 0;
}

static inline int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
				struct ibv_recv_wr **bad)
{
	(void)wr;
	(void)bad;
	LIST_ENTRY(srq, struct end, srq)->slots++;
	return 0;
}

static inline int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
	(void)cq;
	(void)most;
	(void)wc;
	return 0;
}

static inline int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct end *e = qp->qp_context;

	if (qp == &e->qp && mask & IBV_QP_ACCESS_FLAGS)
		e->access = attr->qp_access_flags;
	return 0;
}

/* The first device makes its two by turns. */
static inline struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	(void)pd;
	(void)init;
	return made++ % 2 ? &ends[0].direct : &ends[0].qp;
}

static inline int destroy_qp(struct ibv_qp *qp)
{
	(void)qp;
	return 0;
}

static inline struct ibv_mr *reg_mr(struct ibv_pd *pd, void *at, size_t len, int access)
{
	(void)pd;
	(void)at;
	(void)len;
	(void)access;
	return ++registrations > registrations_max ? NULL : &mr;
}

static inline int dereg_mr(struct ibv_mr *of)
{
	(void)of;
	deregistrations++;
	return 0;
}

/* Nothing has read yet that the device of the rail was taken away. */
static inline void take_away(unsigned int rail)
{
	ends[rail].ctx.async_fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
}

static inline int get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	uint64_t count;

	*event = (struct ibv_async_event){.event_type = IBV_EVENT_DEVICE_FATAL};
	return read(ctx->async_fd, &count, sizeof(count)) == sizeof(count) ? 0 : -1;
}

static inline void ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

static const struct verbs_lib lib = {.create_qp = create_qp,
				     .modify_qp = modify_qp,
				     .destroy_qp = destroy_qp,
				     .reg_mr = reg_mr,
				     .dereg_mr = dereg_mr,
				     .get_async_event = get_async_event,
				     .ack_async_event = ack_async_event};

static inline struct verbs_link *make_link(unsigned int i)
{
	struct verbs *own = device(i);
	struct verbs_link *l = pool_get(&own->links);

	*l = (struct verbs_link){.link = {.eager_max = VERBS_PACKET_MAX},
				 .own = own,
				 .qp = &ends[i].qp,
				 .window = verbs_grant(own),
				 .inline_max = VERBS_INLINE,
				 .heard = true};
	memset(l->slots, 0xff, sizeof(l->slots));
	list_init(&l->in_all);
	list_init(&l->in_attend);
	list_init(&l->direct.rdma_posted);
	l->direct.qp = &ends[i].direct;
	l->direct.read_max = VERBS_READ_MAX;
	l->direct.write_max = VERBS_WRITE_MAX;
	return l;
}

static inline void make_device(unsigned int i)
{
	struct end *e = &ends[i];
	struct verbs *own = device(i);

	memset(e, 0, sizeof(*e));
	e->ctx.ops.post_send = post_send;
	e->ctx.ops.post_srq_recv = post_srq_recv;
	e->ctx.ops.poll_cq = poll_cq;
	e->ctx.async_fd = -1;
	e->dev = (struct verbs_dev){.lib = &lib,
				    .ctx = &e->ctx,
				    .cache_asked = true,
				    .nodes_fd = -1,
				    .removed_fd = -1,
				    .forked = forked_count(),
				    .attr = {.max_qp_rd_atom = 16,
					     .max_qp_init_rd_atom = 16,
					     .max_srq_wr = VERBS_CHUNK * VERBS_CHUNKS}};
	e->qp = (struct ibv_qp){.context = &e->ctx, .qp_context = e, .qp_num = 2 * i + 1};
	e->srq.context = &e->ctx;
	e->cq.context = &e->ctx;
	e->cq.cqe = INT_MAX;
	e->direct = (struct ibv_qp){.context = &e->ctx, .qp_context = e, .qp_num = 2 * i + 2};
	verbs_state_init(own, &worker.conn.opener, NULL);
	own->path = (struct verbs_path){.dev = &e->dev, .mtu = IBV_MTU_1024};
	own->cq = &e->cq;
	own->srq = &e->srq;
	verbs_slots_init(&own->send, &e->dev, VERBS_SLOT);
	verbs_slots_init(&own->recv, &e->dev, VERBS_SLOT);
	e->l = make_link(i);
}

static const struct wire_hello hello = {.nic = {.qpn = 1,
						.window = VERBS_WINDOW,
						.mtu = IBV_MTU_1024,
						.reads = 4,
						.direct_qpn = 2}};

/* The link as both hellos and the agreement on the second rail leave it. */
static inline void setup(void)
{
	struct link_peer peer = {.hello = &hello, .id = PEER};

	memset(&v, 0, sizeof(v));
	memset(&multi, 0, sizeof(multi));
	memset(times_read, 0, sizeof(times_read));
	memset(&asked, 0, sizeof(asked));
	memory = malloc(LONG);
	questions = 0;
	registrations_max = UINT32_MAX;
	multi.count = 1;
	list_init(&multi.links);
	verbs_transfer_pool(&multi.pieces);
	v.multi = &multi;
	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		make_device(i);
	peer.pending = ends[0].l;
	ck_assert_int_eq(verbs_rails_here.connect(ends[0].l, &peer, &link_made), 0);
	r = (struct verbs_rails *)link_made;
	verbs_rails_add(r, 1, ends[1].l, 1);
	ck_assert_int_eq(verbs_link_join(ends[1].l, &hello.nic, PEER), 0);
	r->rail[1].proven = true;
	r->rail[1].device = device(1);
	verbs_rails_update(r);
	registrations = deregistrations = 0;
}

static inline void teardown(void)
{
	link_made->ops->close(link_made);
	for (unsigned int i = 0; i < VERBS_RAILS; i++) {
		close(ends[i].ctx.async_fd);
		verbs_slots_fini(&device(i)->send, false);
		verbs_slots_fini(&device(i)->recv, false);
		pool_fini(&device(i)->links);
		pool_fini(&device(i)->rdma_posted);
	}
	pool_fini(&multi.pieces);
	free(memory);
}

static inline int send_byte(char c)
{
	return link_made->ops->send(link_made, &c, 1, 0, WIRE_HEAD(WIRE_RTS, 0, 0, 0), 0);
}

static inline void send_bytes(const char *text)
{
	for (; *text; text++)
		ck_assert_int_eq(send_byte(*text), 0);
}

/*
 * The sends of a rail have these first bytes, and numbers from `number` on. A message about rails is
 * a star, the disconnect message, which has no number, an exclamation mark.
 */
static inline void has_sent(unsigned int rail, const char *text, uint32_t number)
{
	const struct end *e = &ends[rail];

	ck_assert_uint_eq(e->sends, strlen(text));
	for (unsigned int i = 0; i < e->sends; i++) {
		if (text[i] == '!') {
			ck_assert_uint_eq(wire_op(e->sent[i].head), WIRE_DISCONNECT);
			continue;
		}
		if (text[i] != '*')
			ck_assert_int_eq(e->first[i], text[i]);
		ck_assert_int_eq(!!(e->sent[i].flags & VERBS_RAIL), text[i] == '*');
		ck_assert_uint_eq(e->sent[i].flags >> VERBS_NUMBER, number + i);
	}
}

static inline void breaks(unsigned int rail)
{
	verbs_fail(ends[rail].l, FI_ETIMEDOUT);
	verbs_rails_here.broke(ends[rail].l);
}

static inline void credit(unsigned int rail, uint32_t count)
{
	ends[rail].l->credits += count;
	verbs_rails_credited(ends[rail].l, count);
}

/* The rail has another link, which works. */
static inline void comes_again(unsigned int rail)
{
	bool reaches = ends[rail].l->link.reaches;

	ends[rail].l = make_link(rail);
	verbs_rails_add(r, rail, ends[rail].l, r->rail[rail].serial + 1);
	ck_assert_int_eq(verbs_link_join(ends[rail].l, &hello.nic, PEER), 0);
	ends[rail].l->link.reaches = reaches;
	r->rail[rail].proven = true;
	verbs_rails_update(r);
}

/* The peer says something about a rail by packet `number` over rail `over`. */
static inline void hears(unsigned int over, uint32_t number, const struct verbs_rail_message *m,
			 size_t len)
{
	const struct packet p = {.head = WIRE_HEAD(WIRE_MSG, 0, 0, 0), .payload = m, .len = len};

	ck_assert(!verbs_rails_take(ends[over].l, number << VERBS_NUMBER | VERBS_RAIL, &p));
}

/* It does so by its next packet, over the rail that carries ours. */
static inline void hears_next(const struct verbs_rail_message *m)
{
	hears(r->active, r->got + 1, m, sizeof(*m));
}

/* A packet without a payload arrives over the rail. */
static inline void arrives(unsigned int rail, const struct verbs_head *h)
{
	struct verbs *own = device(rail);
	struct verbs_link *l = ends[rail].l;

	ck_assert(own->recv.count || !verbs_slots_grow(&own->recv));
	memcpy(verbs_slots_at(&own->recv, 0), h, sizeof(*h));
	own->wc[0] = (struct ibv_wc){.byte_len = sizeof(*h),
				     .imm_data = htonl(pool_id(l)),
				     .qp_num = l->qp->qp_num,
				     .wc_flags = IBV_WC_WITH_IMM};
	own->got = 1;
	own->up = true;
	own->progress_calls = 0; /* no events are read */
	verbs_progress_device(own);
	own->up = false;
}

/* The device of the rail completes its oldest request. Returns its bytes; 0: there is none. */
static inline size_t complete(unsigned int rail)
{
	struct end *e = &ends[rail];
	const struct request *done = &e->request[e->done % REQUESTS];
	struct ibv_wc wc = {.wr_id = done->number, .qp_num = e->direct.qp_num};

	if (e->done == e->requests)
		return 0;
	e->done++;
	ck_assert_uint_eq(done->rkey, rail ? 22 : 11);
	ck_assert_uint_le(done->at + done->len, LONG);
	for (uint32_t i = 0; i < done->len; i++)
		times_read[done->at + i]++;
	verbs_rdma_done(e->l, &wc, false);
	return done->len;
}

#endif
