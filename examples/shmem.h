/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of OpenSHMEM over libfabric, each in a few lines. Each process has a heap of the
 * same layout; puts, gets and atomics name an object of their own heap and access the one at the
 * same offset in another heap. Operations have no completions: two counters count those that are
 * done. */
#ifndef SHMEM_H
#define SHMEM_H

#include <stddef.h>
#include <stdint.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include "node.h"

#define HEAP_SIZE (1u << 20)
#define HEAP_KEY  7u /* key of each process's heap: fixed, so that no exchange is needed */
#define ROUNDS    6  /* rounds of a barrier: enough for TEAM_MAX processes */

static struct shmem {
	char heap[HEAP_SIZE] __attribute__((aligned(64)));
	size_t used;
	struct fid_mr *mr;
	struct fid_cntr *put_cntr, *get_cntr;
	uint64_t puts, gets; /* operations begun; the counters count those done */
	/* In the heap: for each round, the number of the last barrier announced to us. */
	uint64_t *arrived;
	uint64_t barriers;
} shmem;

/* Returns the address of an object in any heap: with mr_mode 0 that is its offset. */
static inline uint64_t offset_of(const void *object)
{
	return (uint64_t)((const char *)object - shmem.heap);
}

/* All processes call it in the same order with the same sizes, so it returns the same offset in
 * each. */
static inline void *shmem_malloc(size_t size)
{
	void *object = shmem.heap + shmem.used;

	shmem.used += (size + 63) / 64 * 64;
	if (shmem.used > HEAP_SIZE)
		fail("the heap is full");
	return object;
}

static inline struct fid_cntr *open_counter(uint64_t counts)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
	struct fid_cntr *cntr;

	must(fi_cntr_open(node.domain, &attr, &cntr, NULL), "fi_cntr_open");
	must(fi_ep_bind(node.ep, &cntr->fid, counts), "fi_ep_bind");
	return cntr;
}

/* shmem_quiet needs delivery completion, one-sided calls need automatic progress. With selective
 * completion the queue gets only errors. */
static inline void shmem_init(const char *provider)
{
	struct fi_info *hints = node_hints(provider, FI_RMA | FI_ATOMIC);

	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	node_open(hints, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION);
	shmem.put_cntr = open_counter(FI_WRITE);
	shmem.get_cntr = open_counter(FI_READ);
	shmem.mr = node_expose(shmem.heap, HEAP_SIZE, HEAP_KEY, 0);
	shmem.arrived = shmem_malloc(ROUNDS * sizeof *shmem.arrived);
	node_start();
	team_barrier(NULL);
}

static inline void shmem_finalize(void)
{
	team_barrier(NULL);
	node_stop();
	must(fi_close(&shmem.mr->fid), "fi_close");
	must(fi_close(&shmem.put_cntr->fid), "fi_close");
	must(fi_close(&shmem.get_cntr->fid), "fi_close");
	node_close();
}

/* Waits for the counter. The wait ends early if an operation failed; the queue then has the
 * error. */
static inline void wait_until(struct fid_cntr *cntr, uint64_t count, const char *what)
{
	int ret = fi_cntr_wait(cntr, count, -1);

	if (ret == -FI_EAVAIL)
		node_complete(what);
	must(ret, what);
}

/* Waits until all earlier puts are in their target's memory. */
static inline void shmem_quiet(void)
{
	wait_until(shmem.put_cntr, shmem.puts, "a put");
}

/* Puts `count` words; the source may be reused on return. */
static inline void shmem_put64(uint64_t *dest, const uint64_t *source, size_t count, int pe)
{
	while (node_full(fi_write(node.ep, source, count * sizeof *source, NULL, (fi_addr_t)pe,
				  offset_of(dest), HEAP_KEY, NULL),
			 "fi_write"))
		;
	shmem.puts++;
	shmem_quiet();
}

