/* SPDX-License-Identifier: BSD-2-Clause */
/* Wait sets: what their members need of them, and fi_trywait. fi_poll(3). */
#ifndef WEFT_CORE_WAIT_SET_H
#define WEFT_CORE_WAIT_SET_H

#include "base/lock.h"
#include "core/wait.h"

struct wait_set {
	struct fid_wait fid;
	struct fabric *fabric;
	struct waiter wait;  /* what those sleep on who wait for the set */
	struct lock lock;    /* guards members; taken before the domain's */
	struct list members; /* struct waiter.in_set */
	int ref;             /* atomic: members */
};

static inline struct wait_set *wait_set_of(struct fid_wait *fid)
{
	return (struct wait_set *)fid;
}

/* For wait_init and wait_fini of a member. 0 or -errno. */
int wait_set_join(struct wait_set *set, struct waiter *w);
void wait_set_leave(struct wait_set *set, struct waiter *w);

/* For fi_trywait: 0, or -FI_EAGAIN when a member has something. */
int wait_set_arm(struct wait_set *set);

#endif
