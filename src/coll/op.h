/* SPDX-License-Identifier: BSD-2-Clause */
/* A running collective: the rounds of its plan, one after the other. Domain locked. */
#ifndef WEFT_COLL_OP_H
#define WEFT_COLL_OP_H

#include "atomic/atomic.h"
#include "coll/group/group.h"
#include "coll/plan/plan.h"
#include "xfer/defer/defer.h"

/* The memory of PLAN_IN, PLAN_OUT and PLAN_TMP in one collective. */
struct local {
	char *space[PLAN_SPACES]; /* aligned for the datatype */
	size_t width;             /* bytes of an element */
	plain_kernel *kernel;     /* NULL if the collective does not reduce */
	bool commutes;            /* a OP b equals b OP a bit by bit, which saves copies */
};

/* Returns the address of a place. */
static inline char *local_at(const struct local *l, struct plan_place place)
{
	return l->space[place.space] + place.at * l->width;
}

/*
 * Is the memory of a message that is received apart from all that the round's messages and local steps
 * read and write? Cautious: blocks with steps count as not apart.
 */
bool local_apart(const struct local *l, const struct plan_round *round,
		 const struct plan_message *received);

/* Executes all local steps of a round in order. */
void local_run(const struct local *l, const struct plan_round *round);

#define OP_SCRATCH 512 /* bytes of scratch inside an operation */
/* Rounds of a plan that are cached for the next call: all rounds of most short collectives. */
#define OP_KEPT 2

/* The checked arguments of a call. */
struct op_args {
	enum fi_collective_op kind;
	enum fi_datatype type;
	enum fi_op op;
	void *in; /* broadcast: NULL, the only buffer is `out` */
	void *out;
	size_t count, width;
	size_t in_count, out_count; /* elements in each buffer */
	uint32_t root;
	uint64_t flags;
	void *context;
};

/* One message of a round. */
struct op_slot {
	struct work work;
	struct op *op;
	const struct plan_message *message;
	bool pending;
	bool direct; /* a receive that is in no queue; exchange_take finds it */
	bool ahead;  /* a receive that was posted before its round has begun */
};

/* A round of the plan, cached for the next call, and its messages. */
struct op_round {
	struct plan_round plan;
	size_t number;      /* SIZE_MAX: none */
	unsigned int ahead; /* its first receives, so many, were posted before it has begun */
	struct op_slot slot[PLAN_MESSAGES];
};

struct op {
	struct list in_group, in_ready;
	struct group *group;
	struct ep *ep; /* NULL: the end is not reported */
	struct op_args args;
	uint64_t what; /* hash of kind, root, count, type and operator, for the tags */
	uint64_t seq;
	bool begun; /* the first round has begun */
	bool alone; /* begins when all earlier ones have ended; later ones wait for its end */
	unsigned int pending; /* incomplete messages of the round */
	size_t next;          /* next round */
	struct plan_shape shape;
	struct plan plan; /* made from `shape` */
	uint64_t planned; /* serial of the group the plan was made for; 0: no plan */
	struct local local;
	struct op_round *round;        /* current round; points into `kept` */
	struct op_round kept[OP_KEPT]; /* round n at n modulo OP_KEPT */
	size_t rounds;                 /* number of rounds, once known; else SIZE_MAX */
	void *memory;                  /* scratch that does not fit into `scratch`, or NULL */
	char scratch[OP_SCRATCH] __attribute__((aligned(16)));
};

/* Returns a short hash of the call: equal for equal calls, usually different for others. */
uint64_t op_what(const struct op_args *args);
/* Begins a collective. Returns 0 or a negative error. */
int op_post(struct ep *ep, struct group *g, const struct op_args *args);
/* Continues an operation whose messages are complete: local steps, next round or end. */
void op_step(struct op *op);
/* Returns round n of the operation's plan, or NULL if there is none. Forgets round n - OP_KEPT. */
struct op_round *op_round(struct op *op, size_t n);
/* Ends all operations of the group at once, with the group's error. */
void op_end_all(struct group *g);

/* The messages of a round of a collective. Domain locked. */

/* Prepares an operation that is new, or was ended during a round. */
void exchange_prepare(struct op *op);
/* Starts the messages of op->round. When all are complete, the operation goes to coll->ready. */
void exchange_start(struct op *op);
/* Handles a message to the group. Returns true if a waiting operation took the message, or the early queue keeps it. */
bool exchange_take(struct group *g, struct peer *peer, const struct packet *p);
/* Does the work belong to a slot of an operation? */
bool exchange_is_work(const struct work *work);
/* Does the operation wait for a message from this member? */
bool exchange_waits_for(const struct op *op, uint32_t rank);
/* Connects to the members that the operation waits for; finds members that have left. */
void exchange_poll(struct op *op);
/* Does a long message of the group to this peer still wait for its ATS? */
bool exchange_awaits_ats(const struct group *g, const struct peer *peer);

#endif