static inline void shmem_get64(uint64_t *dest, const uint64_t *source, size_t count, int pe)
{
	while (node_full(fi_read(node.ep, dest, count * sizeof *dest, NULL, (fi_addr_t)pe,
				 offset_of(source), HEAP_KEY, NULL),
			 "fi_read"))
		;
	shmem.gets++;
	wait_until(shmem.get_cntr, shmem.gets, "a get");
}

/* Puts every step-th element here to every to_step-th there. All writes but the last have
 * FI_MORE, so that the library may send them together. */
static inline void shmem_iput64(uint64_t *dest, const uint64_t *source, ptrdiff_t to_step,
				ptrdiff_t step, size_t count, int pe)
{
	struct iovec from = {.iov_len = sizeof *source};
	struct fi_rma_iov to = {.len = sizeof *dest, .key = HEAP_KEY};
	struct fi_msg_rma msg = {.msg_iov = &from,
				 .iov_count = 1,
				 .addr = (fi_addr_t)pe,
				 .rma_iov = &to,
				 .rma_iov_count = 1};

	for (size_t i = 0; i < count; i++) {
		from.iov_base = (void *)(source + (ptrdiff_t)i * step);
		to.addr = offset_of(dest + (ptrdiff_t)i * to_step);
		while (node_full(fi_writemsg(node.ep, &msg, i + 1 < count ? FI_MORE : 0),
				 "fi_writemsg"))
			;
	}
	shmem.puts += count;
	shmem_quiet();
}

/* Swaps by FI_MSWAP with a mask of all bits. */
static inline uint64_t shmem_swap(uint64_t *target, uint64_t value, int pe)
{
	uint64_t mask = ~0ULL, old;

	while (node_full(fi_compare_atomic(node.ep, &value, 1, NULL, &mask, NULL, &old, NULL,
					   (fi_addr_t)pe, offset_of(target), HEAP_KEY, FI_UINT64,
					   FI_MSWAP, NULL),
			 "fi_compare_atomic"))
		;
	shmem.gets++;
	wait_until(shmem.get_cntr, shmem.gets, "a swap");
	return old;
}

/* Atomics that return the old value: FI_SUM is fetch-and-add, FI_ATOMIC_WRITE a swap,
 * FI_ATOMIC_READ a fetch. */
static inline uint64_t shmem_fetch(enum fi_op op, uint64_t *target, uint64_t value, int pe)
{
	uint64_t old;

	while (node_full(fi_fetch_atomic(node.ep, &value, 1, NULL, &old, NULL, (fi_addr_t)pe,
					 offset_of(target), HEAP_KEY, FI_UINT64, op, NULL),
			 "fi_fetch_atomic"))
		;
	shmem.gets++;
	wait_until(shmem.get_cntr, shmem.gets, "an atomic");
	return old;
}

/* Atomics without a result need no wait: the call copies their operand. */
static inline void shmem_update(enum fi_op op, uint64_t *target, uint64_t value, int pe)
{
	while (node_full(fi_inject_atomic(node.ep, &value, 1, (fi_addr_t)pe, offset_of(target),
					  HEAP_KEY, FI_UINT64, op),
			 "fi_inject_atomic"))
		;
	shmem.puts++;
}

/* Waits until another process has raised the word in our heap to `value`. */
static inline void shmem_wait_until(const uint64_t *word, uint64_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value) {
		node_progress();
		sched_yield();
	}
}

/* In round r each process announces itself to the one 2^r further on: after the last round all
 * have heard of all. */
static inline void shmem_barrier_all(void)
{
	shmem_quiet();
	shmem.barriers++;
	for (int r = 0; 1 << r < team.size; r++) {
		shmem_update(FI_ATOMIC_WRITE, &shmem.arrived[r], shmem.barriers,
			     (team.rank + (1 << r)) % team.size);
		shmem_wait_until(&shmem.arrived[r], shmem.barriers);
	}
}

#endif /* SHMEM_H */
