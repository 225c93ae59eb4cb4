/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists of segments whose lengths are more than a size_t holds: each call refuses them, and nothing is sent, received,
 * read or written.
 */
#include "obj.h"
#include "lib/data.h"
#include "lib/rig.h"

#define MOST 3 /* segments of a list */

/* In the sum, modulo 2^64, each has 0, 8 or 1000 bytes: short operations to who adds without care. */
static const size_t lengths[][MOST] = {
	{SIZE_MAX, 1, 0},
	{8, SIZE_MAX, 1},
	{SIZE_MAX / 2 + 1, 1000, SIZE_MAX / 2 + 1},
	{SIZE_MAX / 2 + 5, SIZE_MAX / 2 + 5, 0},
};

/* The same list as each kind of call takes it. */
struct lists {
	struct iovec iov[MOST];
	struct fi_rma_iov remote[MOST];
	struct fi_ioc ioc[MOST];
	struct fi_rma_ioc remote_ioc[MOST];
	struct fi_ioc one; /* element of an atomic */
	struct fi_rma_ioc remote_one;
};

static char memory[1000];
static uint64_t element;

static struct fi_msg message(const struct rig *r, const struct lists *l, fi_addr_t addr)
{
	(void)r;
	return (struct fi_msg){
		.msg_iov = l->iov, .iov_count = MOST, .addr = addr, .context = memory};
}

static struct fi_msg_tagged tagged(const struct rig *r, const struct lists *l, fi_addr_t addr)
{
	(void)r;
	return (struct fi_msg_tagged){
		.msg_iov = l->iov, .iov_count = MOST, .addr = addr, .context = memory};
}

static struct fi_msg_rma rma(const struct rig *r, const struct lists *l)
{
	return (struct fi_msg_rma){.msg_iov = l->iov,
				   .iov_count = MOST,
				   .addr = r->self,
				   .rma_iov = l->remote,
				   .rma_iov_count = MOST,
				   .context = memory};
}

static struct fi_msg_atomic atomic(const struct rig *r, const struct lists *l)
{
	return (struct fi_msg_atomic){.msg_iov = l->ioc,
				      .iov_count = MOST,
				      .addr = r->self,
				      .rma_iov = l->remote_ioc,
				      .rma_iov_count = MOST,
				      .datatype = FI_UINT64,
				      .op = FI_SUM,
				      .context = memory};
}

static ssize_t sends(struct rig *r, struct lists *l, int form)
{
	struct fi_msg m = message(r, l, r->self);
	struct fi_msg_tagged t = tagged(r, l, r->self);
	uint64_t flags = form & 4 ? FI_INJECT : form & 8 ? FI_DELIVERY_COMPLETE : 0;

	switch (form & 3) {
	case 0:
		return fi_sendv(r->o.ep, l->iov, NULL, MOST, r->self, memory);
	case 1:
		return fi_tsendv(r->o.ep, l->iov, NULL, MOST, r->self, 7, memory);
	case 2:
		return fi_sendmsg(r->o.ep, &m, flags);
	default:
		return fi_tsendmsg(r->o.ep, &t, flags);
	}
}

static ssize_t receives(struct rig *r, struct lists *l, int form)
{
	struct fi_msg m = message(r, l, FI_ADDR_UNSPEC);
	struct fi_msg_tagged t = tagged(r, l, FI_ADDR_UNSPEC);

	switch (form & 3) {
	case 0:
		return fi_recvv(r->o.ep, l->iov, NULL, MOST, FI_ADDR_UNSPEC, memory);
	case 1:
		return fi_trecvv(r->o.ep, l->iov, NULL, MOST, FI_ADDR_UNSPEC, 7, 0, memory);
	case 2:
		return fi_recvmsg(r->o.ep, &m, 0);
	default:
		return fi_trecvmsg(r->o.ep, &t, 0);
	}
}

static ssize_t onesided(struct rig *r, struct lists *l, int form)
{
	struct iovec short_list = {memory, 8};
	struct fi_msg_rma m = rma(r, l);

	if (form & 4) {
		m.msg_iov = &short_list;
		m.iov_count = 1;
	}
	switch (form & 3) {
	case 0:
		return fi_writev(r->o.ep, l->iov, NULL, MOST, r->self, r->base, r->key, memory);
	case 1:
		return fi_readv(r->o.ep, l->iov, NULL, MOST, r->self, r->base, r->key, memory);
	case 2:
		return fi_writemsg(r->o.ep, &m, form & 8 ? FI_INJECT : 0);
	default:
		return fi_readmsg(r->o.ep, &m, 0);
	}
}

