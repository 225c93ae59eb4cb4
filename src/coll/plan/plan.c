/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plan is a sequence of phases, which is repeated for each chunk of the vector if the plan has
 * chunks. This file finds a round of the plan in its phase.
 */

#include "coll/plan/layout.h"
#include "coll/plan/plan_own.h"

/* Returns the member that is rank `i` of a phase. */
static uint32_t member(const struct plan *plan, enum plan_among among, uint32_t i)
{
	const struct layout *l = plan->layout;

	switch (among) {
	case PLAN_HOST:
		return layout_rank(l, l->first[l->mine] + i);
	case PLAN_LEADERS:
		return i == plan->root_host ? plan->root : layout_rank(l, l->first[i]);
	case PLAN_ACROSS:
		return layout_rank(l, l->first[i] + plan->number);
	default:
		return i;
	}
}

static void translate(const struct plan_phase *phase, size_t at, struct plan_place *place)
{
	*place = plan_past(phase->space[place->space], at + place->at);
}

/* Moves sends to the front, in order, because other members wait for them. */
static void put_sends_first(struct plan_round *r)
{
	struct plan_message receive[PLAN_MESSAGES];
	unsigned int receives = 0;

	r->sends = 0;
	for (unsigned int i = 0; i < r->messages; i++)
		if (r->message[i].send)
			r->message[r->sends++] = r->message[i];
		else
			receive[receives++] = r->message[i];
	for (unsigned int i = 0; i < receives; i++)
		r->message[r->sends + i] = receive[i];
}

/* Returns the phase of round *n, which becomes the number of the round in the phase, or NULL. */
static const struct plan_phase *find(const struct plan *plan, size_t *n)
{
	for (const struct plan_phase *phase = plan->phase; phase < plan->phase + plan->phases;
	     phase++) {
		if (*n < phase->rounds)
			return phase;
		*n -= phase->rounds;
	}
	return NULL;
}

/* Writes a round of a phase, for the elements of the vector from `at` on. */
static void write(const struct plan *plan, const struct plan_phase *phase, size_t n, size_t at,
		  struct plan_round *round)
{
	round->messages = round->locals = 0;
	phase->algorithm->round(&phase->part, n, round);
	for (unsigned int i = 0; i < round->messages; i++) {
		round->message[i].peer = member(plan, phase->among, round->message[i].peer);
		translate(phase, at, &round->message[i].place);
	}
	put_sends_first(round);
	for (unsigned int i = 0; i < round->locals; i++) {
		translate(phase, at, &round->local[i].dst);
		translate(phase, at, &round->local[i].left);
		translate(phase, at, &round->local[i].right);
	}
}

/* All phases of a plan with chunks are of the same vector, and have as many rounds for any chunk. */
static bool chunk_round(const struct plan *plan, size_t n, struct plan_round *round)
{
	size_t rounds = 0, at;
	struct plan_phase phase;

	for (unsigned int i = 0; i < plan->phases; i++)
		rounds += plan->phase[i].rounds;
	at = n / rounds * plan->chunk;
	if (at >= plan->vector)
		return false;
	n %= rounds;
	phase = *find(plan, &n);
	if (plan->vector - at < plan->chunk)
		phase.part.count = plan->vector - at;
	write(plan, &phase, n, at, round);
	return true;
}

bool plan_round(const struct plan *plan, size_t n, struct plan_round *round)
{
	const struct plan_phase *phase;

	if (plan->chunk)
		return chunk_round(plan, n, round);
	phase = find(plan, &n);
	if (!phase)
		return false;
	write(plan, phase, n, 0, round);
	return true;
}
