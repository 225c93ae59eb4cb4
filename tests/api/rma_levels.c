/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the completion of a write or atomic says, by the level that was asked for. FI_INJECT_COMPLETE: the memory is free,
 * the target need not have looked, and its refusal is told nobody. All others: the target has performed it.
 */
#include <rdma/fi_atomic.h>

#include "obj.h"
#include "lib/rma.h"
#include "lib/rma_buf.h"

#define LEN  (1u << 18)
#define EACH 2048 /* bytes between two operations' targets */

static unsigned char memory[LEN], local[LEN];

static const size_t lens[] = {1, 8, 64, 1000, EACH};

/* A write, or by turns an atomic, of `len` bytes of `local`. */
static ssize_t post(struct rma *r, const struct rma_key *key, uint64_t at, size_t len,
		    uint64_t flags)
{
	struct iovec iov = {local, len};
	struct fi_rma_iov to = {key->base + at, len, key->key};
	struct fi_ioc ioc = {local, len};
	struct fi_rma_ioc target = {key->base + at, len, key->key};

	if (at / EACH % 2 == 0)
		return rma_post(r->o.ep, &(struct rma_op){.form = RMA_WRITEMSG,
							  .iov = &iov,
							  .count = 1,
							  .to = &to,
							  .to_count = 1,
							  .peer = r->addr[1],
							  .flags = flags,
							  .context = local});
	return fi_atomicmsg(r->o.ep,
			    &(struct fi_msg_atomic){.msg_iov = &ioc,
						    .iov_count = 1,
						    .addr = r->addr[1],
						    .rma_iov = &target,
						    .rma_iov_count = 1,
						    .datatype = FI_UINT8,
						    .op = FI_ATOMIC_WRITE,
						    .context = local},
			    flags);
}

static void open_pair(struct rma *r, struct rma_target *t, struct api *a)
{
	rma_open(r, a, &(struct rma_opts){.caps = FI_MSG | FI_RMA | FI_ATOMIC});
	rma_target_open(r, t, memory, LEN);
	if (a->rank == 0)
		RMA_PLAIN(r, RMA_WRITE, local, 0, &t->key, 0); /* connects */
	api_meet(a);
}

/* The target makes no call until all have completed; the memory is overwritten as soon as one has. */
static void memory_is_free(struct api *a)
{
	struct rma_target t;
	struct rma r;
	char byte = 0;

	open_pair(&r, &t, a);
	if (a->rank == 1) {
		a->progress = NULL;
		api_hear(a, 0, &byte, 1);
		a->progress = rma_progress;
	}
	for (unsigned int i = 0; a->rank == 0 && i < 2 * API_COUNT(lens); i++) {
		memset(local, (int)i + 1, lens[i / 2]);
		POST(r.o.cq, post(&r, &t.key, (uint64_t)i * EACH, lens[i / 2],
				  FI_INJECT_COMPLETE | FI_COMPLETION));
		obj_done(r.o.cq, local);
		memset(local, 0xff, lens[i / 2]);
		CHECK_EQ(fi_cntr_read(r.writes), i + 2);
	}
	if (a->rank == 0) {
		api_tell(a, 1, &byte, 1);
		/* Behind a fence all are performed. */
		POST(r.o.cq, post(&r, &t.key, LEN / 2, 1, FI_FENCE | FI_DELIVERY_COMPLETE));
		obj_done(r.o.cq, local);
	}
	api_meet(a);
	for (unsigned int i = 0; a->rank == 1 && i < 2 * API_COUNT(lens); i++)
		CHECK(data_all(memory + (size_t)i * EACH, lens[i / 2], (unsigned char)(i + 1)));
	rma_target_close(&r, &t);
	rma_close(&r);
}

/* A refusal is told unless only the memory was asked for; the connection goes on in any case. */
static void refusals(struct api *a)
{
	static const uint64_t levels[] = {0, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE,
					  FI_INJECT_COMPLETE,
					  FI_INJECT_COMPLETE | FI_DELIVERY_COMPLETE};
	struct rma_target t;
	struct rma r;

	open_pair(&r, &t, a);
	for (unsigned int i = 0; a->rank == 0 && i < 4 * API_COUNT(levels); i++) {
		struct rma_key bad = t.key;
		uint64_t level = levels[i / 4];

		bad.key ^= 0x55;
		POST(r.o.cq, post(&r, &bad, (uint64_t)(i % 2) * EACH, i & 2 ? 8 : EACH, level));
		if (level == FI_INJECT_COMPLETE)
			obj_done(r.o.cq, local);
		else
			CHECK_EQ(obj_error(r.o.cq).err, FI_EACCES);
		POST(r.o.cq, post(&r, &t.key, 0, 8, FI_DELIVERY_COMPLETE));
		obj_done(r.o.cq, local);
	}
	rma_target_close(&r, &t);
	rma_close(&r);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"memory-is-free", memory_is_free, 2, {0}},
		{"memory-is-free-no-cma", memory_is_free, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"refusals", refusals, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
