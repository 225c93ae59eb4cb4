/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations that onesided.c measures, and the memory they use. */
#ifndef BENCH_ONESIDED_WAYS_H
#define BENCH_ONESIDED_WAYS_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include "fabric.h"

struct way {
	const char *name;
	bool counts; /* operations add one to the last word, or write their number */
	bool stream, injects;
	bool answered; /* a ping-pong */
	bool rare;     /* the target looks rarely */
	uint64_t caps, op_flags;
	/* Returns 0 or the provider's refusal; `count`: maximum elements. */
	int (*valid)(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count);
	ssize_t (*post)(size_t size, void *context);
};

static unsigned char *memory; /* the target; of a side that is none: the source */
static unsigned char *result; /* fetched data; of a target that answers: the source */
static struct {
	uint64_t addr, key;
} remote;                  /* memory of the other side */
static uint64_t operation; /* number within this run, from 1 */

static uint64_t *last_word(unsigned char *buffer, size_t size)
{
	return (uint64_t *)(void *)(buffer + size) - 1;
}

static ssize_t post_write(size_t size, void *context)
{
	return fi_write(ep, memory, size, NULL, peer, remote.addr, remote.key, context);
}

static ssize_t post_read(size_t size, void *context)
{
	return fi_read(ep, result, size, NULL, peer, remote.addr, remote.key, context);
}

static ssize_t post_fetch_add(size_t size, void *context)
{
	return fi_fetch_atomic(ep, memory, size / 8, NULL, result, NULL, peer, remote.addr,
			       remote.key, FI_UINT64, FI_SUM, context);
}

static ssize_t post_inject_write(size_t size, void *context)
{
	(void)context;
	*last_word(memory, size) = operation;
	return fi_inject_write(ep, memory, size, peer, remote.addr, remote.key);
}

static ssize_t post_sum(size_t size, void *context)
{
	return fi_atomic(ep, memory, size / 8, NULL, peer, remote.addr, remote.key, FI_UINT64,
			 FI_SUM, context);
}

static ssize_t post_inject_sum(size_t size, void *context)
{
	(void)context;
	return fi_inject_atomic(ep, memory, size / 8, peer, remote.addr, remote.key, FI_UINT64,
				FI_SUM);
}

/* Reads the last word back. */
static ssize_t post_look(size_t size, void *context)
{
	return fi_read(ep, result, 8, NULL, peer, remote.addr + size - 8, remote.key, context);
}

/* Writes from `result`, as `memory` is a target on both sides. */
static ssize_t post_put(size_t size, void *context)
{
	*last_word(result, size) = operation;
	if (size <= info->tx_attr->inject_size)
		return fi_inject_write(ep, result, size, peer, remote.addr, remote.key);
	return fi_write(ep, result, size, NULL, peer, remote.addr, remote.key, context);
}

static const struct way ways[] = {
	{
		.name = "write",
		.caps = FI_RMA,
		.op_flags = FI_DELIVERY_COMPLETE,
		.post = post_write,
	},
	{
		.name = "write_rare",
		.rare = true,
		.caps = FI_RMA,
		.post = post_write,
	},
	{
		.name = "write_rare_inject",
		.rare = true,
		.caps = FI_RMA,
		.op_flags = FI_INJECT_COMPLETE,
		.post = post_write,
	},
	{
		.name = "read",
		.caps = FI_RMA,
		.post = post_read,
	},
	{
		.name = "write_stream",
		.stream = true,
		.caps = FI_RMA,
		.op_flags = FI_DELIVERY_COMPLETE,
		.post = post_write,
	},
	{
		.name = "read_stream",
		.stream = true,
		.caps = FI_RMA,
		.post = post_read,
	},
	{
		.name = "put",
		.counts = true,
		.answered = true,
		.caps = FI_RMA,
		.post = post_put,
	},
	{
		.name = "fetch_add",
		.counts = true,
		.caps = FI_RMA | FI_ATOMIC,
		.valid = fi_fetch_atomicvalid,
		.post = post_fetch_add,
	},
	{
		.name = "inject_write",
		.counts = true,
		.stream = true,
		.injects = true,
		.caps = FI_RMA,
		.post = post_inject_write,
	},
	{
		.name = "atomic_sum",
		.counts = true,
		.stream = true,
		.caps = FI_RMA | FI_ATOMIC,
		.valid = fi_atomicvalid,
		.post = post_sum,
	},
	{
		.name = "atomic_sum",
		.counts = true,
		.stream = true,
		.injects = true,
		.caps = FI_RMA | FI_ATOMIC,
		.valid = fi_atomicvalid,
		.post = post_inject_sum,
	},
};

#endif /* BENCH_ONESIDED_WAYS_H */
