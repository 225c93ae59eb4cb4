/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that the plans of all collectives give right results, on elements that record their
 * origin.
 */
#include "coll/plan/plan_own.h"
#include "plan_cells.h"
#include "suite.h"

#include <malloc.h>

static const enum fi_collective_op kinds[] = {FI_BARRIER,   FI_BROADCAST, FI_ALLTOALL,
					      FI_ALLREDUCE, FI_ALLGATHER, FI_REDUCE_SCATTER,
					      FI_REDUCE,    FI_SCATTER,   FI_GATHER};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]), MOST = 100 };

static const uint32_t sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
				 11, 12, 13, 14, 15, 16, 17, 33, 64, MOST};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* Nominal bytes of an element: together they reach every algorithm. */
static const size_t widths[] = {1, 300, 3000, 40000, 4000000};

static enum plan_overlap apart(uint32_t rank)
{
	(void)rank;
	return PLAN_APART;
}

static enum plan_overlap same(uint32_t rank)
{
	(void)rank;
	return PLAN_SAME;
}

static enum plan_overlap differing(uint32_t rank)
{
	return (enum plan_overlap)((rank + 2) % 3);
}

static enum plan_overlap (*const overlaps[])(uint32_t rank) = {same, differing};

/* Functions that give the host of a rank, for different layouts. */
static uint64_t one_host(void *arg, uint32_t rank)
{
	(void)arg;
	(void)rank;
	return 7;
}

static uint64_t by_threes(void *arg, uint32_t rank)
{
	(void)arg;
	return 1000 - rank / 3;
}

static uint64_t by_fours(void *arg, uint32_t rank)
{
	(void)arg;
	return sim_mix(rank / 4);
}

static uint64_t in_progress(void *arg, uint32_t rank)
{
	(void)arg;
	return rank % 3;
}

static uint64_t at_random(void *arg, uint32_t rank)
{
	(void)arg;
	return sim_mix(rank + 5) % 5;
}

static layout_host *const hosts[] = {NULL, one_host, by_threes, by_fours, in_progress, at_random};

enum { LAYOUTS = sizeof(hosts) / sizeof(hosts[0]) };

static struct layout *layouts[SIZES][LAYOUTS][MOST];

static void make_layouts(void)
{
	for (size_t s = 0; s < SIZES; s++)
		for (size_t l = 1; l < LAYOUTS; l++)
			for (uint32_t i = 0; i < sizes[s]; i++)
				layouts[s][l][i] = layout_make(i, sizes[s], hosts[l], NULL);
}

static void free_layouts(void)
{
	for (size_t s = 0; s < SIZES; s++)
		for (size_t l = 1; l < LAYOUTS; l++)
			for (uint32_t i = 0; i < sizes[s]; i++)
				layout_free(layouts[s][l][i]);
}

static void run(struct cells *c, const struct plan_shape *shape,
		enum plan_overlap (*overlap)(uint32_t rank), struct layout **layout)
{
	static uint32_t round;

	cells_open(c, shape, overlap, layout);
	c->sim.order = round++ % 3;
	c->sim.eager = round / 3 % 2;
	c->sim.random = round;
	sim_run(&c->sim);
	cells_check(c);
}

/* Checks that two runs (in place, other order of events) combined operands in the same way. */
static void same_trees(const struct cells *a, const struct cells *b)
{
	for (uint32_t rank = 0; rank < a->sim.size; rank++)
		for (size_t i = 0; i < cells_out(&a->shape[rank]); i++)
			SIM_CHECK(cells_result(a, rank)[i].tree == cells_result(b, rank)[i].tree);
}

static void run_all_ways(const struct plan_shape *shape, struct layout **layout)
{
	struct cells first, other;

	run(&first, shape, apart, layout);
	for (size_t i = 0; i < sizeof(overlaps) / sizeof(overlaps[0]); i++) {
		run(&other, shape, overlaps[i], layout);
		same_trees(&first, &other);
		cells_close(&other);
	}
	cells_close(&first);
}

/* Returns whether the plan changes when processors are oversubscribed. */
static bool has_crowds(enum fi_collective_op kind, size_t w)
{
	return kind == FI_BROADCAST || (w == 0 && (kind == FI_BARRIER || kind == FI_ALLREDUCE));
}