static ssize_t vectors(struct rig *r, struct lists *l, int form)
{
	switch (form) {
	case 0:
		return fi_atomicv(r->o.ep, l->ioc, NULL, MOST, r->self, r->base, r->key, FI_UINT64,
				  FI_SUM, memory);
	case 1:
		return fi_fetch_atomicv(r->o.ep, &l->one, NULL, 1, l->ioc, NULL, MOST, r->self,
					r->base, r->key, FI_UINT64, FI_SUM, memory);
	case 2:
		return fi_fetch_atomicv(r->o.ep, l->ioc, NULL, MOST, &l->one, NULL, 1, r->self,
					r->base, r->key, FI_UINT64, FI_SUM, memory);
	default:
		return fi_compare_atomicv(r->o.ep, &l->one, NULL, 1, l->ioc, NULL, MOST, &l->one,
					  NULL, 1, r->self, r->base, r->key, FI_UINT64, FI_CSWAP,
					  memory);
	}
}

static ssize_t atomics(struct rig *r, struct lists *l, int form)
{
	struct fi_msg_atomic m = atomic(r, l);

	if (form & 4)
		return vectors(r, l, form & 3);
	if (form & 8) {
		m.rma_iov = &l->remote_one;
		m.rma_iov_count = 1;
	}
	switch (form & 3) {
	case 0:
		return fi_atomicmsg(r->o.ep, &m, 0);
	case 1:
		return fi_fetch_atomicmsg(r->o.ep, &m, l->ioc, NULL, MOST, 0);
	default:
		m.op = FI_CSWAP;
		return fi_compare_atomicmsg(r->o.ep, &m, l->ioc, NULL, MOST, l->ioc, NULL, MOST, 0);
	}
}

/* The same by deferred work, which is checked when it is queued. */
static ssize_t defers(struct rig *r, struct lists *l, int form)
{
	struct fi_op_msg m = {.ep = r->o.ep, .msg = message(r, l, r->self)};
	struct fi_op_tagged t = {.ep = r->o.ep, .msg = tagged(r, l, r->self)};
	struct fi_op_rma one = {.ep = r->o.ep, .msg = rma(r, l)};
	struct fi_op_atomic a = {.ep = r->o.ep, .msg = atomic(r, l)};
	struct fi_deferred_work work = {.triggering_cntr = r->sent, .threshold = 1000};
	static const enum fi_op_type types[] = {FI_OP_SEND, FI_OP_TSEND, FI_OP_RECV,  FI_OP_TRECV,
						FI_OP_READ, FI_OP_WRITE, FI_OP_ATOMIC};

	work.op_type = types[form % (int)API_COUNT(types)];
	if (work.op_type == FI_OP_SEND || work.op_type == FI_OP_RECV)
		work.op.msg = &m;
	else if (work.op_type == FI_OP_TSEND || work.op_type == FI_OP_TRECV)
		work.op.tagged = &t;
	else if (work.op_type == FI_OP_ATOMIC)
		work.op.atomic = &a;
	else
		work.op.rma = &one;
	return fi_control(&r->o.domain->fid, FI_QUEUE_WORK, &work);
}

/* By triggered operations. */
static ssize_t triggers(struct rig *r, struct lists *l, int form)
{
	struct fi_triggered_context2 trigger = {
		.event_type = FI_TRIGGER_THRESHOLD,
		.trigger.threshold = {.cntr = r->sent, .threshold = 1000}};
	struct fi_msg m = message(r, l, form ? FI_ADDR_UNSPEC : r->self);
	struct fi_msg_tagged t = tagged(r, l, form & 1 ? FI_ADDR_UNSPEC : r->self);

	m.context = t.context = &trigger;
	switch (form & 3) {
	case 0:
		return fi_sendmsg(r->o.ep, &m, FI_TRIGGER);
	case 1:
		return fi_recvmsg(r->o.ep, &m, FI_TRIGGER);
	case 2:
		return fi_tsendmsg(r->o.ep, &t, FI_TRIGGER);
	default:
		return fi_trecvmsg(r->o.ep, &t, FI_TRIGGER);
	}
}

static ssize_t registers(struct rig *r, struct lists *l, int form)
{
	struct fi_mr_attr attr = {
		.mr_iov = l->iov, .iov_count = MOST, .access = FI_REMOTE_WRITE, .requested_key = 9};
	struct fid_mr *mr;

	/* No segment alone leaves the address space. */
	for (int i = 0; i < MOST; i++)
		l->iov[i].iov_base = NULL;
	if (form)
		return fi_mr_regattr(r->o.domain, &attr, 0, &mr);
	return fi_mr_regv(r->o.domain, l->iov, MOST, FI_REMOTE_WRITE, 0, 9, 0, &mr, NULL);
}

