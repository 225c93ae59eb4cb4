/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small OpenSHMEM runtime over the public interface. It makes the calls of such runtimes in their
 * order. It opens one endpoint, or a second one to send from. It enables the endpoint first, then
 * binds a shared transmit context and the counters of writes and reads, and enables the endpoint
 * again. Progress is automatic. The region has a counter of remote changes; a process that waits
 * for a word in the region sleeps on that counter. The context is closed before the endpoint.
 *
 * Processes are forked before the library is used. `team` is memory shared by all, in place of a
 * launcher: it exchanges addresses and provides barriers at start and end.
 */
#ifndef SHMEM_NODE_H
#define SHMEM_NODE_H

#define WEFT_NO_DEPRECATED /* uses an old API version */
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PES_MAX   64
#define HEAP_SIZE (1u << 20)
#define HEAP_KEY  1
#define STUCK     40 /* limit in seconds for any wait */

struct card {
	char name[128];
	size_t name_len;
	uint64_t base, key;
};

struct team {
	struct card cards[PES_MAX];
	int arrived; /* atomic: arrivals at the launcher's barrier */
	int failed;  /* atomic */
	double seconds[PES_MAX], cpu[PES_MAX];
};

/* Command line options. */
struct wanted {
	int pes, endpoints;
	const char *provider;
	long work;           /* loops of computing between calls */
	long rounds;         /* number of rounds */
	unsigned int slower; /* factor for time limits */
	bool no_event;       /* the region has no counter: waits poll */
};

struct node {
	int me, pes;
	struct wanted wanted;
	struct team *team;
	int meetings;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_mr *mr;
	struct fid_cntr *changed;   /* counts remote changes of the heap, or NULL */
	struct fid_ep *target, *ep; /* equal if there is one endpoint */
	struct fid_stx *stx;        /* NULL if unsupported */
	struct fid_cntr *put, *get; /* operations of this process */
	uint64_t puts, gets;        /* operations posted */
	fi_addr_t peer[PES_MAX];
	const char *volatile waits_for;
	size_t used; /* bytes of the heap */
	char *heap;
};

static struct node node;

__attribute__((format(printf, 1, 2), noreturn)) static inline void die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "pe %d of %d: ", node.me, node.pes);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	__atomic_store_n(&node.team->failed, 1, __ATOMIC_SEQ_CST);
	_exit(1);
}

static inline void stuck(int number)
{
	(void)number;
	die("stuck, waiting for: %s", node.waits_for);
}

static inline void must(ssize_t ret, const char *call)
{
	if (ret < 0)
		die("%s: %zd, %s", call, ret, fi_strerror((int)-ret));
}

static inline double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns the CPU time of all threads of this process. */
static inline double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The launcher's barrier. */
static inline void meet(void)
{
	int all = ++node.meetings * node.pes;

	__atomic_fetch_add(&node.team->arrived, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&node.team->arrived, __ATOMIC_SEQ_CST) < all) {
		if (__atomic_load_n(&node.team->failed, __ATOMIC_SEQ_CST))
			_exit(1);
		usleep(200);
	}
}

/* ---- Opening --------------------------------------------------------------------------------- */

static inline struct fi_info *hints_for(const struct wanted *w)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		die("out of memory");
	hints->caps = FI_RMA | FI_ATOMIC | (w->no_event ? 0 : FI_RMA_EVENT);
	hints->addr_format = FI_FORMAT_UNSPEC;
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode = FI_MR_BASIC;
	hints->domain_attr->mr_key_size = 1;
	hints->ep_attr->type = FI_EP_RDM;
	hints->ep_attr->tx_ctx_cnt = 0;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->tx_attr->inject_size = 16;
	if (w->provider)
		hints->fabric_attr->prov_name = strdup(w->provider);
	return hints;
}

static inline struct fid_cntr *open_counter(void)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
	struct fid_cntr *cntr;

	must(fi_cntr_open(node.domain, &attr, &cntr, NULL), "fi_cntr_open");
	return cntr;
}

static inline void open_domain(void)
{
	struct fi_info *hints = hints_for(&node.wanted);
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT};

	must(fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &node.info), "fi_getinfo");
	fi_freeinfo(hints);
	must(fi_fabric(node.info->fabric_attr, &node.fabric, NULL), "fi_fabric");
	must(fi_domain(node.fabric, node.info, &node.domain, NULL), "fi_domain");
	must(fi_av_open(node.domain, &av, &node.av, NULL), "fi_av_open");
	must(fi_cq_open(node.domain, &cq, &node.cq, NULL), "fi_cq_open");
}

