/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects that are closed while others use them, or twice, and what was closed before. fi_fabric(3) and the objects' pages. */
#include "obj.h"
#include "lib/rig.h"
#include "lib/misuse.h"

/* ---- In use ---- */

MISUSE(close_fabric, -FI_EBUSY, fi_close(&b->r.o.fabric->fid));
MISUSE(close_domain, -FI_EBUSY, fi_close(&DOMAIN(b)->fid));
MISUSE(close_vector, -FI_EBUSY, fi_close(&b->r.o.av->fid));
MISUSE(close_queue, -FI_EBUSY, fi_close(&b->r.o.cq->fid));
MISUSE(close_counter, -FI_EBUSY, fi_close(&b->r.sent->fid));

/* What is bound to, or made of, another object; `other` cannot be closed before. */
static ssize_t kept(struct fid *user, struct fid *other)
{
	ssize_t ret = fi_close(other);

	OK(fi_close(user));
	if (ret)
		OK(fi_close(other));
	return ret;
}

static ssize_t bound(struct bench *b, int what)
{
	struct fi_cq_attr in_set = {.wait_obj = FI_WAIT_SET, .wait_set = b->waits};
	struct fid_wait *waits = b->waits;
	struct fid_eq *eq = b->eq;
	struct fid_ep *ep = b->idle, *alias;
	struct fid_poll *polls = b->polls;
	struct fid_stx *stx;
	struct fid_cq *cq;

	switch (what) {
	case 0:
		b->eq = NULL;
		b->idle = NULL;
		OK(fi_ep_bind(ep, &eq->fid, 0));
		return kept(&ep->fid, &eq->fid);
	case 1:
		b->waits = NULL;
		OK(fi_cq_open(DOMAIN(b), &in_set, &cq, NULL));
		return kept(&cq->fid, &waits->fid);
	case 2:
		b->polls = NULL;
		cq = obj_cq(&b->r.o, FI_WAIT_NONE);
		OK(fi_poll_add(polls, &cq->fid, 0));
		CHECK_EQ(fi_close(&cq->fid), -FI_EBUSY);
		CHECK_EQ(fi_close(&polls->fid), -FI_EBUSY);
		OK(fi_poll_del(polls, &cq->fid, 0));
		return kept(&polls->fid, &cq->fid) ?: -FI_EBUSY;
	case 3:
		b->idle = NULL;
		OK(fi_ep_alias(ep, &alias, FI_TRANSMIT));
		return kept(&alias->fid, &ep->fid);
	case 4:
		OK(fi_stx_context(DOMAIN(b), NULL, &stx, NULL));
		b->idle = NULL;
		OK(fi_ep_bind(ep, &stx->fid, 0));
		return kept(&ep->fid, &stx->fid);
	case 5:
		OK(fi_srx_context(DOMAIN(b), b->info->rx_attr, &alias, NULL));
		b->idle = NULL;
		OK(fi_ep_bind(ep, &alias->fid, 0));
		return kept(&ep->fid, &alias->fid);
	}
	return 0;
}

MISUSE(close_event_queue, -FI_EBUSY, bound(b, 0));
MISUSE(close_wait_set, -FI_EBUSY, bound(b, 1));
MISUSE(close_polled_queue, -FI_EBUSY, bound(b, 2));
MISUSE(close_aliased, -FI_EBUSY, bound(b, 3));
MISUSE(close_shared_transmit, ANY, bound(b, 4));
MISUSE(close_shared_receive, -FI_EBUSY, bound(b, 5));

/* Work that waits for a counter keeps it; cancelled, it does not. */
static ssize_t awaited(struct bench *b)
{
	struct fid_cntr *start = obj_cntr(&b->r.o, FI_WAIT_NONE);
	struct fi_op_cntr op = {.cntr = b->r.sent, .value = 1};
	struct fi_deferred_work work = {.threshold = 5,
					.triggering_cntr = start,
					.op_type = FI_OP_CNTR_ADD,
					.op.cntr = &op};
	ssize_t ret;

	OK(fi_control(&DOMAIN(b)->fid, FI_QUEUE_WORK, &work));
	ret = fi_close(&start->fid);
	OK(fi_control(&DOMAIN(b)->fid, FI_CANCEL_WORK, &work));
	CLOSE(start);
	return ret;
}

MISUSE(close_awaited_counter, -FI_EBUSY, awaited(b));

/* ---- Under way: nothing of it is reported or written after the close ---- */

static ssize_t close_with_receives(struct bench *b)
{
	for (int i = 0; i < 8; i++)
		OK(fi_recv(EP(b), b->bytes, 8, NULL, FI_ADDR_UNSPEC, b));
	CLOSE(EP(b));
	EP(b) = NULL;
	return 0;
}

static ssize_t close_with_trigger(struct bench *b)
{
	struct fi_triggered_context2 context = {
		.trigger.threshold = {.cntr = b->r.received, .threshold = 1}};
	struct iovec iov = {b->bytes, 8};
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = b->r.self, .context = &context};

	OK(fi_sendmsg(EP(b), &m, FI_TRIGGER));
	CLOSE(EP(b));
	EP(b) = NULL;
	return fi_cntr_add(b->r.received, 1);
}

