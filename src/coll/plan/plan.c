/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plan is a sequence of phases, which is repeated for each chunk of the vector if the plan has chunks. This file
 * finds a round of the plan in its phase, or in those of several chunks, and makes plans.
 */
#include "coll/plan/plan_own.h"

/* Returns the member that is rank `i` of a phase. */
static uint32_t plan_member(const struct plan *plan, enum plan_among among, uint32_t i)
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

static void plan_translate(const struct plan_phase *phase, size_t at, struct plan_place *place)
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
static const struct plan_phase *plan_find(const struct plan *plan, size_t *n)
{
	for (const struct plan_phase *phase = plan->phase; phase < plan->phase + plan->phases;
	     phase++) {
		if (*n < phase->rounds)
			return phase;
		*n -= phase->rounds;
	}
	return NULL;
}

/* Adds a round of a phase, for the elements of the vector from `at` on. */
static void plan_add_round(const struct plan *plan, const struct plan_phase *phase, size_t n,
			   size_t at, struct plan_round *round)
{
	unsigned int message = round->messages, local = round->locals;

	phase->algorithm->round(&phase->part, n, round);
	for (unsigned int i = message; i < round->messages; i++) {
		round->message[i].peer = plan_member(plan, phase->among, round->message[i].peer);
		plan_translate(phase, at, &round->message[i].place);
	}
	for (unsigned int i = local; i < round->locals; i++) {
		plan_translate(phase, at, &round->local[i].dst);
		plan_translate(phase, at, &round->local[i].left);
		plan_translate(phase, at, &round->local[i].right);
	}
}

/* Adds the step of a chunk. All phases are of the same vector, and have as many rounds for any chunk. */
static void add_step(const struct plan *plan, size_t chunk, size_t step, struct plan_round *round)
{
	size_t at = chunk * plan->chunk;
	struct plan_phase phase = *plan_find(plan, &step);

	if (plan->vector - at < plan->chunk)
		phase.part.count = plan->vector - at;
	plan_add_round(plan, &phase, step, at, round);
}

/* Each chunk is a step behind the one before it; that comes first, as others wait for it. */
static void add_steps(const struct plan *plan, size_t n, struct plan_round *round)
{
	size_t last = plan->chunks - 1, chunk = n < plan->steps ? 0 : n - plan->steps + 1;

	for (; chunk <= n && chunk <= last; chunk++)
		add_step(plan, chunk, n - chunk, round);
}

static bool chunk_round(const struct plan *plan, size_t n, struct plan_round *round)
{
	size_t rounds =
		plan->overlaps ? plan->chunks + plan->steps - 1 : plan->chunks * plan->steps;

	if (n >= rounds)
		return false;
	round->messages = round->locals = 0;
	if (plan->overlaps)
		add_steps(plan, n, round);
	else
		add_step(plan, n / plan->steps, n % plan->steps, round);
	put_sends_first(round);
	return true;
}

/* Do the rounds of all phases together fit into one? */
static bool plan_fits(const struct plan *plan)
{
	unsigned int messages = 0, locals = 0;

	for (const struct plan_phase *p = plan->phase; p < plan->phase + plan->phases; p++)
		for (size_t n = 0; n < p->rounds; n++) {
			struct plan_round round = {0};

			p->algorithm->round(&p->part, n, &round);
			messages += round.messages;
			locals += round.locals;
		}
	return messages <= PLAN_MESSAGES && locals <= PLAN_LOCALS;
}

void plan_by_chunks(struct plan *plan, size_t chunk, size_t vector)
{
	plan->chunk = chunk;
	plan->vector = vector;
	plan->chunks = vector / chunk + (vector % chunk != 0);
	plan->steps = 0;
	for (unsigned int i = 0; i < plan->phases; i++)
		plan->steps += plan->phase[i].rounds;
	assert(plan->steps);
	plan->overlaps = plan_fits(plan);
}

bool plan_round(const struct plan *plan, size_t n, struct plan_round *round)
{
	const struct plan_phase *phase;

	if (plan->chunk)
		return chunk_round(plan, n, round);
	phase = plan_find(plan, &n);
	if (!phase)
		return false;
	round->messages = round->locals = 0;
	plan_add_round(plan, phase, n, 0, round);
	put_sends_first(round);
	return true;
}

/* ---- Making a plan from a shape ---------------------------------------------------------------- */

void plan_add(const struct plan_build *b, const struct plan_algorithm *algorithm, size_t count,
	      bool same)
{
	const struct plan_shape *s = &b->shape;
	struct plan_part part = {s->rank, s->size, s->root, count, b->tune, same};
	struct plan_place tmp = plan_tmp(b->plan->kept);
	size_t rounds = algorithm->rounds(&part);
	size_t end = tmp.at + (algorithm->scratch ? algorithm->scratch(&part) : 0);

	if (!rounds)
		return;
	assert(b->plan->phases < PLAN_PHASES);
	b->plan->phase[b->plan->phases++] =
		(struct plan_phase){algorithm, part, {b->in, b->out, tmp}, b->among, rounds};
	if (b->plan->scratch < end)
		b->plan->scratch = end;
}

struct plan_place plan_keep(struct plan *plan, size_t count)
{
	struct plan_place place = plan_tmp(plan->kept);

	plan->kept += count;
	if (plan->scratch < plan->kept)
		plan->scratch = plan->kept;
	return place;
}

size_t plan_vector(const struct plan_shape *s)
{
	switch (s->kind) {
	case FI_BARRIER:
		return 0;
	case FI_ALLGATHER:
	case FI_GATHER:
	case FI_SCATTER:
	case FI_REDUCE_SCATTER:
	case FI_ALLTOALL:
		return s->count * s->size;
	default:
		return s->count;
	}
}

/* Sets what the collective does not use to default values. */
static struct plan_shape plain_shape(const struct plan_shape *shape)
{
	struct plan_shape s = *shape;

	s.ordered = s.ordered && plan_reduces(s.kind);
	if (!plan_rooted(s.kind))
		s.root = 0;
	if (s.kind == FI_BARRIER || s.kind == FI_BROADCAST ||
	    (plan_rooted(s.kind) && s.rank != s.root))
		s.overlap = PLAN_APART;
	return s;
}

/* In place: copies the input first, if the result would overwrite input that is read later. */
static void set_aside(struct plan_build *b)
{
	const struct plan_shape *s = &b->shape;
	bool whole = s->kind == FI_ALLREDUCE || s->kind == FI_REDUCE;
	struct plan_build copy = *b;

	if (s->size == 1 || !(plan_reduces(s->kind) || s->kind == FI_ALLTOALL) ||
	    s->overlap == PLAN_APART || (whole && s->overlap == PLAN_SAME))
		return;
	copy.out = plan_keep(b->plan, plan_vector(s));
	plan_add(&copy, &plan_place_own, plan_vector(s), false);
	b->in = copy.out;
	b->shape.overlap = PLAN_APART;
}

void plan_make(struct plan *plan, const struct plan_shape *shape)
{
	struct plan_build b = {.plan = plan,
			       .shape = plain_shape(shape),
			       .in = plan_in(0),
			       .out = plan_out(0),
			       .near = shape->layout && shape->layout->hosts == 1};

	plan->scratch = plan->kept = 0;
	plan->phases = 0;
	plan->chunk = 0;
	plan->root = plan->root_host = 0;
	plan->layout = shape->layout;
	if (!shape->count && shape->kind != FI_BARRIER)
		return;
	set_aside(&b);
	if (!plan_levels(&b))
		choose_flat(&b);
}
