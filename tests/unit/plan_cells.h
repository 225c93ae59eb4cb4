/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Elements that record their origin, and one simulated collective on them. Each input has a random
 * number. A reduction adds the numbers of its operands: the sum shows which inputs are in the
 * result, and how often. A hash records the order in which operands were combined.
 */
#ifndef WEFT_TESTS_UNIT_PLAN_CELLS_H
#define WEFT_TESTS_UNIT_PLAN_CELLS_H

#include "plan_sim.h"

struct cell {
	uint64_t sum, tree;
	uint32_t low, high; /* ranks combined; low > high: out of order */
};

static struct cell cell_of(uint64_t rank, uint64_t element)
{
	uint64_t x = sim_mix(sim_mix(rank + 1) + element);

	return (struct cell){x, sim_mix(x + 1), (uint32_t)rank, (uint32_t)rank};
}

static void cell_combine(void *target, const void *operand, size_t count)
{
	struct cell *t = target;
	const struct cell *v = operand;

	for (size_t i = 0; i < count; i++) {
		bool follow =
			t[i].low <= t[i].high && v[i].low <= v[i].high && t[i].high + 1 == v[i].low;

		t[i].sum += v[i].sum;
		t[i].tree = sim_mix(3 * t[i].tree + v[i].tree);
		t[i].low = follow ? t[i].low : 1;
		t[i].high = follow ? v[i].high : 0;
	}
}

static inline bool cells_reduced(enum fi_collective_op kind)
{
	return kind == FI_ALLREDUCE || kind == FI_REDUCE || kind == FI_REDUCE_SCATTER;
}

/* Elements in a member's PLAN_IN; cells_out: in its PLAN_OUT. */
static inline size_t cells_in(const struct plan_shape *s)
{
	switch (s->kind) {
	case FI_BARRIER:
	case FI_BROADCAST:
		return 0;
	case FI_ALLTOALL:
	case FI_REDUCE_SCATTER:
		return s->count * s->size;
	case FI_SCATTER:
		return s->rank == s->root ? s->count * s->size : 0;
	default:
		return s->count;
	}
}

static inline size_t cells_out(const struct plan_shape *s)
{
	switch (s->kind) {
	case FI_BARRIER:
		return 0;
	case FI_ALLTOALL:
	case FI_ALLGATHER:
		return s->count * s->size;
	case FI_GATHER:
		return s->rank == s->root ? s->count * s->size : 0;
	case FI_REDUCE:
		return s->rank == s->root ? s->count : 0;
	default:
		return s->count;
	}
}

/* Returns the distance from PLAN_IN to PLAN_OUT, in elements, of a member whose buffers overlap. */
static inline ptrdiff_t cells_shift(const struct plan_shape *s)
{
	ptrdiff_t own = (ptrdiff_t)(s->rank * s->count);

	if (s->overlap == PLAN_SAME)
		return 0;
	switch (s->kind) {
	case FI_ALLGATHER:
	case FI_GATHER:
		return -own;
	case FI_SCATTER:
	case FI_REDUCE_SCATTER:
		return own;
	default:
		return s->rank % 2 ? 1 : -1;
	}
}

struct cells {
	struct sim sim;
	struct plan_shape *shape; /* one for each member */
	struct cell **memory;     /* one for each member: the block with all its spaces */
};

static inline void cells_poison(struct cell *c, size_t count)
{
	for (size_t i = 0; i < count; i++)
		c[i] = (struct cell){0xdead, 0xdead, 1, 0};
}

