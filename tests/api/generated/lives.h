/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lives of a process. One that leaves, or is killed, may come again at its address. Each change counts:
 * even numbers are lives, odd ones the times between; it is odd, too, from when it may be killed at any
 * moment. An operation belongs to one life of its process, and is for the life of its target that its
 * process knew of: see wait_notice. Needs world.h.
 */
#ifndef GENERATED_LIVES_H
#define GENERATED_LIVES_H

static inline unsigned int life_of(const struct world *w, uint64_t proc)
{
	return __atomic_load_n(&w->procs[proc].life, __ATOMIC_ACQUIRE);
}

static inline void life_next(struct proc *p)
{
	__atomic_add_fetch(&p->life, 1, __ATOMIC_ACQ_REL);
}

static inline bool life_over(unsigned int life)
{
	return life % 2;
}

static inline bool world_left(const struct world *w, uint64_t proc)
{
	return life_over(life_of(w, proc));
}

/* Returns whether a process has left, and all of it is closed. */
static inline bool world_gone(const struct world *w, uint64_t proc)
{
	return world_left(w, proc) && !__atomic_load_n(&w->procs[proc].going, __ATOMIC_ACQUIRE);
}

/* Returns whether a process has left, though it has come again. */
static inline bool world_any_left(const struct world *w)
{
	for (unsigned int i = 0; i < w->program.procs; i++)
		if (life_of(w, i))
			return true;
	return false;
}

/* Returns whether the process that called `o` has left since. */
static inline bool op_orphan(const struct world *w, const struct op *o)
{
	return life_over(o->life) || life_of(w, world_line(w, o)->at.proc) != o->life;
}

/* Returns whether the target of `o` has left, or had, for all its process knew. */
static inline bool op_target_gone(const struct world *w, const struct op *o)
{
	uint64_t target = world_line(w, o)->with.proc;

	return target != PLACE_ANY &&
	       (life_over(o->target_life) || life_of(w, target) != o->target_life);
}

/*
 * Returns whether nobody knows how `o` has ended: its process has left before. Of one that was killed
 * while it called, nobody knows what has left its hands.
 */
static inline bool op_lost(const struct world *w, const struct op *o)
{
	const struct line *l = world_line(w, o);

	return op_orphan(w, o) && (__atomic_load_n(&w->procs[l->at.proc].torn, __ATOMIC_ACQUIRE) ||
				   line_silent(l) || (line_reported(l) && !op_ended(o)));
}

/* Returns whether `o` may have been performed at its target, or not. */
static inline bool op_unsure(const struct world *w, const struct op *o)
{
	return op_called(o) && (op_lost(w, o) || op_target_gone(w, o));
}

/* Returns whether an operation that was to begin later may have done so. */
static inline bool op_begun(const struct world *w, const struct op *o)
{
	const struct line *l = world_line(w, o);

	return l->start == START_NOW || op_orphan(w, o) ||
	       __atomic_load_n(&w->procs[l->at.proc].begun[l->at.ep], __ATOMIC_ACQUIRE) >= l->after;
}

#endif
