/* SPDX-License-Identifier: BSD-2-Clause */
/* A collective under way: the rounds of its plan, one after the other. Domain locked. */
#ifndef WEFT_COLL_OP_H
#define WEFT_COLL_OP_H

#include "coll/group/group.h"
#include "coll/local.h"
#include "coll/plan/plan.h"
#include "xfer/defer/defer.h"

#define OP_SCRATCH 512 /* bytes of it that are part of an operation */
#define OP_KEPT    2 /* rounds of a plan that are kept for the next call: all rounds of most short collectives */

/* What a call asks for, checked. */
struct op_args {
	enum fi_collective_op kind;
	enum fi_datatype type;
	enum fi_op op;
	void *in; /* the one buffer of a broadcast is `out` */
	void *out;
	size_t count, width;
	size_t in_count, out_count; /* elements of the buffers */
	uint32_t root;
	uint64_t flags;
	void *context;
};

/* A message of the round. */
struct op_slot {
	struct work work;
	struct op *op;
	bool pending;
	bool direct; /* a receive that is in no queue: exchange_take finds it */
};

struct op {
	struct list in_group, in_ready;
	struct group *group;
	struct ep *ep; /* NULL: its end is not reported */
	struct op_args args;
	uint64_t what; /* kind, root, count, type, operator of these, as tags tell them */
	uint64_t seq;
	bool begun; /* its first round */
	bool alone; /* begins when all before it have ended, and none begins before its end */
	unsigned int pending; /* messages */
	size_t next;          /* round */
	struct plan_shape shape;
	struct plan plan; /* made of that */
	uint64_t planned; /* the group it was made for, by its serial; 0: none */
	struct local local;
	struct plan_round *round;        /* under way: one of these */
	struct plan_round kept[OP_KEPT]; /* of the plan, by number modulo OP_KEPT; likewise kept */
	size_t kept_rounds[OP_KEPT];     /* which: their numbers; SIZE_MAX: none */
	size_t rounds;                   /* that the plan has, once that is known, else SIZE_MAX */
	struct op_slot slot[PLAN_MESSAGES];
	void *memory; /* of scratch, where it is not `scratch` */
	char scratch[OP_SCRATCH] __attribute__((aligned(16)));
};

/* A hash of the call in few bits: equal on members that make the same call, mostly different on others. */
uint64_t op_what(const struct op_args *args);
/* Begins one. 0 or a negative error. */
int op_post(struct ep *ep, struct group *g, const struct op_args *args);
/* Continues an operation whose messages are complete. */
void op_step(struct op *op);
/* Ends all of the group by its error, at once. */
void op_end_all(struct group *g);

#endif