/* Allocates a member's buffers, fills in the input and poisons all else. */
static inline void cells_buffers(struct cells *c, uint32_t rank)
{
	const struct plan_shape *s = &c->shape[rank];
	struct sim_member *m = &c->sim.member[rank];
	size_t in = cells_in(s), out = cells_out(s);
	bool apart = s->overlap == PLAN_APART || !in || !out;
	ptrdiff_t shift = apart ? 0 : cells_shift(s);
	size_t all = m->plan.scratch + in + out + (size_t)labs(shift);
	struct cell *mem = malloc((all + 1) * sizeof(*mem)), *from;

	cells_poison(mem, all);
	c->memory[rank] = mem;
	m->local = (struct local){{NULL}, sizeof(*mem), cell_combine, false};
	m->local.space[PLAN_TMP] = (char *)mem;
	mem += m->plan.scratch;
	from = shift < 0 ? mem - shift : mem;
	m->local.space[PLAN_IN] = (char *)from;
	m->local.space[PLAN_OUT] = (char *)(apart ? from + in : from + shift);
	m->limit[PLAN_IN] = in;
	m->limit[PLAN_OUT] = out;
	m->limit[PLAN_TMP] = m->plan.scratch;
	if (s->kind == FI_BROADCAST && s->rank == s->root)
		from = (struct cell *)m->local.space[PLAN_OUT], in = out;
	for (size_t i = 0; i < in; i++)
		from[i] = cell_of(rank, i);
}

/* Makes the plan of every member for *shape; `overlap` chooses how a member's buffers overlap. */
static inline void cells_open(struct cells *c, const struct plan_shape *shape,
			      enum plan_overlap (*overlap)(uint32_t rank), struct layout **layout)
{
	sim_open(&c->sim, shape->size);
	c->shape = calloc(shape->size, sizeof(*c->shape));
	c->memory = calloc(shape->size, sizeof(*c->memory));
	for (uint32_t i = 0; i < shape->size; i++) {
		struct plan_shape *s = &c->shape[i];

		*s = *shape;
		s->rank = i;
		s->overlap = overlap(i);
		s->layout = layout ? layout[i] : NULL;
		plan_make(&c->sim.member[i].plan, s);
		cells_buffers(c, i);
	}
}

static inline void cells_close(struct cells *c)
{
	for (uint32_t i = 0; i < c->sim.size; i++)
		free(c->memory[i]);
	free(c->memory);
	free(c->shape);
	sim_close(&c->sim);
}

static inline const struct cell *cells_result(const struct cells *c, uint32_t rank)
{
	return (const struct cell *)c->sim.member[rank].local.space[PLAN_OUT];
}

/* Returns the expected element `i` of a member's result, for collectives without a reduction. */
static inline struct cell cells_moved(const struct plan_shape *s, size_t i)
{
	switch (s->kind) {
	case FI_BROADCAST:
		return cell_of(s->root, i);
	case FI_SCATTER:
		return cell_of(s->root, s->rank * s->count + i);
	case FI_ALLTOALL:
		return cell_of(i / s->count, s->rank * s->count + i % s->count);
	default:
		return cell_of(i / s->count, i % s->count);
	}
}

static inline void cells_check_sum(const struct plan_shape *s, const struct cell *got, size_t i)
{
	size_t element = s->kind == FI_REDUCE_SCATTER ? s->rank * s->count + i : i;
	uint64_t sum = 0;

	for (uint32_t rank = 0; rank < s->size; rank++)
		sum += cell_of(rank, element).sum;
	SIM_CHECK(got->sum == sum);
	if (s->ordered) {
		SIM_CHECK(got->low == 0);
		SIM_CHECK(got->high == s->size - 1);
	}
}

/* Checks every member's result, and that separate input buffers are unchanged. */
static inline void cells_check(const struct cells *c)
{
	for (uint32_t rank = 0; rank < c->sim.size; rank++) {
		const struct plan_shape *s = &c->shape[rank];
		const struct cell *got = cells_result(c, rank);
		const struct cell *in =
			(const struct cell *)c->sim.member[rank].local.space[PLAN_IN];

		for (size_t i = 0; i < cells_out(s); i++) {
			struct cell moved = cells_moved(s, i);

			if (cells_reduced(s->kind))
				cells_check_sum(s, &got[i], i);
			else
				SIM_CHECK(!memcmp(&got[i], &moved, sizeof(moved)));
			if (s->kind == FI_ALLREDUCE)
				SIM_CHECK(got[i].tree == cells_result(c, 0)[i].tree);
		}
		for (size_t i = 0; i < cells_in(s) && s->overlap == PLAN_APART; i++)
			SIM_CHECK(in[i].tree == cell_of(rank, i).tree);
	}
}

#endif
