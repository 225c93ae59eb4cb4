/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Binding to enabled endpoints, as OpenSHMEM runtimes do. Counters, queues and shared transmit
 * contexts work from then on, a second fi_enable does nothing, and bindings that are too late are
 * refused. fi_endpoint(3).
 */
#include <rdma/fi_atomic.h>

#include "obj.h"
#include "lib/rma.h"

#define LEN 20000

/* In the order of `bits`. */
enum { SENDS, RECVS, READS, WRITES, REMOTE_READS, REMOTE_WRITES, EVENTS };

static const uint64_t bits[EVENTS] = {FI_SEND,  FI_RECV,        FI_READ,
				      FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};

/* An endpoint enabled with a selective queue and a vector only. */
struct late {
	struct api *a;
	struct obj o;
	struct fid_cntr *cntr[EVENTS];
	uint64_t want[EVENTS];
	struct fid_mr *mr;
	struct rma_key key; /* key of the region of the last rank */
	fi_addr_t to;       /* address of the last rank */
	struct fid_ep *by;  /* where operations are posted: the endpoint, or an alias */
};

static unsigned char memory[LEN], local[LEN];

static void late_progress(void *arg)
{
	struct late *l = arg;

	fi_cq_read(l->o.cq, NULL, 0);
	sched_yield();
}

static void late_domain(struct late *l, struct api *a, enum fi_progress progress)
{
	*l = (struct late){.a = a};
	l->o.hints = obj_hints(FI_MSG | FI_RMA | FI_ATOMIC | FI_RMA_EVENT);
	l->o.hints->domain_attr->mr_mode = RMA_PROVIDED;
	l->o.hints->domain_attr->data_progress = progress;
	l->o.hints->ep_attr->tx_ctx_cnt = 0;
	obj_domain(&l->o);
	l->o.av = obj_av(&l->o, FI_AV_UNSPEC, 0);
	l->o.cq = obj_cq(&l->o, FI_WAIT_NONE);
	l->o.ep = l->by = obj_ep(&l->o);
	OK(fi_ep_bind(l->o.ep, &l->o.av->fid, 0));
}

/* The last rank has the region; rank 0 gets its key and address. */
static void late_meet(struct late *l)
{
	struct api *a = l->a;
	struct obj_name names[API_RANKS];
	struct rma_key keys[API_RANKS], key = {.len = LEN};
	struct obj_name name = obj_name(&l->o.ep->fid);
	bool virt = rma_mode(&(struct rma){.o = l->o}, FI_MR_VIRT_ADDR);

	OK(fi_mr_reg(l->o.domain, memory, LEN, RMA_REMOTE, 0, 9, 0, &l->mr, NULL));
	key.base = virt ? (uintptr_t)memory : 0;
	key.key = fi_mr_key(l->mr);
	api_swap(a, &name, names, a->ranks > 1 ? sizeof(name) : 0);
	api_swap(a, &key, keys, a->ranks > 1 ? sizeof(key) : 0);
	l->key = a->ranks > 1 ? keys[a->ranks - 1] : key;
	l->to = obj_insert(l->o.av, a->ranks > 1 ? &names[a->ranks - 1] : &name);
	a->progress = late_progress;
	a->progress_arg = l;
}

static void late_open(struct late *l, struct api *a, enum fi_progress progress)
{
	late_domain(l, a, progress);
	OK(fi_ep_bind(l->o.ep, &l->o.cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION));
	OK(fi_enable(l->o.ep));
	late_meet(l);
}

/* Binds a counter for each event to the enabled endpoint. */
static void late_count(struct late *l, enum fi_wait_obj wait)
{
	for (int i = 0; i < EVENTS; i++) {
		l->cntr[i] = obj_cntr(&l->o, wait);
		OK(fi_ep_bind(l->o.ep, &l->cntr[i]->fid, bits[i]));
	}
}

static void late_close(struct late *l)
{
	api_meet(l->a);
	l->a->progress = NULL;
	CLOSE(l->mr);
	CLOSE(l->o.ep);
	l->o.ep = NULL;
	for (int i = 0; i < EVENTS; i++)
		if (l->cntr[i])
			CLOSE(l->cntr[i]);
	obj_close(&l->o);
}

