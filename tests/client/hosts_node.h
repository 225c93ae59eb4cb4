/* SPDX-License-Identifier: BSD-2-Clause */
/* One process among many on several hosts, over the public interface alone. It opens an endpoint,
 * exchanges addresses through files in a folder shared by all hosts, posts operations and waits for
 * them. A failure ends the process, and those that wait for it. */
#ifndef HOSTS_NODE_H
#define HOSTS_NODE_H

#include <errno.h>
#include <fcntl.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NODE_RANKS 64
#define STUCK      20 /* fail after so many seconds without a completion */

enum op_kind {
	SEND,
	SEND_DATA,
	SEND_DELIVERED, /* FI_DELIVERY_COMPLETE */
	INJECT,
	RECV,
	WRITE,
	INJECT_WRITE,
	READ,
	FETCH_ADD,
	SWAP,
	BIT_OR,
};

/* An operation. The context comes first, so that a completion leads to its operation. */
struct op {
	struct fi_context2 context;
	enum op_kind kind;
	int peer;
	void *buf;
	size_t size;
	uint64_t tag;            /* messages */
	uint64_t addr;           /* others: offset in the peer's region */
	uint64_t arg[2], result; /* atomics */
	bool done;
	int err;    /* positive error, or 0 */
	size_t len; /* received bytes */
	uint64_t flags, data;
};

/* Address and region of a process, for the others. */
struct card {
	char name[64];
	size_t name_len;
	uint64_t base, key;
};

struct node {
	int rank, ranks;
	int local; /* ranks per host; the first host has 0 to local - 1 */
	const char *dir;
	bool sleeps;   /* waits in fi_cq_sread instead of polling */
	bool may_fail; /* a failed operation stores its error in op->err */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fid_mr *mr;
	fi_addr_t peer[NODE_RANKS];
	struct card card[NODE_RANKS];
	long open; /* operations that have not completed */
	long checked;
	uint64_t bytes_local, bytes_remote; /* sent to ranks on this host, and on others */
};

static struct node node;

static inline void touch(const char *what, int rank)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.%d", node.dir, what, rank);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

static inline bool touched(const char *what, int rank)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.%d", node.dir, what, rank);
	return access(path, F_OK) == 0;
}

__attribute__((format(printf, 1, 2), noreturn)) static inline void die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "rank %d of %d: ", node.rank, node.ranks);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	touch("failed", 0);
	_exit(1);
}

static inline void must(ssize_t ret, const char *call)
{
	if (ret < 0)
		die("%s: %zd, %s", call, ret, fi_strerror((int)-ret));
}

static inline bool is_local(int rank)
{
	return rank / node.local == node.rank / node.local;
}

static inline double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- Completions ----------------------------------------------------------------------------- */

static inline void completed(const struct fi_cq_tagged_entry *entry)
{
	struct op *op = entry->op_context;

	if (!op || op->done)
		die("a completion for %s", op ? "an operation that was done" : "nothing");
	op->done = true;
	op->len = entry->len;
	op->flags = entry->flags;
	op->data = entry->data;
	node.open--;
}

static inline void failed(void)
{
	struct fi_cq_err_entry error = {0};
	struct op *op;

	if (fi_cq_readerr(node.cq, &error, 0) != 1)
		die("an error that can not be read");
	op = error.op_context;
	if (op && node.may_fail) {
		op->done = true;
		op->err = error.err;
		node.open--;
		return;
	}
	die("operation %d with rank %d, tag %llx: error %d, %s; provider's %d",
	    op ? (int)op->kind : -1, op ? op->peer : -1, op ? (unsigned long long)op->tag : 0,
	    error.err, fi_strerror(error.err), error.prov_errno);
}

/* Takes completions; waits up to `sleep` ms for one. Returns whether there were any. */
static inline bool progress(int sleep)
{
	struct fi_cq_tagged_entry entry[16];
	ssize_t n = sleep && node.sleeps ? fi_cq_sread(node.cq, entry, 16, NULL, sleep)
					 : fi_cq_read(node.cq, entry, 16);

	if (n == -FI_EAVAIL) {
		failed();
		return true;
	}
	if (n == -FI_EAGAIN || n == -FI_EINTR) {
		sched_yield();
		return false;
	}
	must(n, "fi_cq_read");
	for (ssize_t i = 0; i < n; i++)
		completed(&entry[i]);
	return true;
}

