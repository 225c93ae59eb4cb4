/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided operations from and to contexts of scalable endpoints. fi_endpoint(3), fi_av(3). */
#include "obj.h"
#include "lib/rma.h"
#include "lib/rma_buf.h"

#define TX   3
#define RX   5
#define BITS 4
#define LEN  70000

/* A scalable endpoint in place of o.ep, with counters and queues for each context. */
struct contexts {
	struct rma r; /* o.ep, o.cq and the counters: those of the context in use */
	struct fid_ep *sep, *tx[TX], *rx[RX];
	struct fid_cq *tx_cq[TX], *rx_cq[RX];
	struct fid_cntr *reads[TX], *writes[TX], *by_others[RX];
	uint64_t done[TX][2];
};

static void find(struct contexts *c, struct api *a)
{
	struct fi_info *hints = obj_hints(FI_MSG | FI_RMA | FI_RMA_EVENT | FI_NAMED_RX_CTX);

	c->r = (struct rma){.a = a, .next_key = 1};
	hints->domain_attr->mr_mode = RMA_PROVIDED;
	hints->ep_attr->tx_ctx_cnt = TX;
	hints->ep_attr->rx_ctx_cnt = RX;
	c->r.o.hints = hints;
	obj_domain(&c->r.o);
	c->r.o.av = obj_av(&c->r.o, FI_AV_UNSPEC, BITS);
}

static void open_tx(struct contexts *c)
{
	for (int i = 0; i < TX; i++) {
		c->tx_cq[i] = obj_cq(&c->r.o, FI_WAIT_NONE);
		c->reads[i] = obj_cntr(&c->r.o, FI_WAIT_NONE);
		c->writes[i] = obj_cntr(&c->r.o, FI_WAIT_NONE);
		OK(fi_tx_context(c->sep, i, NULL, &c->tx[i], NULL));
		OK(fi_ep_bind(c->tx[i], &c->tx_cq[i]->fid, FI_TRANSMIT));
		OK(fi_ep_bind(c->tx[i], &c->reads[i]->fid, FI_READ));
		OK(fi_ep_bind(c->tx[i], &c->writes[i]->fid, FI_WRITE));
		OK(fi_enable(c->tx[i]));
	}
}

static void open_contexts(struct contexts *c, struct api *a)
{
	memset(c, 0, sizeof(*c));
	find(c, a);
	OK(fi_scalable_ep(c->r.o.domain, c->r.o.info, &c->sep, NULL));
	OK(fi_scalable_ep_bind(c->sep, &c->r.o.av->fid, 0));
	OK(fi_enable(c->sep));
	open_tx(c);
	for (int i = 0; i < RX; i++) {
		c->rx_cq[i] = obj_cq(&c->r.o, FI_WAIT_NONE);
		OK(fi_rx_context(c->sep, i, NULL, &c->rx[i], NULL));
		OK(fi_ep_bind(c->rx[i], &c->rx_cq[i]->fid, FI_RECV));
		c->by_others[i] = obj_cntr(&c->r.o, FI_WAIT_NONE);
		OK(fi_ep_bind(c->rx[i], &c->by_others[i]->fid, FI_REMOTE_WRITE | FI_REMOTE_READ));
		OK(fi_enable(c->rx[i]));
	}
	if (a->ranks > 1)
		c->r.addr[!a->rank] = obj_swap(a, c->sep, c->r.o.av);
	else
		c->r.addr[0] = obj_insert_ep(c->r.o.av, c->sep);
}

static void close_contexts(struct contexts *c)
{
	api_meet(c->r.a);
	c->r.a->progress = NULL;
	for (int i = 0; i < TX; i++) {
		CLOSE(c->tx[i]);
		CLOSE(c->tx_cq[i]);
		CLOSE(c->reads[i]);
		CLOSE(c->writes[i]);
	}
	for (int i = 0; i < RX; i++) {
		CLOSE(c->rx[i]);
		CLOSE(c->rx_cq[i]);
		CLOSE(c->by_others[i]);
	}
	CLOSE(c->sep);
	c->r.o.ep = NULL;
	c->r.o.cq = NULL;
	obj_close(&c->r.o);
}

/* Selects the transmit context for later operations, and the target's receive context. */
static void use(struct contexts *c, int tx, int rx)
{
	struct rma *r = &c->r;

	r->o.ep = c->tx[tx];
	r->o.cq = c->tx_cq[tx];
	r->reads = c->reads[tx];
	r->writes = c->writes[tx];
	r->in = c->rx_cq[rx];
	r->a->progress = rma_progress;
	r->a->progress_arg = r;
	memcpy(r->done, c->done[tx], sizeof(r->done));
}

