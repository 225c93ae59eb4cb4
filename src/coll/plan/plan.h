/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plans: what one member of a group does in a collective, as rounds of messages and local steps.
 *
 * A plan is a pure function: plan_round(plan, n) tells round n, the same whenever it is asked. It
 * knows no endpoint, allocates nothing, never blocks, and keeps nothing between the rounds, so a
 * running collective costs a struct plan, a number and the scratch, whatever the size of the group.
 *
 * Who runs it does, for n = 0, 1, 2 ... until plan_round says false:
 *
 *   1. start all messages of the round; they may run at once, none touches the memory of another
 *      unless both are sends;
 *   2. when all are complete, a send as soon as its memory may be written, do the local steps in
 *      their order (local_run, coll/local.h);
 *   3. go on with round n + 1.
 *
 * Rounds are a member's own: members need not have equally many, and a message may be sent in round
 * 3 and received in round 5. Within one collective the k-th message from member a to member b, in
 * the order of a's rounds and of the messages in a round, is the k-th that b receives from a; both
 * give it the same length. A message of no elements is a message (barriers). No member sends to
 * itself. A send never needs to complete for the receives of its own round to do so.
 *
 * All lengths and positions are in elements. They lie in three spaces:
 *
 *   PLAN_IN   the caller's input; only read. Broadcast has none.
 *   PLAN_OUT  the caller's result; broadcast: its one buffer. Not touched by members that the call
 *             gives none: who is not the root of FI_REDUCE and FI_GATHER.
 *   PLAN_TMP  scratch of plan.scratch elements, alone in use by this collective.
 *
 * Buffers are as fi_collective.h says: `count` is per member, as in MPI. Results of reductions do
 * not depend on time or on in-place buffers: who combines what with what, on which side, follows
 * from the shape alone, and where several members get an element of the result they get the same bits.
 */
#ifndef WEFT_COLL_PLAN_H
#define WEFT_COLL_PLAN_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct layout;

/* Whether a member's input and result share memory. Each member has its own. */
enum plan_overlap {
	PLAN_APART, /* they do not, or one of them is not there */
	PLAN_SAME,  /* they begin at the same address */
	PLAN_MIXED  /* any other way */
};

/* What is to be done. All but `rank` and `overlap` must be equal on all members. */
struct plan_shape {
	enum fi_collective_op kind;
	uint32_t rank, size; /* this member, members: at least 1 */
	uint32_t root;       /* looked at where the call has one */
	size_t count;        /* elements for each member; size * count elements fit into size_t */
	size_t width;        /* bytes of an element; only to choose by */
	/*
	 * Combine strictly in the order of ranks: for operators that are not commutative, as
	 * FI_ATOMIC_WRITE, rounding, NaN and the sign of zero aside.
	 */
	bool ordered;
	enum plan_overlap overlap;
	const struct layout *layout; /* who shares a host; NULL: not known. Outlives the plan */
	uint32_t cpus;               /* of the host with the fewest; 0: not known */
	bool shares;                 /* what is sent within a host is passed through its memory */
};

enum plan_space { PLAN_IN, PLAN_OUT, PLAN_TMP, PLAN_SPACES };

struct plan_place {
	enum plan_space space;
	size_t at; /* elements from its begin */
};

/* A send from, or a receive into, `count` elements in a row. */
struct plan_message {
	uint32_t peer;
	bool send;
	struct plan_place place;
	size_t count;
};

enum plan_do { PLAN_COPY, PLAN_REDUCE };

/*
 * PLAN_COPY:   `blocks` blocks of `count` elements each, from `left` to `dst`; after each block they
 *              move on by `left_step` and `dst_step` elements. A single block may overlap itself.
 * PLAN_REDUCE: dst = left OP right, one block. dst is left, or right, or apart from both.
 */
struct plan_local {
	enum plan_do what;
	struct plan_place dst, left, right;
	size_t count, blocks;
	ptrdiff_t dst_step, left_step;
};

enum {
	PLAN_MESSAGES = 16, /* at most in a round, */
	PLAN_LOCALS = 16,   /* and local steps */
	PLAN_PHASES = 8
};

struct plan_round {
	unsigned int messages, locals;
	unsigned int sends; /* of the messages: these come first */
	struct plan_message message[PLAN_MESSAGES];
	struct plan_local local[PLAN_LOCALS];
};

/* What an algorithm is told: plan_own.h. */
struct plan_part {
	uint32_t rank, size, root;
	size_t count; /* elements; of what, the algorithm says */
	size_t tune;  /* radix, elements of a chunk: the algorithm says */
	bool same;    /* PLAN_IN is PLAN_OUT, or what a member brings lies in its place there */
};

/* Whom the ranks of a phase number. */
enum plan_among {
	PLAN_ALL,    /* all members */
	PLAN_HOST,   /* those of this member's host */
	PLAN_LEADERS /* one of each host */
};

/* One algorithm, run from its first round to its last. */
struct plan_phase {
	const struct plan_algorithm *algorithm;
	struct plan_part part;
	struct plan_place space[PLAN_SPACES]; /* where its spaces begin */
	enum plan_among among;
	size_t rounds;
};

/* Members are the plan's, but for `scratch`, which is for all to read. */
struct plan {
	size_t scratch; /* elements of PLAN_TMP; 0: none */
	size_t kept;    /* of these, at the begin: in use by more than one phase */
	bool whole; /* who receives takes long messages alone: see work.batch in xfer/defer/defer.h */
	unsigned int phases;
	uint32_t root, root_host; /* the root leads its host; 0, 0 where there is none */
	const struct layout *layout;
	struct plan_phase phase[PLAN_PHASES];
};

/* Chooses how; see choose.c. Never fails. Takes nanoseconds, or O(log size) with a layout. */
void plan_make(struct plan *plan, const struct plan_shape *shape);

/* False: there is no round n, the collective has ended; *round is not written. */
bool plan_round(const struct plan *plan, size_t n, struct plan_round *round);

#endif