/* Waits until at most `open` operations are pending. */
static inline void wait_until(long open, const char *what)
{
	double last = seconds();

	while (node.open > open) {
		if (progress(100))
			last = seconds();
		else if (touched("failed", 0))
			exit(1);
		else if (seconds() - last > STUCK)
			die("%s: stuck, %ld operations are not done", what, node.open);
	}
}

/* A barrier by files. */
static inline void meet(const char *what)
{
	double start = seconds();

	touch(what, node.rank);
	for (int i = 0; i < node.ranks; i++)
		while (!touched(what, i)) {
			progress(0);
			if (touched("failed", 0))
				exit(1);
			if (seconds() - start > 2 * STUCK)
				die("%s: rank %d does not come", what, i);
		}
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static inline void open_queue(void)
{
	struct fi_cq_attr attr = {.size = 1024, .format = FI_CQ_FORMAT_TAGGED};

	attr.wait_obj = node.sleeps ? FI_WAIT_UNSPEC : FI_WAIT_NONE;
	must(fi_cq_open(node.domain, &attr, &node.cq, NULL), "fi_cq_open");
}

/* Asks for no address, so the library chooses one that others can reach. */
static inline void open_endpoint(struct fi_info *hints, void *region, size_t size)
{
	struct fi_av_attr attr = {.type = FI_AV_MAP};
	uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE;

	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &node.info), "fi_getinfo");
	must(fi_fabric(node.info->fabric_attr, &node.fabric, NULL), "fi_fabric");
	must(fi_domain(node.fabric, node.info, &node.domain, NULL), "fi_domain");
	must(fi_av_open(node.domain, &attr, &node.av, NULL), "fi_av_open");
	open_queue();
	must(fi_endpoint(node.domain, node.info, &node.ep, NULL), "fi_endpoint");
	must(fi_ep_bind(node.ep, &node.av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(node.ep, &node.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(node.ep), "fi_enable");
	must(fi_mr_reg(node.domain, region, size, access, 0, 1, 0, &node.mr, NULL), "fi_mr_reg");
}

static inline void write_card(const struct card *card)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/card.%d", node.dir, node.rank);
	file = fopen(path, "w");
	if (!file || fwrite(card, sizeof(*card), 1, file) != 1 || fclose(file))
		die("%s: %s", path, strerror(errno));
}

static inline void read_card(int rank)
{
	struct card *card = &node.card[rank];
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/card.%d", node.dir, rank);
	file = fopen(path, "r");
	if (!file || fread(card, sizeof(*card), 1, file) != 1 || fclose(file))
		die("%s: %s", path, strerror(errno));
	if (fi_av_insert(node.av, card->name, 1, &node.peer[rank], 0, NULL) != 1)
		die("the address of rank %d is refused", rank);
}

/* Exchanges addresses. `region` is the memory that others access. */
static inline void meet_peers(void *region)
{
	bool virtual = node.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	struct card mine = {.base = virtual ? (uintptr_t)region : 0, .key = fi_mr_key(node.mr)};

	mine.name_len = sizeof(mine.name);
	must(fi_getname(&node.ep->fid, mine.name, &mine.name_len), "fi_getname");
	write_card(&mine);
	meet("cards");
	for (int i = 0; i < node.ranks; i++)
		read_card(i);
}

static inline void close_node(void)
{
	must(fi_close(&node.ep->fid), "fi_close of the endpoint");
	must(fi_close(&node.mr->fid), "fi_close of the region");
	must(fi_close(&node.cq->fid), "fi_close of the queue");
	must(fi_close(&node.av->fid), "fi_close of the address vector");
	must(fi_close(&node.domain->fid), "fi_close of the domain");
	must(fi_close(&node.fabric->fid), "fi_close of the fabric");
	fi_freeinfo(node.info);
}