#define RETRY(l, call)                                                                             \
	do {                                                                                       \
		ssize_t retry_ret;                                                                 \
                                                                                                   \
		api_at(__FILE__, __LINE__);                                                        \
		OBJ_UNTIL((retry_ret = (call)) != -FI_EAGAIN, late_progress(l));                   \
		api_check_eq(retry_ret, 0, #call);                                                 \
	} while (0)

/* Posts one operation from rank 0 to the last rank, and updates the expected counts. */
static void transfer(struct late *l, int event, size_t len)
{
	struct api *a = l->a;
	uint64_t at = l->key.base, key = l->key.key;
	int there = event == SENDS ? RECVS : event == READS ? REMOTE_READS : REMOTE_WRITES;

	if (event == SENDS && a->rank == a->ranks - 1)
		RETRY(l, fi_recv(l->by, memory, LEN, NULL, FI_ADDR_UNSPEC, NULL));
	if (a->rank == 0 && event == SENDS)
		RETRY(l, fi_send(l->by, local, len, NULL, l->to, NULL));
	if (a->rank == 0 && event == READS)
		RETRY(l, fi_read(l->by, local, len, NULL, l->to, at, key, NULL));
	if (a->rank == 0 && event == WRITES && len > 64)
		RETRY(l, fi_write(l->by, local, len, NULL, l->to, at, key, NULL));
	if (a->rank == 0 && event == WRITES && len <= 64)
		RETRY(l, fi_inject_write(l->by, local, len, l->to, at, key));
	l->want[event] += a->rank == 0;
	l->want[there] += a->rank == a->ranks - 1;
}

static void every_transfer(struct late *l)
{
	static const size_t lens[] = {8, 3000, LEN};

	for (unsigned int n = 0; n < 9; n++)
		transfer(l, n % 3 == 0 ? SENDS : n % 3 == 1 ? READS : WRITES, lens[n / 3]);
}

/* Waits until all operations so far have ended, and resets the expected counts. */
static void quiesce(struct late *l)
{
	uint64_t end = obj_now_us() + 100000 * obj_slower();

	while (obj_now_us() < end)
		late_progress(l);
	api_meet(l->a);
	memset(l->want, 0, sizeof(l->want));
}

/* Checks that all six counters have exactly the expected values. */
static void check(struct late *l)
{
	for (int i = 0; i < EVENTS; i++)
		OBJ_UNTIL(fi_cntr_read(l->cntr[i]) >= l->want[i], late_progress(l));
	api_meet(l->a);
	for (int i = 0; i < EVENTS; i++)
		api_check_eq((int64_t)fi_cntr_read(l->cntr[i]), (int64_t)l->want[i], "counted");
	api_meet(l->a);
}

#define COUNTED(l) (api_at(__FILE__, __LINE__), check(l))

/* Enables once more; another library may refuse it. */
static void again(struct fid_ep *ep)
{
	int ret = fi_enable(ep);

	if (!api_other())
		OK(ret);
}

/* Waits for the counter; another library's wait may return early. */
static void wait_for(struct fid_cntr *cntr, uint64_t value)
{
	int ret;

	OBJ_UNTIL((ret = fi_cntr_wait(cntr, value, OBJ_PATIENCE_MS)) == 0 || !api_other(), );
	OK(ret);
}

#define WAIT_FOR(...) (api_at(__FILE__, __LINE__), wait_for(__VA_ARGS__))

/* ---- Counters -------------------------------------------------------------------------------- */

static void counters(struct api *a)
{
	struct late l;

	late_open(&l, a, FI_PROGRESS_UNSPEC);
	late_count(&l, FI_WAIT_NONE);
	api_meet(a);
	every_transfer(&l);
	COUNTED(&l);
	again(l.o.ep);
	every_transfer(&l);
	COUNTED(&l);
	late_close(&l);
}

/* Operations before the binding need not count; later ones do, although the peers are connected. */
static void after_traffic(struct api *a)
{
	struct late l;

	late_open(&l, a, FI_PROGRESS_UNSPEC);
	every_transfer(&l);
	quiesce(&l);
	late_count(&l, FI_WAIT_NONE);
	api_meet(a);
	every_transfer(&l);
	COUNTED(&l);
	late_close(&l);
}

static void by_alias(struct api *a)
{
	struct late l;

	if (api_other())
		api_skip("no aliases");
	late_open(&l, a, FI_PROGRESS_UNSPEC);
	OK(fi_ep_alias(l.o.ep, &l.by, FI_TRANSMIT));
	late_count(&l, FI_WAIT_NONE);
	api_meet(a);
	every_transfer(&l);
	COUNTED(&l);
	OK(fi_enable(l.by));
	CLOSE(l.by);
	late_close(&l);
}

/* Counters bound through an alias count the endpoint's operations too. */
static void to_alias(struct api *a)
{
	struct late l;
	struct fid_ep *alias;

	if (api_other())
		api_skip("no aliases");
	late_open(&l, a, FI_PROGRESS_UNSPEC);
	OK(fi_ep_alias(l.o.ep, &alias, FI_TRANSMIT));
	for (int i = 0; i < EVENTS; i++) {
		l.cntr[i] = obj_cntr(&l.o, FI_WAIT_NONE);
		OK(fi_ep_bind(i % 2 ? alias : l.o.ep, &l.cntr[i]->fid, bits[i]));
	}
	api_meet(a);
	every_transfer(&l);
	COUNTED(&l);
	CLOSE(alias);
	late_close(&l);
}

/* Reading a late counter makes progress when nothing else is read. */
static void read_drives(struct api *a)
{
	struct late l;

	late_open(&l, a, FI_PROGRESS_MANUAL);
	late_count(&l, FI_WAIT_NONE);
	api_meet(a);
	transfer(&l, WRITES, LEN);
	for (int i = 0; i < EVENTS; i++)
		OBJ_UNTIL(fi_cntr_read(l.cntr[i]) >= l.want[i], fi_cntr_read(l.cntr[READS]));
	COUNTED(&l);
	late_close(&l);
}

/* A wait for a late counter sleeps until it counts, with each wait object and progress mode. */
static void waits(struct api *a, enum fi_progress progress)
{
	static const enum fi_wait_obj objects[] = {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_MUTEX_COND};
	static const int kinds[] = {SENDS, READS, WRITES};

	for (size_t i = 0; i < API_COUNT(objects); i++) {
		struct late l;

		if (api_other() && i)
			break;
		late_open(&l, a, progress);
		late_count(&l, objects[i]);
		for (size_t n = 0; n < API_COUNT(kinds); n++) {
			api_meet(a);
			if (a->rank == 0)
				obj_sleep_us(5000);
			transfer(&l, kinds[n], 8);
			for (int e = 0; e < EVENTS; e++)
				WAIT_FOR(l.cntr[e], l.want[e]);
		}
		COUNTED(&l);
		late_close(&l);
	}
}

static void waits_manual(struct api *a)
{
	waits(a, FI_PROGRESS_MANUAL);
}

static void waits_auto(struct api *a)
{
	waits(a, FI_PROGRESS_AUTO);
}

/* The target makes no calls; its late counters are right when read. */
static void target_sleeps(struct api *a)
{
	struct late l;

	late_open(&l, a, FI_PROGRESS_AUTO);
	late_count(&l, FI_WAIT_NONE);
	api_meet(a);
	if (a->rank == 0) {
		uint64_t operand = 1, got;

		for (uint64_t n = 1; n <= 20; n++) {
			RETRY(&l, fi_fetch_atomic(l.o.ep, &operand, 1, NULL, &got, NULL, l.to,
						  l.key.base, l.key.key, FI_UINT64, FI_SUM, NULL));
			RETRY(&l, fi_inject_atomic(l.o.ep, &operand, 1, l.to, l.key.base, l.key.key,
						   FI_UINT64, FI_SUM));
			OBJ_UNTIL(fi_cntr_read(l.cntr[READS]) == n, sched_yield());
		}
		OBJ_UNTIL(fi_cntr_read(l.cntr[WRITES]) == 20, sched_yield());
	}
	l.a->progress = NULL;
	api_meet(a);
	obj_sleep_us(100000 * obj_slower());
	if (a->rank && !api_other()) { /* another library counts a fetch as a write */
		CHECK_EQ(fi_cntr_read(l.cntr[REMOTE_READS]), 20);
		CHECK_EQ(fi_cntr_read(l.cntr[REMOTE_WRITES]), 20);
	}
	late_close(&l);
}

/* ---- Queues ---------------------------------------------------------------------------------- */

/* An endpoint enabled with counters only; queues are bound later and get completions. */
static void queues(struct api *a)
{
	const uint64_t events = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
	struct fi_cq_tagged_entry e;
	struct late l;

	(void)a;
	if (api_other())
		api_skip("the manual asks for queues");
	late_domain(&l, a, FI_PROGRESS_UNSPEC);
	l.cntr[0] = obj_cntr(&l.o, FI_WAIT_NONE);
	OK(fi_ep_bind(l.o.ep, &l.cntr[0]->fid, events));
	OK(fi_enable(l.o.ep));
	late_meet(&l);
	transfer(&l, SENDS, 8);
	transfer(&l, WRITES, 100);
	OBJ_UNTIL(fi_cntr_read(l.cntr[0]) == 3, );
	OK(fi_ep_bind(l.o.ep, &l.o.cq->fid, FI_TRANSMIT));
	CHECK_EQ(fi_cq_read(l.o.cq, &e, 1), -FI_EAGAIN);
	RETRY(&l, fi_write(l.o.ep, local, 100, NULL, l.to, l.key.base, l.key.key, &l));
	obj_done(l.o.cq, &l);
	OK(fi_ep_bind(l.o.ep, &l.o.cq->fid, FI_RECV | FI_SELECTIVE_COMPLETION));
	transfer(&l, SENDS, 8);
	obj_done(l.o.cq, NULL); /* the send; the receive has no completion */
	obj_quiet(l.o.cq, 20);
	CHECK_EQ(fi_cntr_read(l.cntr[0]), 6);
	FAILS(fi_close(&l.o.cq->fid));
	late_close(&l);
}

/*
 * One call binds a queue for both directions. Closing the endpoint wakes the queue's sleeper; the
 * queue is closed afterwards.
 */
static void queue_of_both(struct api *a)
{
	struct fid_cq *cq;
	struct late l;
	int word = 1, got;

	if (api_other())
		api_skip("the manual asks for queues");
	late_domain(&l, a, FI_PROGRESS_UNSPEC);
	l.cntr[0] = obj_cntr(&l.o, FI_WAIT_NONE);
	OK(fi_ep_bind(l.o.ep, &l.cntr[0]->fid, FI_SEND | FI_RECV | FI_READ | FI_WRITE));
	OK(fi_enable(l.o.ep));
	late_meet(&l);
	cq = obj_cq(&l.o, FI_WAIT_FD);
	OK(fi_ep_bind(l.o.ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	for (int n = 0; n < 3; n++) {
		struct fi_cq_tagged_entry e[2] = {{0}};

		api_meet(a);
		if (a->rank == 1)
			OK(fi_recv(l.o.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
		if (a->rank == 0) {
			obj_sleep_us(5000);
			POST(cq, fi_send(l.o.ep, &word, sizeof(word), NULL, l.to, &word));
		}
		CHECK_EQ(fi_cq_sread(cq, e, 1, NULL, OBJ_PATIENCE_MS), 1);
		CHECK(e[0].op_context == (a->rank ? &got : &word));
	}
	api_meet(a);
	a->progress = NULL;
	CLOSE(l.mr);
	CLOSE(l.o.ep);
	l.o.ep = NULL;
	CLOSE(cq);
	CLOSE(l.cntr[0]);
	obj_close(&l.o);
}

/* ---- Shared transmit contexts ---------------------------------------------------------------- */

static struct fid_stx *context_of(struct late *l)
{
	struct fid_stx *stx;

	if (!l->o.info->domain_attr->max_ep_stx_ctx)
		api_skip("no shared transmit contexts");
	OK(fi_stx_context(l->o.domain, l->o.info->tx_attr, &stx, NULL));
	return stx;
}

/* The calls of such a runtime in their order. */
static void runtime(struct api *a)
{
	struct fid_cntr *writes, *reads;
	struct fid_stx *stx;
	struct late l;
	uint64_t old, add = 3;

	late_open(&l, a, FI_PROGRESS_AUTO);
	stx = context_of(&l);
	writes = obj_cntr(&l.o, FI_WAIT_UNSPEC);
	reads = obj_cntr(&l.o, FI_WAIT_UNSPEC);
	OK(fi_ep_bind(l.o.ep, &stx->fid, 0));
	OK(fi_ep_bind(l.o.ep, &writes->fid, FI_WRITE));
	OK(fi_ep_bind(l.o.ep, &reads->fid, FI_READ));
	OK(fi_enable(l.o.ep));
	api_meet(a);
	for (uint64_t n = 1; a->rank == 0 && n <= 10; n++) {
		RETRY(&l, fi_inject_write(l.o.ep, &add, 8, l.to, l.key.base, l.key.key));
		RETRY(&l, fi_fetch_atomic(l.o.ep, &add, 1, NULL, &old, NULL, l.to, l.key.base,
					  l.key.key, FI_UINT64, FI_SUM, NULL));
		WAIT_FOR(writes, n);
		WAIT_FOR(reads, n);
		CHECK_EQ(old, 3);
	}
	api_meet(a);
	CLOSE(l.mr);
	CLOSE(stx);
	CLOSE(l.o.ep);
	l.o.ep = NULL;
	CLOSE(writes);
	CLOSE(reads);
	a->progress = NULL;
	obj_close(&l.o);
}

/* Closes a context with endpoints bound to it: they work on, and can be bound to another one. */
static void context_closes_first(struct api *a)
{
	struct fid_stx *stx, *next;
	struct fid_ep *other;
	struct late l;

	if (api_other())
		api_skip("nothing can be sent there any more");
	late_open(&l, a, FI_PROGRESS_UNSPEC);
	stx = context_of(&l);
	other = obj_ready_ep(&l.o, l.o.cq);
	OK(fi_ep_bind(l.o.ep, &stx->fid, 0));
	OK(fi_ep_bind(other, &stx->fid, 0));
	late_count(&l, FI_WAIT_NONE);
	every_transfer(&l);
	COUNTED(&l);
	api_meet(a);
	CLOSE(stx);
	CLOSE(other);
	next = context_of(&l);
	every_transfer(&l);
	COUNTED(&l);
	OK(fi_ep_bind(l.o.ep, &next->fid, 0));
	FAILS(fi_ep_bind(l.o.ep, &next->fid, 0));
	every_transfer(&l);
	COUNTED(&l);
	CLOSE(next);
	late_close(&l);
}

/* ---- Enabling again, and late bindings that are refused -------------------------------------- */

/* fi_enable again on each type of endpoint; posted receives stay. */
static void enable_again(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_MSG | FI_TAGGED)};
	struct fid_ep *sep, *tx, *rx;
	fi_addr_t self;
	int word = 5, got = 0;

	(void)a;
	obj_open(&o);
	self = obj_insert_ep(o.av, o.ep);
	OK(fi_recv(o.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
	again(o.ep);
	again(o.ep);
	POST(o.cq, fi_inject(o.ep, &word, sizeof(word), self));
	obj_done(o.cq, &got);
	CHECK_EQ(got, 5);
	if (api_other() && o.info->domain_attr->max_ep_tx_ctx < 2)
		api_skip("no scalable endpoints");
	OK(fi_scalable_ep(o.domain, o.info, &sep, NULL));
	OK(fi_scalable_ep_bind(sep, &o.av->fid, 0));
	OK(fi_tx_context(sep, 0, NULL, &tx, NULL));
	OK(fi_rx_context(sep, 0, NULL, &rx, NULL));
	OK(fi_ep_bind(tx, &o.cq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(rx, &o.cq->fid, FI_RECV));
	for (int i = 0; i < 2; i++) {
		OK(fi_enable(sep));
		OK(fi_enable(tx));
		OK(fi_enable(rx));
	}
	CLOSE(tx);
	CLOSE(rx);
	CLOSE(sep);
	obj_close(&o);
}

/* The contexts of a scalable endpoint can be bound late too. */
static void contexts(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_MSG | FI_TAGGED)};
	struct fid_cntr *sent, *received;
	struct fid_ep *sep, *tx, *rx;
	struct obj_name name;
	fi_addr_t self;
	int word = 5, got[2] = {0};

	(void)a;
	if (api_other())
		api_skip("not offered by this library");
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_UNSPEC, 0);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	OK(fi_scalable_ep(o.domain, o.info, &sep, NULL));
	OK(fi_scalable_ep_bind(sep, &o.av->fid, 0));
	OK(fi_tx_context(sep, 0, NULL, &tx, NULL));
	OK(fi_rx_context(sep, 0, NULL, &rx, NULL));
	OK(fi_ep_bind(tx, &o.cq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(rx, &o.cq->fid, FI_RECV));
	OK(fi_enable(sep));
	OK(fi_enable(tx));
	OK(fi_enable(rx));
	name = obj_name(&sep->fid);
	self = obj_insert(o.av, &name);
	OK(fi_recv(rx, &got[0], sizeof(int), NULL, FI_ADDR_UNSPEC, &got[0]));
	POST(o.cq, fi_inject(tx, &word, sizeof(word), self));
	obj_done(o.cq, &got[0]);
	sent = obj_cntr(&o, FI_WAIT_NONE);
	received = obj_cntr(&o, FI_WAIT_NONE);
	OK(fi_ep_bind(tx, &sent->fid, FI_SEND));
	OK(fi_ep_bind(rx, &received->fid, FI_RECV));
	FAILS(fi_ep_bind(sep, &sent->fid, FI_SEND));
	OK(fi_recv(rx, &got[1], sizeof(int), NULL, FI_ADDR_UNSPEC, &got[1]));
	POST(o.cq, fi_inject(tx, &word, sizeof(word), self));
	OBJ_UNTIL(fi_cntr_read(received) == 1 && fi_cntr_read(sent) == 1, );
	obj_done(o.cq, &got[1]);
	CLOSE(tx);
	CLOSE(rx);
	CLOSE(sep);
	CLOSE(sent);
	CLOSE(received);
	obj_close(&o);
}

/* A refused binding changes nothing and keeps no object in use. */
static void refused(struct api *a)
{
	struct fid_cntr *second;
	struct fid_ep *srx;
	struct fid_cq *cq;
	struct fid_av *av;
	struct late l;

	if (api_other())
		api_skip("it takes more");
	late_open(&l, a, FI_PROGRESS_UNSPEC);
	late_count(&l, FI_WAIT_NONE);
	second = obj_cntr(&l.o, FI_WAIT_NONE);
	cq = obj_cq(&l.o, FI_WAIT_NONE);
	av = obj_av(&l.o, FI_AV_UNSPEC, 0);
	OK(fi_srx_context(l.o.domain, l.o.info->rx_attr, &srx, NULL));
	for (int i = 0; i < EVENTS; i++)
		CHECK_EQ(fi_ep_bind(l.o.ep, &second->fid, bits[i]), -FI_EINVAL);
	CHECK_EQ(fi_ep_bind(l.o.ep, &second->fid, 0), -FI_EINVAL);
	CHECK_EQ(fi_ep_bind(l.o.ep, &second->fid, FI_ATOMIC), -FI_EBADFLAGS);
	CHECK_EQ(fi_ep_bind(l.o.ep, &cq->fid, FI_TRANSMIT), -FI_EINVAL);
	CHECK_EQ(fi_ep_bind(l.o.ep, &cq->fid, FI_RECV), -FI_EINVAL);
	CHECK_EQ(fi_ep_bind(l.o.ep, &cq->fid, 0), -FI_EINVAL);
	CHECK_EQ(fi_ep_bind(l.o.ep, &av->fid, 0), -FI_EOPBADSTATE);
	CHECK_EQ(fi_ep_bind(l.o.ep, &srx->fid, 0), -FI_EOPBADSTATE);
	CHECK_EQ(fi_ep_bind(srx, &second->fid, FI_RECV), -FI_EOPBADSTATE);
	CHECK_EQ(fi_ep_bind(l.o.ep, NULL, 0), -FI_EINVAL);
	CLOSE(second);
	CLOSE(cq);
	CLOSE(av);
	CLOSE(srx);
	every_transfer(&l);
	COUNTED(&l);
	late_close(&l);
}

/* Late bound objects cannot be closed before the endpoint. */
static void busy(struct api *a)
{
	struct late l;

	(void)a;
	late_open(&l, a, FI_PROGRESS_UNSPEC);
	late_count(&l, FI_WAIT_NONE);
	for (int i = 0; i < EVENTS; i++)
		CHECK_EQ(fi_close(&l.cntr[i]->fid), -FI_EBUSY);
	late_close(&l);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"counters", counters, 2, {0}},
		{"counters_self", counters, 1, {0}},
		{"after_traffic", after_traffic, 2, {0}},
		{"by_alias", by_alias, 2, {0}},
		{"to_alias", to_alias, 2, {0}},
		{"read_drives", read_drives, 2, {0}},
		{"waits_manual", waits_manual, 2, {0}},
		{"waits_auto", waits_auto, 2, {0}},
		{"target_sleeps", target_sleeps, 2, {0}},
		{"queues", queues, 1, {0}},
		{"queue_of_both", queue_of_both, 2, {0}},
		{"runtime", runtime, 2, {0}},
		{"context_closes_first", context_closes_first, 2, {0}},
		{"enable_again", enable_again, 1, {0}},
		{"contexts", contexts, 1, {0}},
		{"refused", refused, 2, {0}},
		{"busy", busy, 1, {0}},
		{"no_cma", counters, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"no_cma_after_traffic", after_traffic, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
