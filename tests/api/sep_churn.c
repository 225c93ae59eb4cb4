/* SPDX-License-Identifier: BSD-2-Clause */
/* TIMEOUT=120 */
/*
 * Servers like those of RPC libraries: a scalable endpoint of two contexts, one thread per context,
 * multi-receive buffers on both. Servers are opened and closed in turn while clients keep sending,
 * with buffers cancelled or still posted. None hangs, and each cancelled buffer is released once.
 * ROUNDS=1000 makes it a stress test.
 */
#include <pthread.h>

#include "obj.h"

#define CONTEXTS 2
#define BITS     1
#define BUFFERS  2      /* per context */
#define BUFFER   262144 /* bytes */
#define MINIMUM  65536  /* minimum space in a posted buffer */
#define LONGEST  65536
#define WINDOW   16 /* sends in flight per client */
#define LIFE_US  3000
#define ROUNDS   60

/* Memory shared by all processes. */
struct board {
	unsigned int round; /* atomic: version of `name`; odd during an update */
	bool over;          /* atomic: the test ends */
	struct obj_name name;
};

/* Context of a buffer or a send. */
struct posted {
	struct fi_context2 context;
	unsigned int given_back; /* number of releases */
	char *bytes;
};

struct context {
	struct fid_ep *tx, *rx;
	struct fid_cq *tx_cq, *rx_cq;
	struct posted buffer[BUFFERS];
	fi_addr_t client;
	unsigned int answers; /* answers in flight */
	bool cancelled;       /* atomic: the thread ends when all buffers are released */
	bool stop;            /* atomic: the thread ends now */
	pthread_t thread;
};

static unsigned int rounds(void)
{
	const char *env = getenv("ROUNDS");

	return env ? (unsigned int)atoi(env) : api_times(ROUNDS);
}

static struct fi_info *hints(size_t contexts)
{
	struct fi_info *h =
		obj_hints(FI_MSG | FI_MULTI_RECV | (contexts > 1 ? FI_NAMED_RX_CTX : 0));

	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->domain_attr->threading = FI_THREAD_SAFE;
	h->ep_attr->tx_ctx_cnt = h->ep_attr->rx_ctx_cnt = contexts;
	return h;
}

static void post_buffer(struct fid_ep *ep, struct posted *p)
{
	struct iovec iov = {p->bytes, BUFFER};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &p->context};

	p->given_back = 0;
	OK(fi_recvmsg(ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
}

static void taken_back(struct posted *p, uint64_t flags)
{
	if (flags & FI_MULTI_RECV)
		CHECK_EQ(++p->given_back, 1);
}

/* Answers a message, and posts a full buffer again unless the server ends. */
static void received(struct context *c, const struct fi_cq_tagged_entry *e)
{
	struct posted *p = e->op_context;

	if (e->len && c->answers < WINDOW &&
	    !fi_send(c->tx, p->bytes, e->len < 64 ? e->len : 64, NULL, c->client, c))
		c->answers++;
	taken_back(p, e->flags);
	if (p->given_back && !__atomic_load_n(&c->cancelled, __ATOMIC_ACQUIRE))
		post_buffer(c->rx, p);
}

/* Takes one completion or error; errors are expected, as peers come and go. */
static bool take(struct fid_cq *cq, struct fi_cq_tagged_entry *e)
{
	struct fi_cq_err_entry err = {0};
	ssize_t ret = fi_cq_read(cq, e, 1);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret == 1)
		return true;
	CHECK_EQ(ret, -FI_EAVAIL);
	if (fi_cq_readerr(cq, &err, 0) != 1)
		return false;
	*e = (struct fi_cq_tagged_entry){.op_context = err.op_context, .flags = err.flags};
	return true;
}

static bool all_given_back(const struct context *c)
{
	for (int i = 0; i < BUFFERS; i++)
		if (!c->buffer[i].given_back)
			return false;
	return true;
}