static inline void open_heap(void)
{
	uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE;

	node.heap =
		mmap(NULL, HEAP_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (node.heap == MAP_FAILED)
		die("no heap");
	must(fi_mr_reg(node.domain, node.heap, HEAP_SIZE, access, 0, HEAP_KEY, 0, &node.mr, NULL),
	     "fi_mr_reg");
	if (node.wanted.no_event)
		return;
	node.changed = open_counter();
	must(fi_mr_bind(node.mr, &node.changed->fid, FI_REMOTE_WRITE), "fi_mr_bind");
	if (node.info->domain_attr->mr_mode & FI_MR_RMA_EVENT)
		must(fi_mr_enable(node.mr), "fi_mr_enable");
}

static inline struct fid_ep *open_endpoint(void)
{
	uint64_t flags = FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION;
	struct fid_ep *ep;

	must(fi_endpoint(node.domain, node.info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &node.av->fid, 0), "fi_ep_bind of the address vector");
	must(fi_ep_bind(ep, &node.cq->fid, flags), "fi_ep_bind of the queue");
	must(fi_enable(ep), "fi_enable");
	return ep;
}

/* Binds the shared transmit context after the endpoint has been enabled. */
static inline void make_context(void)
{
	if (node.info->domain_attr->max_ep_stx_ctx > 0) {
		must(fi_stx_context(node.domain, node.info->tx_attr, &node.stx, NULL),
		     "fi_stx_context");
		must(fi_ep_bind(node.ep, &node.stx->fid, 0), "fi_ep_bind of the shared context");
	}
	node.put = open_counter();
	node.get = open_counter();
	must(fi_ep_bind(node.ep, &node.put->fid, FI_WRITE), "fi_ep_bind for FI_WRITE");
	must(fi_ep_bind(node.ep, &node.get->fid, FI_READ), "fi_ep_bind for FI_READ");
	must(fi_enable(node.ep), "fi_enable again");
}

static inline void notify_all(void)
{
	bool offsets = node.info->domain_attr->mr_mode == FI_MR_SCALABLE;
	struct card *mine = &node.team->cards[node.me];

	mine->name_len = sizeof(mine->name);
	must(fi_getname(&node.target->fid, mine->name, &mine->name_len), "fi_getname");
	mine->base = offsets ? 0 : (uintptr_t)node.heap;
	mine->key = fi_mr_key(node.mr);
	meet();
	for (int i = 0; i < node.pes; i++)
		if (fi_av_insert(node.av, node.team->cards[i].name, 1, &node.peer[i], 0, NULL) != 1)
			die("the address of pe %d is refused", i);
}

static inline void node_open(void)
{
	open_domain();
	open_heap();
	node.target = node.ep = open_endpoint();
	notify_all();
	if (node.wanted.endpoints == 2)
		node.ep = open_endpoint();
	make_context();
	meet();
}

/* ---- Calls of programs ----------------------------------------------------------------------- */

/* Allocates from the heap. All processes make the same calls, so offsets are equal in all heaps. */
static inline void *shared(size_t size)
{
	void *at = node.heap + node.used;

	node.used += (size + 63) / 64 * 64;
	if (node.used > HEAP_SIZE)
		die("the heap is full");
	return at;
}

static inline uint64_t there(const void *object, int pe)
{
	return node.team->cards[pe].base + (uint64_t)((const char *)object - node.heap);
}

static inline uint64_t key_of(int pe)
{
	return node.team->cards[pe].key;
}

static inline bool full(ssize_t ret, const char *call)
{
	if (ret == -FI_EAGAIN)
		fi_cq_read(node.cq, NULL, 0);
	else
		must(ret, call);
	return ret == -FI_EAGAIN;
}

/* Waits without a timeout, as runtimes do; `stuck` ends a hanging process. */
static inline void wait_counter(struct fid_cntr *cntr, uint64_t value, const char *what)
{
	int ret;

	node.waits_for = what;
	ret = fi_cntr_wait(cntr, value, -1);
	if (ret) {
		struct fi_cq_err_entry e = {0};

		fi_cq_readerr(node.cq, &e, 0);
		die("%s: %s, in the queue: %s", what, fi_strerror(-ret), fi_strerror(e.err));
	}
	node.waits_for = "nothing";
}

/* Waits until all puts are complete. */
static inline void quiet(void)
{
	wait_counter(node.put, node.puts, "quiet");
}

static inline void put(void *to, const void *from, size_t len, int pe)
{
	uint64_t at = there(to, pe), key = key_of(pe);

	if (len <= 16)
		while (full(fi_inject_write(node.ep, from, len, node.peer[pe], at, key),
			    "fi_inject_write"))
			;
	else
		while (full(fi_write(node.ep, from, len, NULL, node.peer[pe], at, key, NULL),
			    "fi_write"))
			;
	node.puts++;
	if (len > 16)
		quiet(); /* the source can be reused */
}

static inline void get(void *to, const void *from, size_t len, int pe)
{
	while (full(
		fi_read(node.ep, to, len, NULL, node.peer[pe], there(from, pe), key_of(pe), NULL),
		"fi_read"))
		;
	wait_counter(node.get, ++node.gets, "get");
}

static inline void add(uint64_t *word, uint64_t value, int pe)
{
	while (full(fi_inject_atomic(node.ep, &value, 1, node.peer[pe], there(word, pe), key_of(pe),
				     FI_UINT64, FI_SUM),
		    "fi_inject_atomic"))
		;
	node.puts++;
}

static inline uint64_t fetch(enum fi_op op, uint64_t *word, uint64_t value, int pe)
{
	uint64_t old;

	while (full(fi_fetch_atomic(node.ep, &value, 1, NULL, &old, NULL, node.peer[pe],
				    there(word, pe), key_of(pe), FI_UINT64, op, NULL),
		    "fi_fetch_atomic"))
		;
	wait_counter(node.get, ++node.gets, "fetching atomic");
	return old;
}

/* `with`: the mask of FI_MSWAP, the compare value of FI_CSWAP. */
static inline uint64_t compare(enum fi_op op, uint64_t *word, uint64_t value, uint64_t with, int pe)
{
	uint64_t old;

	while (full(fi_compare_atomic(node.ep, &value, 1, NULL, &with, NULL, &old, NULL,
				      node.peer[pe], there(word, pe), key_of(pe), FI_UINT64, op,
				      NULL),
		    "fi_compare_atomic"))
		;
	wait_counter(node.get, ++node.gets, "comparing atomic");
	return old;
}

static inline uint64_t word_now(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/*
 * Waits while the masked word of this process's heap equals `value`. Reads the counter before the
 * word, so that a later change increases the counter beyond `count`.
 */
static inline uint64_t wait_while(const uint64_t *word, uint64_t mask, uint64_t value)
{
	for (;;) {
		uint64_t count = node.changed ? fi_cntr_read(node.changed) : 0;
		uint64_t now = word_now(word);

		if ((now & mask) != value)
			return now;
		if (node.changed) {
			wait_counter(node.changed, count + 1, "wait until");
		} else {
			fi_cq_read(node.cq, NULL, 0);
			sched_yield();
		}
	}
}

/* A dissemination barrier: one round per doubling, by words that others increment. */
static inline void barrier(void)
{
	static uint64_t *arrived, count;

	if (!arrived)
		arrived = (uint64_t *)(void *)node.heap; /* reserved by node_run */
	quiet();
	count++;
	for (int r = 0; 1 << r < node.pes; r++) {
		add(&arrived[r], 1, (node.me + (1 << r)) % node.pes);
		for (uint64_t now = word_now(&arrived[r]); now < count;)
			now = wait_while(&arrived[r], UINT64_MAX, now);
	}
}

/* ---- The end --------------------------------------------------------------------------------- */

static inline void node_close(void)
{
	barrier();
	quiet();
	meet();
	if (node.stx)
		must(fi_close(&node.stx->fid), "fi_close of the shared context");
	must(fi_close(&node.ep->fid), "fi_close of the endpoint");
	must(fi_close(&node.put->fid), "fi_close of the counter for FI_WRITE");
	must(fi_close(&node.get->fid), "fi_close of the counter for FI_READ");
	if (node.target != node.ep)
		must(fi_close(&node.target->fid), "fi_close of the target");
	must(fi_close(&node.mr->fid), "fi_close of the heap's region");
	if (node.changed)
		must(fi_close(&node.changed->fid), "fi_close of the heap's counter");
	must(fi_close(&node.cq->fid), "fi_close of the queue");
	must(fi_close(&node.av->fid), "fi_close of the address vector");
	must(fi_close(&node.domain->fid), "fi_close of the domain");
	must(fi_close(&node.fabric->fid), "fi_close of the fabric");
	fi_freeinfo(node.info);
}

static inline void one_pe(int me, void (*program)(void))
{
	node.me = me;
	node.waits_for = "nothing";
	signal(SIGALRM, stuck);
	alarm(STUCK * node.wanted.slower);
	node_open();
	shared(64 * sizeof(uint64_t)); /* used by barrier() */
	barrier();
	program();
	node_close();
	_exit(0);
}

/* Runs the program in all processes. Returns 0 if all succeed. */
static inline int node_run(const struct wanted *wanted, void (*program)(void))
{
	int failed = 0, status;

	node.wanted = *wanted;
	node.pes = wanted->pes;
	node.team = mmap(NULL, sizeof(*node.team), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (node.team == MAP_FAILED)
		return 1;
	for (int i = 0; i < node.pes; i++)
		if (fork() == 0)
			one_pe(i, program);
	while (wait(&status) > 0) {
		failed |= status;
		if (status)
			__atomic_store_n(&node.team->failed, 1, __ATOMIC_SEQ_CST);
	}
	return failed != 0;
}

#endif /* SHMEM_NODE_H */
