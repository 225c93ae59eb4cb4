/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A local step: IN is a matrix of blocks, `size` rows of `tune` blocks; OUT becomes the transposed
 * matrix, `tune` rows of `size` blocks. `count` is the number of elements of the whole matrix.
 */
#include "coll/plan/plan_own.h"

static size_t plan_transpose_lines(const struct plan_part *p)
{
	return p->size < p->tune ? p->size : p->tune;
}

static size_t plan_transpose_rounds(const struct plan_part *p)
{
	return (plan_transpose_lines(p) + PLAN_LOCALS - 1) / PLAN_LOCALS;
}

/* Copies row by row, or column by column if there are fewer columns. */
static void plan_transpose_round_of(const struct plan_part *p, size_t n, struct plan_round *r)
{
	size_t block = p->count / p->size / p->tune, line = n * PLAN_LOCALS;
	size_t row = p->tune * block,
	       column = p->size * block; /* elements per row of IN, per row of OUT */
	bool by_rows = p->size < p->tune;

	for (; line < plan_transpose_lines(p) && r->locals < PLAN_LOCALS; line++)
		plan_local(r,
			   &(struct plan_local){.what = PLAN_COPY,
						.dst = plan_out(line * (by_rows ? block : column)),
						.left = plan_in(line * (by_rows ? row : block)),
						.count = block,
						.blocks = by_rows ? p->tune : p->size,
						.dst_step = (ptrdiff_t)(by_rows ? column : block),
						.left_step = (ptrdiff_t)(by_rows ? block : row)});
}

const struct plan_algorithm plan_transpose = {"transpose", plan_transpose_rounds, NULL,
					      plan_transpose_round_of};