/*
 * From a transmit context to a receive context; only that receive context gets the remote CQ data.
 */
static void through(struct contexts *c, const struct rma_target *t, int tx, int rx)
{
	static const enum rma_form forms[] = {RMA_DATA, RMA_INJECTDATA, RMA_WRITEMSG, RMA_READ};
	static const size_t lens[] = {8, 4096, LEN};
	static unsigned char local[LEN];
	struct rma *r = &c->r;

	use(c, tx, rx);
	for (size_t i = 0; i < API_COUNT(forms) * API_COUNT(lens); i++) {
		struct iovec iov = {local, lens[i % API_COUNT(lens)]};
		struct fi_rma_iov to = {t->key.base, iov.iov_len, t->key.key};
		struct rma_op op = {.form = forms[i / API_COUNT(lens)],
				    .iov = &iov,
				    .count = 1,
				    .to = &to,
				    .to_count = 1,
				    .data = RMA_CQ_DATA ^ i,
				    .context = &iov};

		if (rma_injects(op.form) && iov.iov_len > r->o.info->tx_attr->inject_size)
			continue;
		op.flags = rma_reads(op.form) ? 0 : FI_REMOTE_CQ_DATA;
		op.peer = fi_rx_addr(r->addr[r->a->ranks - 1], rx, BITS);
		if (r->a->rank == 0)
			RMA_RUN(r, &op);
		if (r->a->rank == r->a->ranks - 1 && !rma_reads(op.form))
			RMA_NOTIFIED(r, r->in, op.data, iov.iov_len);
	}
	memcpy(c->done[tx], r->done, sizeof(r->done));
}

static void named(struct api *a)
{
	static unsigned char memory[LEN];
	struct rma_target t;
	struct contexts c;

	open_contexts(&c, a);
	use(&c, 0, 0);
	rma_target_open(&c.r, &t, memory, LEN);
	for (int tx = 0; tx < TX; tx++)
		for (int rx = 0; rx < RX; rx++)
			through(&c, &t, tx, rx);
	rma_target_close(&c.r, &t);
	for (int rx = 0; rx < RX; rx++)
		obj_quiet(c.rx_cq[rx], 2);
	for (int tx = 0; tx < TX; tx++)
		obj_quiet(c.tx_cq[tx], 0);
	close_contexts(&c);
}

/* Each receive context counts only operations addressed to it. */
static void counted(struct api *a)
{
	static unsigned char memory[LEN], local[LEN];
	static const size_t lens[] = {8, LEN};
	struct rma_target t;
	struct contexts c;

	open_contexts(&c, a);
	use(&c, 0, 0);
	rma_target_open(&c.r, &t, memory, LEN);
	for (int n = 0; a->rank == 0 && n < 4 * RX * RX; n++) {
		struct iovec iov = {local, lens[n % 2]};
		struct fi_rma_iov to = {t.key.base, iov.iov_len, t.key.key};

		if (n / 4 % RX <= n / 4 / RX) /* 4 * (RX - i) operations address context i */
			RMA_RUN(&c.r, &(struct rma_op){.form = n & 2 ? RMA_READ : RMA_WRITE,
						       .iov = &iov,
						       .count = 1,
						       .to = &to,
						       .to_count = 1,
						       .peer = fi_rx_addr(c.r.addr[a->ranks - 1],
									  n / 4 % RX, BITS),
						       .context = &to});
	}
	for (int i = 0; a->rank == a->ranks - 1 && i < RX; i++)
		OBJ_UNTIL(fi_cntr_read(c.by_others[i]) >= (uint64_t)(4 * (RX - i)),
			  rma_progress(&c.r));
	api_meet(a);
	for (int i = 0; i < RX; i++)
		CHECK_EQ(fi_cntr_read(c.by_others[i]), a->rank == a->ranks - 1 ? 4 * (RX - i) : 0);
	rma_target_close(&c.r, &t);
	close_contexts(&c);
}

