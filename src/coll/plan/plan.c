/* SPDX-License-Identifier: BSD-2-Clause */
/* A plan is a sequence of phases. This file finds a round of the plan in its phase. */

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
	default:
		return i;
	}
}

static void translate(const struct plan_phase *phase, struct plan_place *place)
{
	*place = plan_past(phase->space[place->space], place->at);
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

bool plan_round(const struct plan *plan, size_t n, struct plan_round *round)
{
	const struct plan_phase *phase = plan->phase, *end = plan->phase + plan->phases;

	for (; phase < end && n >= phase->rounds; phase++)
		n -= phase->rounds;
	if (phase == end)
		return false;
	round->messages = round->locals = 0;
	phase->algorithm->round(&phase->part, n, round);
	for (unsigned int i = 0; i < round->messages; i++) {
		round->message[i].peer = member(plan, phase->among, round->message[i].peer);
		translate(phase, &round->message[i].place);
	}
	put_sends_first(round);
	for (unsigned int i = 0; i < round->locals; i++) {
		translate(phase, &round->local[i].dst);
		translate(phase, &round->local[i].left);
		translate(phase, &round->local[i].right);
	}
	return true;
}
