/* SPDX-License-Identifier: BSD-2-Clause */
/* Wait sets. fi_poll(3). */
#ifndef WEFT_CORE_WAIT_SET_H
#define WEFT_CORE_WAIT_SET_H

#include "base/lock.h"
#include "core/wait.h"

struct wait_set {
	union {
		struct fid_wait fid;
		struct waitable waitable;
	};
	struct fabric *fabric;
	unsigned int forks;  /* forked_count of the process that opened it */
	struct waiter wait;  /* the waiter of threads that wait on the set */
	struct lock lock;    /* guards members; taken before the domain's */
	struct list members; /* struct waiter.in_set */
	int ref;             /* atomic: members */
};

static inline struct wait_set *wait_set_of(struct fid_wait *fid)
{
	return (struct wait_set *)fid;
}

/* Adds a waiter to a set, or removes it: for wait_init and wait_fini. 0 or -errno. */
int wait_set_join(struct wait_set *set, struct waiter *w);
void wait_set_leave(struct wait_set *set, struct waiter *w);

#endif
