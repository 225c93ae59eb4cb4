/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Uses libfabric as RPC libraries do. A constructor imports the log, a destructor closes it.
 * Requests go to multi-receive buffers, answers to tagged receives. Some threads poll one queue
 * while others post. At the end the buffers are cancelled, and FI_MULTI_RECV must be reported for
 * each.
 *
 *    rpc PROVIDER FILE server [CONTEXTS]    CONTEXTS: scalable endpoint, one thread per context
 *    rpc PROVIDER FILE client [CONTEXTS]
 *
 * The server writes its address to FILE, where the client reads it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME     128
#define POSTERS  4
#define POLLERS  2
#define CALLS    100 /* per poster */
#define BUFFERS  2
#define BUFFER   65536
#define CTX_BITS 1
#define LAST     UINT32_MAX

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);         \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)
#define OK(call) CHECK((call) == 0)

/* ---- The log ---- */

static unsigned int log_asked;

static int log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		       enum fi_log_subsys subsys, uint64_t flags)
{
	(void)prov, (void)level, (void)subsys, (void)flags;
	__atomic_add_fetch(&log_asked, 1, __ATOMIC_RELAXED);
	return 0;
}

static struct fi_ops_log log_ops = {.enabled = log_enabled};
static struct fid_logging imported = {.ops = &log_ops};

static void __attribute__((constructor)) begin(void)
{
	OK(fi_import_log(FI_VERSION(1, 13), 0, &imported));
}

static void __attribute__((destructor)) end(void)
{
	CHECK(log_asked);
	OK(fi_close(&imported.fid));
	puts("log closed");
}

/* ---- Endpoints ---- */

struct request {
	uint32_t tag; /* of the answer; LAST ends the server */
	char name[NAME];
};

struct op {
	struct fi_context2 context;
	int done;       /* atomic */
	int given_back; /* the multi-receive buffer is released */
	struct end *end;
	char bytes[];
};

/* An endpoint, or a context of one. */
struct end {
	struct fid_ep *tx, *rx;
	struct fid_cq *cq;
	struct op *buffer[BUFFERS];
	pthread_t poller[POLLERS];
};

static struct fid_domain *domain;
static struct fid_av *av;
static struct fi_info *info;
static struct fid_ep *ep; /* scalable or not */
static struct end ends[1 << CTX_BITS];
static int contexts;
static bool serves;
static int stop; /* atomic */
static fi_addr_t peer = FI_ADDR_NOTAVAIL;
static pthread_mutex_t peer_lock = PTHREAD_MUTEX_INITIALIZER;

static struct op *op_new(struct end *e, size_t len)
{
	struct op *op = calloc(1, sizeof(*op) + len);

	CHECK(op);
	op->end = e;
	return op;
}

static void poll_once(struct end *e);

#define POST(end, call)                                                                            \
	do {                                                                                       \
		ssize_t ret_;                                                                      \
                                                                                                   \
		while ((ret_ = (call)) == -FI_EAGAIN)                                              \
			poll_once(end);                                                            \
		CHECK(ret_ == 0);                                                                  \
	} while (0)

static void post_buffer(struct end *e, struct op *op)
{
	struct iovec iov = {op->bytes, BUFFER};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = op};

	POST(e, fi_recvmsg(e->rx, &msg, FI_MULTI_RECV | FI_COMPLETION));
}

static fi_addr_t address_of(const char *name)
{
	pthread_mutex_lock(&peer_lock);
	if (peer == FI_ADDR_NOTAVAIL)
		CHECK(fi_av_insert(av, name, 1, &peer, 0, NULL) == 1);
	pthread_mutex_unlock(&peer_lock);
	return peer;
}

static void answer(struct end *e, const struct fi_cq_tagged_entry *entry)
{
	struct request request;

	CHECK(entry->len == sizeof(request));
	memcpy(&request, entry->buf, sizeof(request));
	if (request.tag == LAST)
		__atomic_add_fetch(&stop, 1, __ATOMIC_RELEASE);
	else
		POST(e, fi_tinject(e->tx, &request.tag, sizeof(request.tag),
				   address_of(request.name), request.tag));
}

