/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plan is what one member of a group does in a collective: rounds of messages and local steps.
 *
 * A plan is a pure function: plan_round(plan, n) always returns the same round n. It knows no
 * endpoint, allocates nothing, never blocks and keeps no state between rounds. A running collective
 * needs only a struct plan, a round number and the scratch, whatever the size of the group.
 *
 * The executor does for n = 0, 1, 2 ... until plan_round returns false:
 *
 *   1. Start all messages of the round. They may run concurrently: none touches the memory of
 *      another unless both are sends.
 *   2. When all are complete (a send: when its memory may be written), execute the local steps in
 *      order (local_run, coll/op.h).
 *   3. Continue with round n + 1.
 *
 * Rounds are local: members may have different numbers of rounds, and a message may be sent in
 * round 3 and received in round 5. The k-th message that b receives from a is the k-th message that
 * a sends to b, in the order of rounds and within a round, and both give it the same length.
 * Messages may be empty (barriers). No member sends to itself. A receive never depends on a send of
 * its own round.
 *
 * All lengths and positions are in elements, in three spaces:
 *
 *   PLAN_IN   the caller's input, only read. Broadcast has none.
 *   PLAN_OUT  the caller's result; broadcast: its only buffer. Not used on members without result:
 *             all but the root of FI_REDUCE and FI_GATHER.
 *   PLAN_TMP  scratch of plan.scratch elements, private to this collective.
 *
 * Buffers are those of fi_collective.h: `count` is per member, as in MPI. A reduction's result does
 * not depend on timing or on in-place buffers: the shape alone decides which operands are combined
 * in which order. Members that get the same element of a result get the same bits.
 */
#ifndef WEFT_COLL_PLAN_H
#define WEFT_COLL_PLAN_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which members share a host. The layout orders members by host, within a host by rank; hosts are
 * ordered by their lowest rank. Immutable.
 */
struct layout {
	uint32_t hosts;
	uint32_t mine;   /* host of the member that made the layout */
	uint32_t each;   /* members per host; 0: hosts differ */
	uint32_t *first; /* first place of each host in the order; hosts + 1 entries */
	uint32_t *order; /* ranks in order; NULL: rank i is in place i */
	uint32_t *place; /* inverse of `order`; NULL if `order` is */
};

/* Returns a number for a rank's host: equal for two ranks if and only if they share a host. */
typedef uint64_t layout_host(void *arg, uint32_t rank);

/*
 * Makes the layout for member `rank` of `size`. Host numbers may differ between members, but not
 * which of them are equal. Takes O(size log size) time and temporary memory; keeps O(hosts) memory,
 * or O(size) if ranks of a host are not consecutive. Returns NULL if memory is out.
 */
struct layout *layout_make(uint32_t rank, uint32_t size, layout_host *host, void *arg);
void layout_free(struct layout *layout); /* accepts NULL */

/* Returns the rank in place i of the order. */
static inline uint32_t layout_rank(const struct layout *l, uint32_t i)
{
	return l->order ? l->order[i] : i;
}

/* Returns the number of members of host h. */
static inline uint32_t layout_here(const struct layout *l, uint32_t h)
{
	return l->first[h + 1] - l->first[h];
}

static inline uint32_t layout_place(const struct layout *l, uint32_t rank)
{
	return l->place ? l->place[rank] : rank;
}

/* Returns the host of a place, in O(log hosts). */
uint32_t layout_host_at(const struct layout *l, uint32_t place);

/* Do input and result share memory? May differ between members. */
enum plan_overlap {
	PLAN_APART, /* no, or one of them is absent */
	PLAN_SAME,  /* they have the same start address */
	PLAN_MIXED  /* they overlap otherwise */
};

/* The problem to plan. All fields but `rank` and `overlap` must be equal on all members. */
struct plan_shape {
	enum fi_collective_op kind;
	uint32_t rank, size; /* this member; number of members, at least 1 */
	uint32_t root;       /* used if the collective has a root */
	size_t count;        /* elements per member; size * count fits size_t */
	size_t width;        /* bytes of an element; only to choose an algorithm */
	/*
	 * Combine strictly in rank order: for operators that do not commute (FI_ATOMIC_WRITE),
	 * apart from rounding, NaN and the sign of zero.
	 */
	bool ordered;
	enum plan_overlap overlap;
	/* Which members share a host; NULL: unknown. Must outlive the plan. */
	const struct layout *layout;
	uint32_t cpus; /* processors of the host with the fewest; 0: unknown */
	bool shares;   /* messages within a host go through its shared memory */
};

