/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/forked.h"
#include "base/log.h"
#include "core/fabric.h"
#include "base/fid.h"
#include "core/wait.h"

int wait_set_join(struct wait_set *set, struct waiter *w)
{
	int ret = wait_add_fd(&set->wait, w->epfd);

	if (ret)
		return ret;
	w->set = set;
	ref_get(&set->ref);
	lock_take(&set->lock);
	list_push(&set->members, &w->in_set);
	lock_give(&set->lock);
	return 0;
}

void wait_set_leave(struct wait_set *set, struct waiter *w)
{
	lock_take(&set->lock);
	list_remove(&w->in_set);
	lock_give(&set->lock);
	wait_del_fd(&set->wait, w->epfd);
	w->set = NULL;
	ref_put(&set->ref);
}

/* Returns true if a member has something, or (`arm`) cannot promise to wake us. */
static bool any_ready(struct wait_set *set, bool arm)
{
	bool found = false;

	lock_take(&set->lock);
	LIST_EACH (node, &set->members) {
		struct waiter *w = LIST_ENTRY(node, struct waiter, in_set);
		struct waitable *owner = __atomic_load_n(&w->owner, __ATOMIC_ACQUIRE);

		if (!owner)
			continue;
		found = arm ? owner->waits->arm(owner) != 0 : owner->waits->ready(owner);
		if (!found)
			continue;
		list_remove(node); /* the others come first at the next call */
		list_push(&set->members, node);
		break;
	}
	lock_give(&set->lock);
	return found;
}

static int wait_set_arm_members(struct waitable *self)
{
	struct wait_set *set = (struct wait_set *)self;

	wait_arm(&set->wait);
	wait_drain(&set->wait);
	return any_ready(set, true) ? -FI_EAGAIN : 0;
}

struct set_sleep {
	struct wait_for what;
	struct wait_set *set;
};

static bool set_ready(struct wait_for *what, bool arm)
{
	struct set_sleep *sleep = (struct set_sleep *)what;

	return any_ready(sleep->set, arm);
}

static int wait_set_wait(struct fid_wait *fid, int timeout)
{
	struct wait_set *set = wait_set_of(fid);
	struct set_sleep sleep = {.what.ready = set_ready, .set = set};

	return wait_until(&set->wait, &sleep.what, wait_end(timeout));
}

static int wait_set_close(struct fid *fid)
{
	struct wait_set *set = wait_set_of((struct fid_wait *)fid);

	if (set->forks != forked_count())
		return 0;
	if (ref_busy(&set->ref))
		return LOG_REFUSE(-FI_EBUSY, LOG_FABRIC,
				  "a wait set with %d members cannot be closed: close these first",
				  set->ref);
	wait_fini(&set->wait);
	ref_put(&set->fabric->ref);
	fid_free(fid);
	return 0;
}

static int wait_set_control(struct fid *fid, int command, void *arg)
{
	return wait_control(&wait_set_of((struct fid_wait *)fid)->wait, command, arg);
}

static struct fi_ops fid_ops = FID_OPS(wait_set_close, fid_no_bind, wait_set_control);

static struct fi_ops_wait set_ops = {
	.size = sizeof(struct fi_ops_wait),
	.wait = wait_set_wait,
};

static int wait_set_check_attr(const struct fi_wait_attr *attr)
{
	if (attr && !attr->flags && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_SET)
		return 0;
	if (attr)
		LOG_WARN(LOG_FABRIC, "fi_wait_open: wait_obj %d with flags %#llx is not supported",
			 (int)attr->wait_obj, (unsigned long long)attr->flags);
	return -FI_EINVAL;
}

static const struct waitable_ops waitable_ops = {.arm = wait_set_arm_members};

int wait_set_open(struct fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **fid)
{
	struct wait_set *set;
	int ret = fid ? wait_set_check_attr(attr) : -FI_EINVAL;

	if (ret)
		return ret;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	ret = wait_init(&set->wait, attr->wait_obj, NULL);
	if (ret)
		goto free_set;
	lock_init(&set->lock);
	list_init(&set->members);
	set->fabric = fabric;
	set->forks = forked_count();
	ref_get(&fabric->ref);
	set->fid.fid = (struct fid){.fclass = FI_CLASS_WAIT, .ops = &fid_ops};
	set->fid.ops = &set_ops;
	set->waitable.waits = &waitable_ops;
	*fid = &set->fid;
	return 0;
free_set:
	free(set);
	return ret;
}