static const struct {
	const char *name;
	ssize_t (*call)(struct rig *r, struct lists *l, int form);
	int forms;
	int error;
} calls[] = {
	{"a send", sends, 12, -FI_EMSGSIZE},
	{"a receive", receives, 4, -FI_EMSGSIZE},
	{"a read or write", onesided, 12, -FI_EMSGSIZE},
	{"an atomic", atomics, 12, -FI_EMSGSIZE},
	{"deferred work", defers, 7, -FI_EMSGSIZE},
	{"a triggered operation", triggers, 4, -FI_EMSGSIZE},
	{"a registration", registers, 2, -FI_EINVAL},
};

static void fill(const struct rig *r, struct lists *l, const size_t *length)
{
	for (int i = 0; i < MOST; i++) {
		l->iov[i] = (struct iovec){memory, length[i]};
		l->remote[i] = (struct fi_rma_iov){r->base, length[i], r->key};
		l->ioc[i] = (struct fi_ioc){memory, length[i]};
		l->remote_ioc[i] = (struct fi_rma_ioc){r->base, length[i], r->key};
	}
	l->one = (struct fi_ioc){&element, 1};
	l->remote_one = (struct fi_rma_ioc){r->base, 1, r->key};
}

static void refused(struct api *a)
{
	struct lists l;
	struct rig r;

	(void)a;
	rig_open(&r, &(struct rig_opts){.caps = FI_TRIGGER});
	api_at(__FILE__, __LINE__);
	for (size_t c = 0; c < API_COUNT(calls); c++)
		for (int n = 0; n < calls[c].forms * (int)API_COUNT(lengths); n++) {
			char text[80];

			snprintf(text, sizeof(text), "%s, form %d, list %d", calls[c].name,
				 n % calls[c].forms, n / calls[c].forms);
			fill(&r, &l, lengths[n / calls[c].forms]);
			api_check_eq(calls[c].call(&r, &l, n % calls[c].forms), calls[c].error,
				     text);
		}
	rig_progress_calls(&r);
	CHECK_EQ(fi_cq_read(r.o.cq, NULL, 0), -FI_EAGAIN);
	CHECK_EQ(fi_cntr_read(r.sent) + fi_cntr_read(r.received) + fi_cntr_read(r.reads) +
			 fi_cntr_read(r.writes),
		 0);
	CHECK(data_all((unsigned char *)r.words, sizeof(r.words), 0));
	rig_close(&r);
}

/* A refused receive leaves the message claimed. */
static void claimed(struct api *a)
{
	static char got[8];
	struct fi_context2 context;
	struct fi_msg_tagged t = {.addr = FI_ADDR_UNSPEC, .tag = 7, .context = &context};
	struct fi_cq_tagged_entry e;
	struct lists l;
	struct rig r;
	ssize_t ret;

	(void)a;
	rig_open(&r, &(struct rig_opts){0});
	fill(&r, &l, lengths[0]);
	POST(r.o.cq, fi_tinject(r.o.ep, "claimed", 8, r.self, 7));
	do {
		fi_cq_readerr(r.o.cq, &(struct fi_cq_err_entry){0}, 0);
		OK(fi_trecvmsg(r.o.ep, &t, FI_PEEK | FI_CLAIM));
		OBJ_UNTIL((ret = fi_cq_read(r.o.cq, &e, 1)) != -FI_EAGAIN, );
	} while (ret != 1);
	t.msg_iov = l.iov;
	t.iov_count = MOST;
	CHECK_EQ(fi_trecvmsg(r.o.ep, &t, FI_CLAIM), -FI_EMSGSIZE);
	t.msg_iov = &(struct iovec){got, sizeof(got)};
	t.iov_count = 1;
	OK(fi_trecvmsg(r.o.ep, &t, FI_CLAIM));
	CHECK_EQ(obj_next(r.o.cq, NULL).len, 8);
	CHECK(!strcmp(got, "claimed"));
	rig_close(&r);
}

/* The same calls of a datagram endpoint. */
static void datagrams(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_MSG)};
	struct rig r = {.self = 0};
	struct lists l;

	(void)a;
	free(o.hints->fabric_attr->prov_name);
	o.hints->fabric_attr->prov_name = strdup("udp");
	o.hints->ep_attr->type = FI_EP_DGRAM;
	obj_open(&o);
	r.o = o;
	r.self = obj_insert_ep(o.av, o.ep);
	for (size_t i = 0; i < API_COUNT(lengths); i++) {
		fill(&r, &l, lengths[i]);
		for (int form = 0; form < 8; form += 2) {
			CHECK_EQ(sends(&r, &l, form), -FI_EMSGSIZE);
			CHECK_EQ(receives(&r, &l, form), -FI_EMSGSIZE);
		}
	}
	CHECK_EQ(fi_cq_read(o.cq, NULL, 0), -FI_EAGAIN);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {{"refused", refused, 1, {0}},
						{"claimed", claimed, 1, {0}},
						{"datagrams", datagrams, 1, {0}}};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