static void poll_once(struct end *e)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = {0};
	ssize_t ret = fi_cq_read(e->cq, &entry, 1);
	struct op *op;

	if (ret == -FI_EAGAIN)
		return;
	if (ret == -FI_EAVAIL) {
		if (fi_cq_readerr(e->cq, &err, 0) != 1)
			return; /* another thread has taken it */
		CHECK(err.err == FI_ECANCELED && err.flags & FI_MULTI_RECV);
		op = err.op_context;
		CHECK(__atomic_add_fetch(&op->given_back, 1, __ATOMIC_RELEASE) == 1);
		return;
	}
	CHECK(ret == 1);
	op = entry.op_context;
	if (entry.flags & FI_RECV && entry.flags & FI_MSG)
		answer(e, &entry);
	else
		__atomic_store_n(&op->done, 1, __ATOMIC_RELEASE);
	if (entry.flags & FI_MULTI_RECV)
		post_buffer(e, op);
}

static void *poller(void *arg)
{
	int ended = serves ? contexts ? contexts : 1 : 1;

	while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) < ended) {
		poll_once(arg);
		if (!serves)
			sched_yield();
	}
	return NULL;
}

static void open_end(struct end *e, int index)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .size = 4096};

	OK(fi_cq_open(domain, &attr, &e->cq, NULL));
	e->tx = e->rx = ep;
	if (contexts && serves) {
		OK(fi_tx_context(ep, index, NULL, &e->tx, NULL));
		OK(fi_rx_context(ep, index, NULL, &e->rx, NULL));
		OK(fi_ep_bind(e->tx, &e->cq->fid, FI_TRANSMIT));
		OK(fi_ep_bind(e->rx, &e->cq->fid, FI_RECV));
		OK(fi_enable(e->tx));
	} else {
		OK(fi_ep_bind(ep, &av->fid, 0));
		OK(fi_ep_bind(ep, &e->cq->fid, FI_TRANSMIT | FI_RECV));
	}
	OK(fi_enable(e->rx));
	for (int i = 0; i < BUFFERS; i++)
		post_buffer(e, e->buffer[i] = op_new(e, BUFFER));
}

/* Waits for the release of the buffers, and checks that nothing else is left. */
static void close_end(struct end *e)
{
	for (int i = 0; i < BUFFERS; i++) {
		OK(fi_cancel(&e->rx->fid, e->buffer[i]));
		while (!__atomic_load_n(&e->buffer[i]->given_back, __ATOMIC_ACQUIRE))
			poll_once(e);
		free(e->buffer[i]);
	}
	if (e->tx != ep) {
		OK(fi_close(&e->tx->fid));
		OK(fi_close(&e->rx->fid));
		OK(fi_close(&e->cq->fid));
	}
}

static void open_all(const char *provider, struct fid_fabric **fabric)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr attr = {.rx_ctx_bits = CTX_BITS};

	hints->caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("nobody's");
	CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) == -FI_ENODATA);
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup(provider);
	hints->domain_attr->threading = FI_THREAD_SAFE;
	if (contexts && serves) {
		hints->caps |= FI_NAMED_RX_CTX;
		hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = (size_t)contexts;
	}
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	OK(fi_fabric(info->fabric_attr, fabric, NULL));
	OK(fi_domain(*fabric, info, &domain, NULL));
	OK(fi_av_open(domain, &attr, &av, NULL));
	if (contexts && serves) {
		OK(fi_scalable_ep(domain, info, &ep, NULL));
		OK(fi_scalable_ep_bind(ep, &av->fid, 0));
		OK(fi_enable(ep));
	} else {
		OK(fi_endpoint(domain, info, &ep, NULL));
	}
}

/* ---- The two sides ---- */

