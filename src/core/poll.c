/* SPDX-License-Identifier: BSD-2-Clause */
/* Poll sets: polling several completion queues and counters at once. fi_poll(3). */
#include <stdlib.h>

#include "base/log.h"
#include "base/fid.h"
#include "core/domain.h"
#include "core/wait.h"

struct poll_set {
	union {
		struct fid_poll fid;
		struct waitable waitable;
	};
	struct domain *dom;
	struct lock lock;    /* guards members; taken before the domain's */
	struct list members; /* struct member */
};

static inline struct poll_set *poll_of(struct fid_poll *fid)
{
	return (struct poll_set *)fid;
}

struct member {
	struct list link;
	struct waitable *what; /* completion queue or counter, which we hold a reference to */
	struct wait_view seen; /* at the last poll */
};

/* Set locked. */
static struct member *find_member(struct poll_set *set, const struct waitable *what)
{
	LIST_EACH_OF (struct member, m, &set->members, link) {
		if (m->what == what)
			return m;
	}
	return NULL;
}

/* Checks whether `fid` can be a member; 0: *now is what it shows. Or a negative error. */
static int check_fid(const struct poll_set *set, struct fid *fid, uint64_t flags,
		     struct wait_view *now)
{
	struct waitable *what = (struct waitable *)fid;

	if (!fid || flags)
		return -FI_EINVAL;
	if (fid->fclass != FI_CLASS_CQ && fid->fclass != FI_CLASS_CNTR)
		return LOG_REFUSE(-FI_EINVAL, LOG_DOMAIN,
				  "no poll set holds an object of class %zu", fid->fclass);
	*now = what->waits->look(what);
	if (now->dom == set->dom)
		return 0;
	return LOG_REFUSE(-FI_EDOMAIN, LOG_DOMAIN,
			  "poll set and object of class %zu have different domains", fid->fclass);
}

static int poll_add(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct poll_set *set = poll_of(fid);
	struct waitable *what = (struct waitable *)event_fid;
	struct wait_view now;
	struct member *m;
	int ret = check_fid(set, event_fid, flags, &now);

	if (ret)
		return ret;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -FI_ENOMEM;
	m->what = what;
	m->seen = now;
	lock_take(&set->lock);
	if (!find_member(set, what)) { /* a repeated add has no effect */
		list_push(&set->members, &m->link);
		ref_get(now.ref);
		m = NULL;
	}
	lock_give(&set->lock);
	free(m);
	return 0;
}

static int poll_del(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct poll_set *set = poll_of(fid);
	struct wait_view now;
	struct member *m;
	int ret = check_fid(set, event_fid, flags, &now);

	if (ret)
		return ret;
	lock_take(&set->lock);
	m = find_member(set, (struct waitable *)event_fid);
	if (m) {
		list_remove(&m->link);
		ref_put(now.ref);
	}
	lock_give(&set->lock);
	if (!m)
		return LOG_REFUSE(-FI_EINVAL, LOG_DOMAIN,
				  "the object of class %zu is not in the poll set",
				  event_fid->fclass);
	free(m);
	return 0;
}

static int poll_poll(struct fid_poll *fid, void **context, int count)
{
	struct poll_set *set = poll_of(fid);
	struct list found;
	int n = 0;

	if (count < 0 || (count > 0 && !context))
		return -FI_EINVAL;
	list_init(&found);
	lock_take(&set->lock);
	LIST_EACH_SAFE_OF (struct member, m, &set->members, link) {
		if (n == count)
			break;
		if (!m->what->waits->polled(m->what, &m->seen))
			continue;
		context[n++] = m->what->fid.context;
		list_remove(&m->link);
		list_push(&found, &m->link);
	}
	/* Members that were ready go to the end, so the others come first at the next call. */
	for (struct list *node = list_pop(&found); node; node = list_pop(&found))
		list_push(&set->members, node);
	lock_give(&set->lock);
	return n;
}

static int poll_arm_members(struct waitable *self)
{
	struct poll_set *set = (struct poll_set *)self;
	int ret = 0;

	lock_take(&set->lock);
	LIST_EACH (node, &set->members) {
		struct waitable *what = LIST_ENTRY(node, struct member, link)->what;

		ret = what->waits->arm(what);
		if (ret)
			break;
	}
	lock_give(&set->lock);
	return ret;
}

static int poll_close(struct fid *fid)
{
	struct poll_set *set = poll_of((struct fid_poll *)fid);

	if (domain_foreign(set->dom))
		return 0;
	if (!list_empty(&set->members))
		return LOG_REFUSE(
			-FI_EBUSY, LOG_DOMAIN,
			"a poll set that has members cannot be closed: remove them by fi_poll_del");
	ref_put(&set->dom->ref);
	fid_free(fid);
	return 0;
}

static struct fi_ops fid_ops = FID_OPS(poll_close, fid_no_bind, fid_no_control);

static struct fi_ops_poll poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

static const struct waitable_ops waitable_ops = {.arm = poll_arm_members};

int poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **fid)
{
	struct poll_set *set;

	if (!fid || (attr && attr->flags))
		return -FI_EINVAL;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->dom = domain_of(domain);
	ref_get(&set->dom->ref);
	lock_init(&set->lock);
	list_init(&set->members);
	set->fid.fid = (struct fid){.fclass = FI_CLASS_POLL, .ops = &fid_ops};
	set->fid.ops = &poll_ops;
	set->waitable.waits = &waitable_ops;
	*fid = &set->fid;
	return 0;
}