/* ---- Operations ------------------------------------------------------------------------------ */

static inline ssize_t try_rma(struct op *op, uint64_t addr, uint64_t key)
{
	struct iovec iov = {op->buf, op->size};
	struct fi_rma_iov there = {addr, op->size, key};
	struct fi_msg_rma msg = {.msg_iov = &iov,
				 .iov_count = 1,
				 .addr = node.peer[op->peer],
				 .rma_iov = &there,
				 .rma_iov_count = 1,
				 .context = op};

	if (op->kind == WRITE)
		return fi_writemsg(node.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION);
	if (op->kind == READ)
		return fi_readmsg(node.ep, &msg, FI_COMPLETION);
	return fi_inject_write(node.ep, op->buf, op->size, msg.addr, addr, key);
}

static inline ssize_t try_atomic(struct op *op, uint64_t addr, uint64_t key)
{
	fi_addr_t to = node.peer[op->peer];

	if (op->kind == FETCH_ADD)
		return fi_fetch_atomic(node.ep, &op->arg[0], 1, NULL, &op->result, NULL, to, addr,
				       key, FI_UINT64, FI_SUM, op);
	if (op->kind == SWAP)
		return fi_compare_atomic(node.ep, &op->arg[0], 1, NULL, &op->arg[1], NULL,
					 &op->result, NULL, to, addr, key, FI_UINT64, FI_CSWAP, op);
	return fi_atomic(node.ep, &op->arg[0], 1, NULL, to, addr, key, FI_UINT64, FI_BOR, op);
}

static inline ssize_t try_delivered(struct op *op)
{
	struct iovec iov = {op->buf, op->size};
	struct fi_msg_tagged msg = {.msg_iov = &iov,
				    .iov_count = 1,
				    .addr = node.peer[op->peer],
				    .tag = op->tag,
				    .context = op};

	return fi_tsendmsg(node.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

static inline ssize_t try_post(struct op *op)
{
	const struct card *card = &node.card[op->peer];
	fi_addr_t to = node.peer[op->peer];

	switch (op->kind) {
	case SEND:
		return fi_tsend(node.ep, op->buf, op->size, NULL, to, op->tag, op);
	case SEND_DATA:
		return fi_tsenddata(node.ep, op->buf, op->size, NULL, ~op->tag, to, op->tag, op);
	case SEND_DELIVERED:
		return try_delivered(op);
	case INJECT:
		return fi_tinject(node.ep, op->buf, op->size, to, op->tag);
	case RECV:
		return fi_trecv(node.ep, op->buf, op->size, NULL, FI_ADDR_UNSPEC, op->tag, 0, op);
	case WRITE:
	case INJECT_WRITE:
	case READ:
		return try_rma(op, card->base + op->addr, card->key);
	default:
		return try_atomic(op, card->base + op->addr, card->key);
	}
}

static inline bool is_injected(const struct op *op)
{
	return op->kind == INJECT || op->kind == INJECT_WRITE;
}

static inline void count_bytes(const struct op *op)
{
	if (op->peer == node.rank || op->kind == RECV)
		return;
	if (is_local(op->peer))
		node.bytes_local += op->size;
	else
		node.bytes_remote += op->size;
}

/* Posts if there is space. Returns false for -FI_EAGAIN. */
static inline bool post_now(struct op *op)
{
	ssize_t ret = try_post(op);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret)
		die("posting operation %d with rank %d, %zu bytes: %s", (int)op->kind, op->peer,
		    op->size, fi_strerror((int)-ret));
	op->done = is_injected(op);
	node.open += !op->done;
	count_bytes(op);
	return true;
}

static inline void post(struct op *op)
{
	double start = seconds();

	while (!post_now(op)) {
		if (progress(0))
			start = seconds();
		else if (touched("failed", 0))
			exit(1);
		else if (seconds() - start > STUCK)
			die("no room for operation %d with rank %d", (int)op->kind, op->peer);
	}
}

#endif /* HOSTS_NODE_H */