static void every_width(struct plan_shape shape, size_t size_at)
{
	for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++)
		for (size_t l = 0; l < LAYOUTS; l++) {
			shape.width = widths[w];
			shape.cpus = 0;
			run_all_ways(&shape, l ? layouts[size_at][l] : NULL);
			shape.cpus = 2;
			for (int shares = 0; shares < 2; shares++) {
				shape.shares = shares;
				if (l && has_crowds(shape.kind, w))
					run_all_ways(&shape, layouts[size_at][l]);
			}
		}
}

/* Counts of elements: few in large groups, one for roots other than 0. */
static void every_count(struct plan_shape shape, size_t size_at)
{
	size_t counts[] = {0, 1, 5, shape.size <= 17 ? 64 : 2};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		shape.count = counts[i];
		if (i == 2 || (shape.kind != FI_BARRIER && shape.root == 0))
			every_width(shape, size_at);
	}
}

START_TEST(every_shape)
{
	struct plan_shape shape = {.kind = kinds[_i]};

	for (size_t s = 0; s < SIZES; s++) {
		uint32_t roots[] = {0, 1, sizes[s] / 2, sizes[s] - 1};

		shape.size = sizes[s];
		for (size_t i = 0; i < 4; i++) {
			bool rooted = shape.kind == FI_BROADCAST || shape.kind == FI_REDUCE ||
				      shape.kind == FI_SCATTER || shape.kind == FI_GATHER;

			shape.root = roots[i];
			if (shape.root < shape.size && (rooted || i == 0))
				every_count(shape, s);
		}
	}
}
END_TEST

START_TEST(in_the_order_of_ranks)
{
	static const enum fi_collective_op reducing[] = {FI_ALLREDUCE, FI_REDUCE,
							 FI_REDUCE_SCATTER};
	struct plan_shape shape = {.kind = reducing[_i], .ordered = true, .count = 7};

	for (size_t s = 0; s < SIZES; s++)
		for (shape.root = 0; shape.root < sizes[s]; shape.root += 5) {
			shape.size = sizes[s];
			if (shape.root == 0 || shape.kind == FI_REDUCE)
				every_width(shape, s);
		}
}
END_TEST

/* An odd count of elements, cut in pieces and chunks. */
START_TEST(long_vectors)
{
	static const enum fi_collective_op vectors[] = {FI_BROADCAST, FI_ALLREDUCE, FI_REDUCE};
	static const uint32_t some[] = {2, 3, 8, 13};

	for (size_t s = 0; s < 4; s++)
		for (size_t w = 1; w <= 4096; w *= 8) {
			struct plan_shape shape = {.kind = vectors[_i],
						   .size = some[s],
						   .root = some[s] - 1,
						   .count = 10007,
						   .width = w};

			run_all_ways(&shape, NULL);
		}
}
END_TEST

/* Sums of real numbers are near the exact sum and have the same bits on every member. */
START_TEST(real_numbers)
{
	enum { SIZE = 11, COUNT = 1000 };

	static double in[SIZE][COUNT], out[SIZE][COUNT], tmp[SIZE][2 * COUNT];
	struct sim sim;

	sim_open(&sim, SIZE);
	for (uint32_t i = 0; i < SIZE; i++) {
		struct plan_shape shape = {.kind = FI_ALLREDUCE,
					   .rank = i,
					   .size = SIZE,
					   .count = COUNT,
					   .width = widths[_i]};
		struct sim_member *m = &sim.member[i];

		for (int k = 0; k < COUNT; k++)
			in[i][k] = 1.0 / (i * COUNT + (uint32_t)k + 1);
		plan_make(&m->plan, &shape);
		ck_assert_uint_le(m->plan.scratch, 2 * COUNT);
		m->local = (struct local){{(char *)in[i], (char *)out[i], (char *)tmp[i]},
					  sizeof(double),
					  plain_find(FI_SUM, FI_DOUBLE),
					  false};
		m->limit[PLAN_IN] = m->limit[PLAN_OUT] = COUNT;
		m->limit[PLAN_TMP] = m->plan.scratch;
	}
	sim_run(&sim);
	for (int k = 0; k < COUNT; k++) {
		long double sum = 0;

		for (int i = 0; i < SIZE; i++)
			sum += in[i][k];
		ck_assert_double_eq_tol(out[0][k], (double)sum, (double)sum * 1e-15 * SIZE);
	}
	for (int i = 1; i < SIZE; i++)
		ck_assert_mem_eq(out[i], out[0], sizeof(out[0]));
	sim_close(&sim);
}
END_TEST