enum plan_space { PLAN_IN, PLAN_OUT, PLAN_TMP, PLAN_SPACES };

struct plan_place {
	enum plan_space space;
	size_t at; /* elements from the start of the space */
};

/* Sends or receives `count` consecutive elements. */
struct plan_message {
	uint32_t peer;
	bool send;
	struct plan_place place;
	size_t count;
};

enum plan_do { PLAN_COPY, PLAN_REDUCE };

/*
 * PLAN_COPY:   copies `blocks` blocks of `count` elements from `left` to `dst`; after each both
 *              advance, by `left_step` and `dst_step` elements. A single block may overlap itself.
 * PLAN_REDUCE: dst = left OP right, one block. dst is left, or right, or apart from both.
 */
struct plan_local {
	enum plan_do what;
	struct plan_place dst, left, right;
	size_t count, blocks;
	ptrdiff_t dst_step, left_step;
};

enum {
	PLAN_MESSAGES = 16, /* limit per round */
	PLAN_LOCALS = 16,   /* limit per round */
	PLAN_PHASES = 8
};

struct plan_round {
	unsigned int messages, locals;
	unsigned int sends; /* number of sends, which precede the receives */
	struct plan_message message[PLAN_MESSAGES];
	struct plan_local local[PLAN_LOCALS];
};

/* Arguments of an algorithm, see plan_own.h. */
struct plan_part {
	uint32_t rank, size, root;
	size_t count; /* elements; the algorithm says of what */
	size_t tune;  /* radix, or elements of a chunk; depends on the algorithm */
	/* PLAN_IN is PLAN_OUT, or this member's input is already in its place in PLAN_OUT */
	bool same;
};

/* The members that the ranks of a phase refer to. */
enum plan_among {
	PLAN_ALL,     /* all members */
	PLAN_HOST,    /* members on this member's host */
	PLAN_LEADERS, /* one member per host */
	PLAN_ACROSS   /* the members with this member's number on each host */
};

/* One algorithm, from its first round to its last. */
struct plan_phase {
	const struct plan_algorithm *algorithm;
	struct plan_part part;
	struct plan_place space[PLAN_SPACES]; /* where the algorithm's spaces begin */
	enum plan_among among;
	size_t rounds;
};

/* Private to src/coll/plan except `scratch`. */
struct plan {
	size_t scratch; /* elements of PLAN_TMP; 0: none */
	size_t kept;    /* first elements of these: used by more than one phase */
	unsigned int phases;
	/*
	 * Elements of a chunk of the vector: the phases run for each chunk, so that one host passes
	 * a chunk on while another has the next. 0: they run once, for the whole vector.
	 */
	size_t chunk, vector; /* and of the vector */
	size_t chunks, steps; /* number of chunks; rounds of all phases of one chunk */
	/* A round consists of the first step of a chunk, the second of the chunk before it, and so on. */
	bool overlaps;
	uint32_t root, root_host; /* the root and its host, which it leads; 0, 0 without a root */
	uint32_t number;          /* this member's among those of its host, in the layout */
	const struct layout *layout;
	struct plan_phase phase[PLAN_PHASES];
};

/* Chooses algorithms (choose.c). Never fails. Takes nanoseconds, or O(log size) with a layout. */
void plan_make(struct plan *plan, const struct plan_shape *shape);

/* Does the collective combine operands? */
static inline bool plan_reduces(enum fi_collective_op kind)
{
	return kind == FI_ALLREDUCE || kind == FI_REDUCE || kind == FI_REDUCE_SCATTER;
}

/* Has it a root? In the others each member waits for all. */
static inline bool plan_rooted(enum fi_collective_op kind)
{
	return kind == FI_BROADCAST || kind == FI_REDUCE || kind == FI_SCATTER || kind == FI_GATHER;
}

/* Returns false, *round unchanged, if there is no round n: the collective has ended. */
bool plan_round(const struct plan *plan, size_t n, struct plan_round *round);

#endif
