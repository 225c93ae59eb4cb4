/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/op.h"

#include <string.h>

#include "base/copy.h"

enum { CACHED = 4096 }; /* bytes per step, so that the copy is in the cache when it is combined */

static void local_copy(const struct local *l, const struct plan_local *step)
{
	char *dst = local_at(l, step->dst);
	const char *from = local_at(l, step->left);
	size_t len = step->count * l->width;

	for (size_t i = 0; i < step->blocks; i++) {
		if (dst != from)
			memmove(dst, from, len);
		dst += step->dst_step * (ptrdiff_t)l->width;
		from += step->left_step * (ptrdiff_t)l->width;
	}
}

/* dst = left OP dst: saves the right operand first. */
static void reduce_under(const struct local *l, char *dst, const char *left, size_t count)
{
	char right[CACHED] __attribute__((aligned(64)));

	copy_bytes(right, dst, count * l->width);
	copy_bytes(dst, left, count * l->width);
	l->kernel(dst, right, count);
}

static void reduce_block(const struct local *l, char *dst, const char *left, const char *right,
			 size_t count)
{
	if (dst == right) {
		reduce_under(l, dst, left, count);
		return;
	}
	copy_bytes(dst, left, count * l->width);
	l->kernel(dst, right, count);
}

static void local_reduce(const struct local *l, const struct plan_local *step)
{
	char *dst = local_at(l, step->dst);
	const char *left = local_at(l, step->left), *right = local_at(l, step->right);
	size_t block = CACHED / l->width;

	if (dst == left || (dst == right && l->commutes)) {
		l->kernel(dst, dst == left ? right : left, step->count);
		return;
	}
	for (size_t left_over = step->count; left_over; left_over -= block) {
		if (block > left_over)
			block = left_over;
		reduce_block(l, dst, left, right, block);
		dst += block * l->width;
		left += block * l->width;
		right += block * l->width;
	}
}

void local_run(const struct local *l, const struct plan_round *round)
{
	for (unsigned int i = 0; i < round->locals; i++)
		if (round->local[i].what == PLAN_COPY)
			local_copy(l, &round->local[i]);
		else
			local_reduce(l, &round->local[i]);
}

static bool local_meet(const struct local *l, struct plan_place a, size_t a_count,
		       struct plan_place b, size_t b_count)
{
	const char *first = local_at(l, a), *second = local_at(l, b);

	return first < second + b_count * l->width && second < first + a_count * l->width;
}

static bool step_meets(const struct local *l, const struct plan_local *step,
		       const struct plan_message *m)
{
	return step->blocks != 1 || local_meet(l, step->dst, step->count, m->place, m->count) ||
	       local_meet(l, step->left, step->count, m->place, m->count) ||
	       (step->what == PLAN_REDUCE &&
		local_meet(l, step->right, step->count, m->place, m->count));
}

bool local_apart(const struct local *l, const struct plan_round *round,
		 const struct plan_message *received)
{
	for (unsigned int i = 0; i < round->messages; i++)
		if (local_meet(l, round->message[i].place, round->message[i].count, received->place,
			       received->count))
			return false;
	for (unsigned int i = 0; i < round->locals; i++)
		if (step_meets(l, &round->local[i], received))
			return false;
	return true;
}