static void serve(const char *file)
{
	int count = contexts ? contexts : 1, threads = contexts ? 1 : POLLERS;
	char name[NAME] = {0}, temporary[4096];
	size_t len = sizeof(name);
	FILE *f;

	for (int i = 0; i < count; i++)
		open_end(&ends[i], i);
	for (int i = 0; i < count * threads; i++)
		OK(pthread_create(&ends[i / threads].poller[i % threads], NULL, poller,
				  &ends[i / threads]));
	OK(fi_getname(&ep->fid, name, &len));
	snprintf(temporary, sizeof(temporary), "%s.part", file);
	CHECK((f = fopen(temporary, "w")) && fwrite(name, sizeof(name), 1, f) == 1 && !fclose(f));
	OK(rename(temporary, file));
	for (int i = 0; i < count * threads; i++)
		OK(pthread_join(ends[i / threads].poller[i % threads], NULL));
	for (int i = 0; i < count; i++)
		close_end(&ends[i]);
}

static void wait_done(struct end *e, struct op *op)
{
	while (!__atomic_load_n(&op->done, __ATOMIC_ACQUIRE))
		poll_once(e);
	op->done = 0;
}

static fi_addr_t context_of(unsigned int n)
{
	return contexts ? fi_rx_addr(peer, (int)n % contexts, CTX_BITS) : peer;
}

static void *call(void *arg)
{
	uint32_t first = (uint32_t)(size_t)arg * CALLS;
	size_t len = NAME;
	struct end *e = ends;
	struct op *reply = op_new(e, sizeof(uint32_t)), *send = op_new(e, sizeof(struct request));
	struct request *request = (struct request *)send->bytes;

	OK(fi_getname(&ep->fid, request->name, &len));
	for (uint32_t tag = first; tag < first + CALLS; tag++) {
		request->tag = tag;
		memset(reply->bytes, 0xff, sizeof(tag));
		POST(e, fi_trecv(e->rx, reply->bytes, sizeof(tag), NULL, FI_ADDR_UNSPEC, tag, 0,
				 reply));
		POST(e, fi_send(e->tx, request, sizeof(*request), NULL, context_of(tag), send));
		wait_done(e, send);
		wait_done(e, reply);
		CHECK(memcmp(reply->bytes, &tag, sizeof(tag)) == 0);
	}
	free(reply);
	free(send);
	return NULL;
}

static void call_all(const char *file)
{
	struct op *last = op_new(ends, sizeof(struct request));
	char name[NAME];
	pthread_t poster[POSTERS];
	FILE *f = fopen(file, "r");

	CHECK(f && fread(name, sizeof(name), 1, f) == 1 && !fclose(f));
	open_end(ends, 0);
	address_of(name);
	for (int i = 0; i < POLLERS; i++)
		OK(pthread_create(&ends->poller[i], NULL, poller, ends));
	for (size_t i = 0; i < POSTERS; i++)
		OK(pthread_create(&poster[i], NULL, call, (void *)i));
	for (int i = 0; i < POSTERS; i++)
		OK(pthread_join(poster[i], NULL));
	((struct request *)last->bytes)->tag = LAST;
	for (unsigned int i = 0; i < (contexts ? (unsigned int)contexts : 1); i++) {
		POST(ends, fi_send(ends->tx, last->bytes, sizeof(struct request), NULL,
				   context_of(i), last));
		wait_done(ends, last);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < POLLERS; i++)
		OK(pthread_join(ends->poller[i], NULL));
	close_end(ends);
	free(last);
}

int main(int argc, char **argv)
{
	struct fid_fabric *fabric;

	CHECK(argc >= 4);
	serves = !strcmp(argv[3], "server");
	contexts = argc > 4 ? atoi(argv[4]) : 0;
	CHECK(contexts <= 1 << CTX_BITS);
	open_all(argv[1], &fabric);
	(serves ? serve : call_all)(argv[2]);
	OK(fi_close(&ep->fid));
	if (!contexts || !serves)
		OK(fi_close(&ends->cq->fid));
	OK(fi_close(&av->fid));
	OK(fi_close(&domain->fid));
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
	puts("done");
	return 0;
}