/* A failure counts only in its own context. */
static void failing(struct api *a)
{
	static unsigned char memory[LEN], local[LEN];
	struct rma_target t;
	struct contexts c;

	open_contexts(&c, a);
	use(&c, 0, 0);
	rma_target_open(&c.r, &t, memory, LEN);
	for (int tx = 0; a->rank == 0 && tx < TX; tx++)
		for (enum rma_form form = RMA_WRITE; form <= RMA_READ; form += RMA_READ) {
			struct iovec iov = {local, tx ? LEN : 8};
			struct fi_rma_iov to = {t.key.base + 1, LEN, t.key.key};

			use(&c, tx, 0);
			c.r.failed[0] = form == RMA_READ;
			c.r.failed[1] = 0;
			to.addr = t.key.base + LEN - iov.iov_len + 1;
			RMA_FAILS(&c.r,
				  &(struct rma_op){.form = form,
						   .iov = &iov,
						   .count = 1,
						   .to = &to,
						   .to_count = 1,
						   .peer = fi_rx_addr(c.r.addr[1], tx, BITS),
						   .context = &to},
				  FI_EINVAL);
		}
	rma_target_close(&c.r, &t);
	close_contexts(&c);
}

/*
 * ---- A context closed early --------------------------------------------------------------------
 */

#define EARLY 2000

/* Rank 1: opens an endpoint, and makes no progress until told to. */
static void called(struct api *a, struct obj *o)
{
	struct obj_name name;
	char byte = 0;

	obj_open(o);
	name = obj_name(&o->ep->fid);
	OK(fi_recv(o->ep, &byte, 1, NULL, FI_ADDR_UNSPEC, &byte));
	api_tell(a, 0, &name, sizeof(name));
	CHECK_EQ(obj_done(o->cq, &byte).len, 1);
	OK(fi_recv(o->ep, &byte, 1, NULL, FI_ADDR_UNSPEC, &byte));
	api_tell(a, 0, "", 1);
	api_hear(a, 0, &byte, 1);
	CHECK_EQ(obj_done(o->cq, &byte).len, 1);
	obj_progress(a, o->cq);
	api_meet(a);
	a->progress = NULL;
}

/* Rank 0: closes the first context while its operations wait for rank 1's progress. */
static void caller(struct api *a, struct obj *o)
{
	char *buf = mmap(NULL, EARLY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov = {buf, EARLY};
	struct fid_ep *sep, *tx[2];
	struct obj_name name;
	struct fi_msg m;
	fi_addr_t to;
	char byte;

	CHECK(buf != MAP_FAILED);
	o->cq = obj_cq(o, FI_WAIT_NONE);
	OK(fi_scalable_ep(o->domain, o->info, &sep, NULL));
	OK(fi_scalable_ep_bind(sep, &o->av->fid, 0));
	for (int i = 0; i < 2; i++) {
		OK(fi_tx_context(sep, i, NULL, &tx[i], NULL));
		OK(fi_ep_bind(tx[i], &o->cq->fid, FI_TRANSMIT));
		OK(fi_enable(tx[i]));
	}
	OK(fi_enable(sep));
	api_hear(a, 1, &name, sizeof(name));
	to = obj_insert(o->av, &name);
	POST(o->cq, fi_send(tx[1], &to, 1, NULL, to, &to));
	obj_done(o->cq, &to);
	api_hear(a, 1, &byte, 1); /* it makes no progress from here on */
	m = (struct fi_msg){.msg_iov = &iov, .iov_count = 1, .addr = to};
	OK(fi_write(tx[0], buf, EARLY, NULL, to, 0, 99, NULL));
	OK(fi_sendmsg(tx[0], &m, FI_FENCE | FI_COMPLETION));
	CLOSE(tx[0]);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(obj_error(o->cq).err, FI_ECANCELED);
	OK(munmap(buf, EARLY));
	api_tell(a, 1, "", 1);
	POST(o->cq, fi_send(tx[1], &to, 1, NULL, to, &to));
	obj_done(o->cq, &to);
	obj_quiet(o->cq, 50);
	obj_progress(a, o->cq);
	api_meet(a);
	a->progress = NULL;
	CLOSE(tx[1]);
	CLOSE(sep);
}

/*
 * After closing a context, all its operations have ended and its memory is not accessed; the other
 * context works.
 */
static void closed_early(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_MSG | FI_RMA)};

	o.hints->domain_attr->mr_mode = RMA_PROVIDED;
	if (a->rank == 0)
		o.hints->ep_attr->tx_ctx_cnt = 2;
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_TABLE, 0);
	if (a->rank == 0)
		caller(a, &o);
	else
		called(a, &o);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"named", named, 2, {0}},
		{"named_self", named, 1, {0}},
		{"counted", counted, 2, {0}},
		{"counted_self", counted, 1, {0}},
		{"failing", failing, 2, {0}},
		{"closed_early", closed_early, 2, {0}},
		{"named_no_cma", named, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