MISUSE(receives_posted, FINE, close_with_receives(b));
MISUSE(trigger_waiting, FINE, close_with_trigger(b));

/* One context for many operations: contexts are only given back here (mode has no FI_CONTEXT). */
static ssize_t one_context(struct bench *b)
{
	struct fi_context2 context;

	for (int i = 0; i < 8; i++) {
		OK(fi_trecv(EP(b), b->bytes, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &context));
		POST(b->r.o.cq, fi_tsend(EP(b), b->bytes + 8, 8, NULL, b->r.self, 1, &context));
	}
	for (int i = 0; i < 16; i++)
		CHECK(obj_next(b->r.o.cq, NULL).op_context == &context);
	return 0;
}

MISUSE(context_in_use, FINE, one_context(b));

/* ---- Closed ---- */

/* Each kind of object, closed twice: the second close is refused while the memory is not used again. */
static ssize_t twice(struct bench *b, struct fid *fid)
{
	(void)b;
	OK(fi_close(fid));
	return fi_close(fid);
}

#define TAKE(member)                                                                               \
	({                                                                                         \
		__typeof__(member) mine_ = (member);                                               \
		(member) = NULL;                                                                   \
		&mine_->fid;                                                                       \
	})

MISUSE(close_endpoint_twice, CLOSED(-FI_EINVAL), twice(b, TAKE(b->idle)));
MISUSE(close_event_queue_twice, CLOSED(-FI_EINVAL), twice(b, TAKE(b->eq)));
MISUSE(close_poll_set_twice, CLOSED(-FI_EINVAL), twice(b, TAKE(b->polls)));
MISUSE(close_wait_set_twice, CLOSED(-FI_EINVAL), twice(b, TAKE(b->waits)));
MISUSE(close_queue_twice, CLOSED(-FI_EINVAL), twice(b, &obj_cq(&b->r.o, FI_WAIT_NONE)->fid));
MISUSE(close_fd_queue_twice, CLOSED(-FI_EINVAL), twice(b, &obj_cq(&b->r.o, FI_WAIT_FD)->fid));
MISUSE(close_counter_twice, CLOSED(-FI_EINVAL), twice(b, &obj_cntr(&b->r.o, FI_WAIT_NONE)->fid));
MISUSE(close_vector_twice, CLOSED(-FI_EINVAL), twice(b, &obj_av(&b->r.o, FI_AV_UNSPEC, 0)->fid));

static ssize_t closed(struct bench *b, int what)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_mr *mr;
	struct fid_ep *ep;
	struct fid_pep *pep;

	switch (what) {
	case 0:
		OK(fi_mr_reg(DOMAIN(b), b->bytes, 8, FI_REMOTE_WRITE, 0, 55, 0, &mr, NULL));
		return twice(b, &mr->fid);
	case 1:
		OK(fi_domain(b->r.o.fabric, b->info, &domain, NULL));
		return twice(b, &domain->fid);
	case 2:
		OK(fi_fabric(b->info->fabric_attr, &fabric, NULL));
		return twice(b, &fabric->fid);
	case 3:
		ep = EP(b);
		EP(b) = NULL;
		return twice(b, &ep->fid);
	case 4:
		ep = EP(b);
		CLOSE(ep);
		EP(b) = NULL;
		return fi_send(ep, b->bytes, 8, NULL, b->r.self, NULL);
	case 5:
		ep = EP(b);
		CLOSE(ep);
		EP(b) = NULL;
		return fi_tinject(ep, b->bytes, 8, b->r.self, 1);
	case 6:
		ep = EP(b);
		CLOSE(ep);
		EP(b) = NULL;
		return fi_write(ep, b->bytes, 8, NULL, b->r.self, b->r.base, b->r.key, NULL);
	case 7:
		ep = EP(b);
		CLOSE(ep);
		EP(b) = NULL;
		return fi_trecv(ep, b->bytes, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL);
	case 8:
		pep = b->pep;
		b->pep = NULL;
		return pep ? twice(b, &pep->fid) : -FI_EINVAL;
	case 9:
		ep = EP(b);
		CLOSE(ep);
		EP(b) = NULL;
		return fi_ep_bind(ep, &b->r.o.cq->fid, FI_RECV);
	}
	return 0;
}

MISUSE(close_region_twice, CLOSED(-FI_EINVAL), closed(b, 0));
MISUSE(close_domain_twice, CLOSED(-FI_EINVAL), closed(b, 1));
MISUSE(close_fabric_twice, CLOSED(-FI_EINVAL), closed(b, 2));
MISUSE(close_used_endpoint_twice, CLOSED(-FI_EINVAL), closed(b, 3));
MISUSE(send_by_closed, CLOSED(-FI_EOPBADSTATE), closed(b, 4));
MISUSE(tinject_by_closed, CLOSED(-FI_EOPBADSTATE), closed(b, 5));
MISUSE(write_by_closed, CLOSED(-FI_EOPBADSTATE), closed(b, 6));
MISUSE(trecv_by_closed, CLOSED(-FI_EOPBADSTATE), closed(b, 7));
MISUSE(close_listener_twice, CLOSED(-FI_EINVAL), closed(b, 8));
MISUSE(bind_to_closed, CLOSED(REFUSED), closed(b, 9));

int main(int argc, char **argv)
{
	return misuse_main(argc, argv);
}
