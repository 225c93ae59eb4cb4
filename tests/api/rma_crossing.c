/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes without a connection read from each other at the same time, so their connects
 * cross. The side that accepted may send before the other side knows, and must get its answers.
 */
#include "obj.h"
#include "lib/rma.h"

#define MEETINGS 25
#define READS    100
#define LONGEST  70000u

/* Lengths of reads: one cache line, one packet, near its limits, longer. */
static const size_t lens[] = {4, 600, 9000, 12000, 4, 17000, LONGEST};

static unsigned char there_is(int rank, size_t at)
{
	return (unsigned char)(at * 5 + at / 256 + (size_t)rank * 99 + 1);
}

/* Even rounds use one length, odd rounds all lengths in turns. */
static size_t len_of(size_t round, size_t i)
{
	return lens[(round / 2 + (round % 2 ? i : 0)) % API_COUNT(lens)];
}

static void finish(struct rma *r, size_t count)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_tagged_entry entry;

	while (count) {
		ssize_t ret = fi_cq_read(r->o.cq, &entry, 1);

		if (ret == -FI_EAVAIL) {
			CHECK_EQ(fi_cq_readerr(r->o.cq, &err, 0), 1);
			CHECK_EQ(err.err, 0);
		}
		if (ret == -FI_EAGAIN)
			rma_progress(r);
		else
			CHECK_EQ(ret, 1);
		count -= ret == 1;
	}
}

/* Posts all reads before it reads the first completion. */
static void ask(struct rma *r, const struct rma_key *from, size_t round)
{
	static unsigned char got[READS][LONGEST];
	int peer = !r->a->rank;

	memset(got, 0, sizeof(got));
	api_meet(r->a);
	for (size_t i = 0; i < READS; i++)
		POST(r->o.cq, fi_read(r->o.ep, got[i], len_of(round, i), NULL, r->addr[peer],
				      from->base + i, from->key, NULL));
	finish(r, READS);
	for (size_t i = 0; i < READS; i++)
		for (size_t at = 0; at < len_of(round, i); at++)
			if (got[i][at] != there_is(peer, i + at))
				CHECK_EQ(got[i][at], there_is(peer, i + at));
}

static void reads(struct api *a)
{
	static unsigned char memory[LONGEST + READS];

	for (size_t at = 0; at < sizeof(memory); at++)
		memory[at] = there_is(a->rank, at);
	for (unsigned int i = 0; i < api_times(MEETINGS); i++) {
		struct rma_key mine, keys[2];
		struct fid_mr *mr;
		struct rma r;

		rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
		mr = rma_reg(&r, memory, sizeof(memory), RMA_REMOTE);
		mine = rma_key(&r, mr, memory, sizeof(memory));
		api_swap(a, &mine, keys, sizeof(mine));
		ask(&r, &keys[!a->rank], i);
		api_meet(a);
		CLOSE(mr);
		rma_close(&r);
	}
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"reads", reads, 2, {0}},
		{"reads_no_cma", reads, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