static void *serve(void *arg)
{
	struct context *c = arg;
	struct fi_cq_tagged_entry e;

	while (!__atomic_load_n(&c->stop, __ATOMIC_ACQUIRE)) {
		if (take(c->rx_cq, &e))
			received(c, &e);
		else
			sched_yield();
		if (take(c->tx_cq, &e))
			c->answers--;
		if (__atomic_load_n(&c->cancelled, __ATOMIC_ACQUIRE) && all_given_back(c))
			break;
	}
	return NULL;
}

static void open_context(struct obj *o, struct fid_ep *sep, struct context *c, int index)
{
	size_t min = MINIMUM;

	OK(fi_tx_context(sep, index, NULL, &c->tx, NULL));
	OK(fi_rx_context(sep, index, NULL, &c->rx, NULL));
	c->tx_cq = obj_cq(o, FI_WAIT_NONE);
	c->rx_cq = obj_cq(o, FI_WAIT_NONE);
	OK(fi_ep_bind(c->tx, &c->tx_cq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(c->rx, &c->rx_cq->fid, FI_RECV));
	OK(fi_setopt(&c->rx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	OK(fi_enable(c->tx));
	OK(fi_enable(c->rx));
	c->answers = 0;
	c->stop = c->cancelled = false;
	for (int i = 0; i < BUFFERS; i++)
		post_buffer(c->rx, &c->buffer[i]);
	CHECK_EQ(pthread_create(&c->thread, NULL, serve, c), 0);
}

/* Ends a context: cancels its buffers and waits for their release, or leaves them posted. */
static void end_context(struct context *c, bool cancels)
{
	if (cancels) {
		__atomic_store_n(&c->cancelled, true, __ATOMIC_RELEASE);
		for (int i = 0; i < BUFFERS; i++)
			OK(fi_cancel(&c->rx->fid, &c->buffer[i].context));
	} else {
		__atomic_store_n(&c->stop, true, __ATOMIC_RELEASE);
	}
	OBJ_UNTIL(pthread_tryjoin_np(c->thread, NULL) == 0, sched_yield());
	CLOSE(c->tx);
	CLOSE(c->rx);
	CLOSE(c->tx_cq);
	CLOSE(c->rx_cq);
}

static void publish(struct board *board, const struct obj_name *name)
{
	__atomic_add_fetch(&board->round, 1, __ATOMIC_SEQ_CST);
	board->name = *name;
	__atomic_add_fetch(&board->round, 1, __ATOMIC_SEQ_CST);
}

static void one_life(struct obj *o, struct board *board, struct context *c, unsigned int round)
{
	struct obj_name name;
	struct fid_ep *sep;

	OK(fi_scalable_ep(o->domain, o->info, &sep, NULL));
	OK(fi_scalable_ep_bind(sep, &o->av->fid, 0));
	OK(fi_enable(sep));
	for (int i = 0; i < CONTEXTS; i++)
		open_context(o, sep, &c[i], i);
	name = obj_name(&sep->fid);
	publish(board, &name);
	obj_sleep_us(round * 7919 % LIFE_US);
	for (int i = 0; i < CONTEXTS; i++)
		end_context(&c[i], (round / 2 + (unsigned int)i) % 3 != 0);
	CLOSE(sep);
}

static void server(struct api *a, struct obj *o)
{
	struct context c[CONTEXTS] = {0};
	struct obj_name mine = {0}, all[API_RANKS];

	api_swap(a, &mine, all, sizeof(mine));
	o->av = obj_av(o, FI_AV_UNSPEC, BITS);
	for (int i = 0; i < CONTEXTS; i++) {
		c[i].client = obj_insert(o->av, &all[1 + i % (a->ranks - 1)]);
		for (int n = 0; n < BUFFERS; n++)
			CHECK((c[i].buffer[n].bytes = malloc(BUFFER)) != NULL);
	}
	for (unsigned int round = 0; round < rounds(); round++) {
		alarm(api_limit()); /* a new limit for each round */
		one_life(o, a->shared, c, round);
	}
	__atomic_store_n(&((struct board *)a->shared)->over, true, __ATOMIC_RELEASE);
	for (int i = 0; i < CONTEXTS * BUFFERS; i++)
		free(c[i / BUFFERS].buffer[i % BUFFERS].bytes);
}

/*
 * ---- A client ----------------------------------------------------------------------------------
 */

struct client {
	struct obj o;
	struct board *board;
	unsigned int round, busy;
	fi_addr_t peer;
	struct posted buffer, send[WINDOW];
	bool under_way[WINDOW];
};

/* Changes to the current server if it is a new one. */
static void follow(struct client *c)
{
	unsigned int round = __atomic_load_n(&c->board->round, __ATOMIC_SEQ_CST);
	struct obj_name name = c->board->name;

	if (round % 2 || round == c->round ||
	    __atomic_load_n(&c->board->round, __ATOMIC_SEQ_CST) != round)
		return;
	if (c->peer != FI_ADDR_NOTAVAIL)
		OK(fi_av_remove(c->o.av, &c->peer, 1, 0));
	c->peer = obj_insert(c->o.av, &name);
	c->round = round;
}

static void collect(struct client *c)
{
	struct fi_cq_tagged_entry e;

	while (take(c->o.cq, &e)) {
		struct posted *p = e.op_context;

		if (p != &c->buffer) {
			c->under_way[p - c->send] = false;
			c->busy--;
			continue;
		}
		taken_back(p, e.flags);
		if (p->given_back)
			post_buffer(c->o.ep, p);
	}
}

static void send_one(struct client *c, unsigned int n)
{
	static const size_t lens[] = {8, 64, 3000, 9000, 20000, LONGEST};
	int free_one = 0;

	if (c->busy == WINDOW || c->peer == FI_ADDR_NOTAVAIL)
		return;
	while (c->under_way[free_one])
		free_one++;
	if (!fi_send(c->o.ep, c->send[free_one].bytes, lens[n * 7 / 3 % API_COUNT(lens)], NULL,
		     fi_rx_addr(c->peer, (int)(n % CONTEXTS), BITS), &c->send[free_one].context)) {
		c->under_way[free_one] = true;
		c->busy++;
	}
}

static void client(struct api *a, struct client *c)
{
	struct obj_name mine, all[API_RANKS];
	static char bytes[LONGEST];

	c->board = a->shared;
	c->peer = FI_ADDR_NOTAVAIL;
	c->o.av = obj_av(&c->o, FI_AV_UNSPEC, BITS);
	obj_open(&c->o);
	for (int i = 0; i < WINDOW; i++)
		c->send[i].bytes = bytes;
	CHECK((c->buffer.bytes = malloc(BUFFER)) != NULL);
	post_buffer(c->o.ep, &c->buffer);
	mine = obj_name(&c->o.ep->fid);
	api_swap(a, &mine, all, sizeof(mine));
	for (unsigned int n = 0; !__atomic_load_n(&c->board->over, __ATOMIC_ACQUIRE); n++) {
		if (n % 64 == 0)
			alarm(api_limit());
		follow(c);
		send_one(c, n);
		collect(c);
		if (n % 4 == 0)
			sched_yield();
	}
	/* The sends to the last server end too. */
	OBJ_UNTIL(c->busy == 0, collect(c));
	obj_close(&c->o);
	free(c->buffer.bytes);
}

static void churn(struct api *a)
{
	struct client c = {0};

	c.o.hints = hints(a->rank ? 1 : CONTEXTS);
	obj_domain(&c.o);
	if (a->rank) {
		client(a, &c);
	} else {
		server(a, &c.o);
		obj_close(&c.o);
	}
	api_meet(a);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"churn", churn, 3, {0}},
		{"churn-no-cma", churn, 3, {"FI_SHM_DISABLE_CMA=yes"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
