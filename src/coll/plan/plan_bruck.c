/* SPDX-License-Identifier: BSD-2-Clause */
/* Algorithms that take about log2(size) rounds: dissemination, and Bruck's. */
#include "coll/plan/plan_own.h"

static size_t plan_bruck_log2_rounds(const struct plan_part *p)
{
	return plan_log2(p->size);
}

/*
 * ---- Barrier by dissemination ---------------------------------------------------------------------
 *
 * In round k each rank sends to the rank 2^k after it. After ceil(log2 size) rounds each has heard
 * from all, directly or not. One message per direction and round.
 */

static void plan_dissemination_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	plan_send(r, plan_after(p, (uint64_t)1 << n), plan_out(0), 0);
	plan_receive(r, plan_before(p, (uint64_t)1 << n), plan_out(0), 0);
}

const struct plan_algorithm plan_dissemination = {"dissemination", plan_bruck_log2_rounds, NULL,
						  plan_dissemination_round};

/*
 * ---- Bruck's allgather ---------------------------------------------------------------------------
 *
 * After round k a rank has the pieces of 2^(k+1) ranks, from itself on. In each round a rank sends
 * what it has to the rank that many before it. It takes ceil(log2 size) rounds. Unlike in the original
 * algorithm, pieces are always in their place in OUT, so no final rotation is needed. Pieces that wrap
 * around the last rank take two messages.
 *
 * A rank's own piece is in IN; same: in its place in OUT.
 */

/* Sends or receives `len` pieces from rank `first` on. */
static void plan_bruck_pass(const struct plan_part *p, uint32_t first, uint32_t len,
			    struct plan_message m, struct plan_round *r)
{
	uint32_t before = p->size - first < len ? p->size - first : len;
	struct plan_piece parts[] = {plan_pieces(p->count, p->size, first, first + before),
				     plan_pieces(p->count, p->size, 0, len - before)};

	for (int i = 0; i < 2; i++) {
		m.place = plan_out(parts[i].at);
		m.count = parts[i].count;
		if (m.count)
			plan_message(r, &m);
	}
}

static void plan_bruck_allgather_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	uint32_t step = (uint32_t)1 << n;
	uint32_t len = p->size - step < step ? p->size - step : step;
	uint32_t after = plan_after(p, step), before = plan_before(p, step);
	struct plan_piece own = plan_piece(p, p->rank);

	if (n == 0 && !p->same) {
		plan_send_piece(r, before, plan_in(0), own.count);
		plan_copy(r, plan_out(own.at), plan_in(0), own.count);
	} else {
		plan_bruck_pass(p, p->rank, len,
				(struct plan_message){.peer = before, .send = true}, r);
	}
	plan_bruck_pass(p, after, len, (struct plan_message){.peer = after}, r);
}

const struct plan_algorithm plan_bruck_allgather = {"Bruck allgather", plan_bruck_log2_rounds, NULL,
						    plan_bruck_allgather_round};

/*
 * ---- Bruck's alltoall, for short pieces ----------------------------------------------------------
 *
 * It takes ceil(log2 size) rounds; in each of them about half of all pieces move. The scratch begins
 * with a table of pieces: place i has the piece for the rank i ranks ahead. In round k all pieces
 * whose place has bit k set go 2^k ranks ahead, in one message; received pieces replace them. At the
 * end place i has the piece from the rank i ranks behind.
 *
 * The last read of IN precedes the first write to OUT, so they may share memory. `count` is the whole
 * vector, a multiple of size.
 */

static size_t plan_bruck_block(const struct plan_part *p)
{
	return p->count / p->size;
}

/* Returns the number of places below size with bit k set. */
static size_t plan_bruck_with_bit(const struct plan_part *p, size_t k)
{
	size_t run = (size_t)1 << k, rest = p->size & (2 * run - 1);

	return (p->size >> (k + 1)) * run + (rest > run ? rest - run : 0);
}