/* No member leaves a barrier before the last one has entered. */
START_TEST(a_barrier_holds)
{
	for (size_t at = 1; at < SIZES; at++)
		for (size_t l = 0; l < LAYOUTS; l++)
			for (uint32_t late = 0; late < sizes[at]; late += 1 + sizes[at] / 20) {
				struct plan_shape shape = {.kind = FI_BARRIER, .size = sizes[at]};
				struct cells c;

				cells_open(&c, &shape, apart, l ? layouts[at][l] : NULL);
				for (uint32_t i = 0; i < shape.size; i++)
					if (i != late)
						sim_is_ready(&c.sim, i);
				sim_drain(&c.sim);
				for (uint32_t i = 0; i < shape.size; i++)
					SIM_CHECK(!c.sim.member[i].ended);
				sim_run(&c.sim);
				cells_close(&c);
			}
}
END_TEST

static const struct plan_algorithm *const algorithms[] = {
	&plan_place_own,
	&plan_hand_over,
	&plan_dissemination,
	&plan_tree_broadcast,
	&plan_tree_reduce,
	&plan_chain,
	&plan_fan,
	&plan_scatter,
	&plan_spread,
	&plan_gather,
	&plan_collect,
	&plan_bruck_allgather,
	&plan_ring_allgather,
	&plan_doubling,
	&plan_direct,
	&plan_ring_reduce_scatter,
	&plan_rabenseifner,
	&plan_rabenseifner_reduce,
	&plan_halving,
	&plan_pairwise_reduce_scatter,
	&plan_bruck_alltoall,
	&plan_pairwise_alltoall,
};

/* Returns whether some shape of every_shape or in_the_order_of_ranks uses the algorithm. */
static bool used(const struct plan_algorithm *algorithm)
{
	for (size_t at = 0; at < (size_t)KINDS * SIZES * 5 * 2 * 3 * LAYOUTS * 2; at++) {
		struct plan_shape shape = {.kind = kinds[at % KINDS],
					   .size = sizes[at / KINDS % SIZES],
					   .width = widths[at / KINDS / SIZES % 5],
					   .ordered = at / KINDS / SIZES / 5 % 2,
					   .overlap = at / KINDS / SIZES / 5 / 2 % 3,
					   .count = 5};
		struct plan plan;
		struct layout **hosts =
			layouts[at / KINDS % SIZES][at / KINDS / SIZES / 30 % LAYOUTS];

		shape.root = shape.size / 2;
		shape.cpus = at / KINDS / SIZES / 30 / LAYOUTS ? 2 : 0;
		shape.shares = shape.cpus;
		shape.layout = hosts[0]; /* NULL: no layout */
		plan_make(&plan, &shape);
		for (unsigned int i = 0; i < plan.phases; i++)
			if (plan.phase[i].algorithm == algorithm)
				return true;
	}
	return false;
}

START_TEST(every_algorithm)
{
	for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++)
		ck_assert_msg(used(algorithms[i]), "%s is not used", algorithms[i]->name);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("coll_plan");
	TCase *tcase = tcase_create("plan");
	int failed;

	mallopt(M_TRIM_THRESHOLD, 1 << 28); /* keeps freed memory: the test allocates a lot */
	make_layouts();
	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, every_shape, 0, KINDS);
	tcase_add_loop_test(tcase, in_the_order_of_ranks, 0, 3);
	tcase_add_test(tcase, a_barrier_holds);
	tcase_add_loop_test(tcase, long_vectors, 0, 3);
	tcase_add_loop_test(tcase, real_numbers, 0, 5);
	tcase_add_test(tcase, every_algorithm);
	suite_add_tcase(suite, tcase);
	failed = suite_run(suite);
	free_layouts();
	return failed;
}
