/* SPDX-License-Identifier: BSD-2-Clause */
/* Poll sets: polling several completion queues and counters at once. fi_poll(3). */
#ifndef WEFT_CORE_POLL_H
#define WEFT_CORE_POLL_H

#include "base/list.h"
#include "base/lock.h"
#include "core/domain.h"
#include "core/wait.h"

struct poll_set {
	union {
		struct fid_poll fid;
		struct waitable waitable;
	};
	struct domain *dom;
	struct lock lock;    /* guards members; taken before the domain's */
	struct list members; /* struct member in poll.c */
};

static inline struct poll_set *poll_of(struct fid_poll *fid)
{
	return (struct poll_set *)fid;
}

int poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **set);

#endif