/* Returns the largest number of pieces sent in a round. */
static size_t plan_bruck_most(const struct plan_part *p)
{
	size_t most = 0;

	for (size_t k = 0; k < plan_log2(p->size); k++)
		most = plan_bruck_with_bit(p, k) > most ? plan_bruck_with_bit(p, k) : most;
	return most;
}

static size_t plan_bruck_rounds(const struct plan_part *p)
{
	return 1 + plan_log2(p->size);
}

static size_t plan_bruck_scratch(const struct plan_part *p)
{
	return p->count + 2 * plan_bruck_most(p) * plan_bruck_block(p);
}

static struct plan_place plan_bruck_came(const struct plan_part *p)
{
	return plan_tmp(p->count + plan_bruck_most(p) * plan_bruck_block(p));
}

/* Copies `runs` runs of `run` pieces. Steps in `l` are in pieces. */
static void plan_bruck_copy_runs(const struct plan_part *p, struct plan_local l, size_t run,
				 size_t runs, struct plan_round *r)
{
	ptrdiff_t size = (ptrdiff_t)plan_bruck_block(p);

	l.what = PLAN_COPY;
	l.count = run * plan_bruck_block(p);
	l.blocks = runs;
	l.dst_step *= size;
	l.left_step *= size;
	plan_local(r, &l);
}

/* Packs or unpacks the places with bit k: runs of 2^k places, the last one may be shorter. */
static void plan_bruck_pack(const struct plan_part *p, size_t k, bool unpack, struct plan_round *r)
{
	size_t run = (size_t)1 << k, runs = p->size >> (k + 1), all = plan_bruck_with_bit(p, k);
	size_t done = 0;

	for (int tail = 0; tail < 2; tail++) {
		size_t first = tail ? (2 * runs + 1) * run : run;
		struct plan_place table = plan_tmp(first * plan_bruck_block(p));
		struct plan_place pack = plan_past(unpack ? plan_bruck_came(p) : plan_tmp(p->count),
						   done * plan_bruck_block(p));
		struct plan_local l = {.dst = unpack ? table : pack, .left = unpack ? pack : table};

		l.dst_step = (ptrdiff_t)(unpack ? 2 * run : run);
		l.left_step = (ptrdiff_t)(unpack ? run : 2 * run);
		plan_bruck_copy_runs(p, l, tail ? all - done : run, tail ? 1 : runs, r);
		done = runs * run;
	}
}

/* Copies place i to piece rank - i of OUT: backwards, in two runs. */
static void plan_bruck_rotate_back(const struct plan_part *p, struct plan_round *r)
{
	struct plan_local l = {.left_step = 1, .dst_step = -1};

	l.left = plan_tmp(0);
	l.dst = plan_out(p->rank * plan_bruck_block(p));
	plan_bruck_copy_runs(p, l, 1, p->rank + 1, r);
	l.left = plan_tmp((p->rank + 1) * plan_bruck_block(p));
	l.dst = plan_out((p->size - 1) * plan_bruck_block(p));
	plan_bruck_copy_runs(p, l, 1, p->size - 1 - p->rank, r);
}

static void plan_bruck_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	if (n == 0) {
		size_t before = p->rank * plan_bruck_block(p);

		plan_copy(r, plan_tmp(0), plan_in(before), p->count - before);
		plan_copy(r, plan_tmp(p->count - before), plan_in(0), before);
	} else {
		uint64_t step = (uint64_t)1 << (n - 1);
		size_t len = plan_bruck_with_bit(p, n - 1) * plan_bruck_block(p);

		plan_send(r, plan_after(p, step), plan_tmp(p->count), len);
		plan_receive(r, plan_before(p, step), plan_bruck_came(p), len);
		plan_bruck_pack(p, n - 1, true, r);
	}
	if (n + 1 < plan_bruck_rounds(p))
		plan_bruck_pack(p, n, false, r);
	else
		plan_bruck_rotate_back(p, r);
}

const struct plan_algorithm plan_bruck_alltoall = {"Bruck alltoall", plan_bruck_rounds,
						   plan_bruck_scratch, plan_bruck_round};
