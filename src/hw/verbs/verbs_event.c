/* SPDX-License-Identifier: BSD-2-Clause */
/* What a device says of itself: a broken queue pair, or its own end. */
#include <rdma/fi_errno.h>

#include "hw/verbs/verbs.h"

static bool is_broken(const struct verbs_link *l)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	return l->own->path.dev->lib->query_qp(l->qp, &attr, IBV_QP_STATE, &init) ||
	       attr.qp_state == IBV_QPS_ERR || attr.qp_state == IBV_QPS_SQE;
}

/* The device has gone, and the last link with it: another may have its address some day. */
static bool is_useless(const struct verbs *v)
{
	return list_empty(&v->all) && __atomic_load_n(&v->path.dev->gone, __ATOMIC_RELAXED);
}

void verbs_look(struct verbs *v)
{
	struct verbs_dev *dev = v->path.dev;
	unsigned int troubles;
	bool gone;

	verbs_dev_listen(dev);
	troubles = __atomic_load_n(&dev->troubles, __ATOMIC_RELAXED);
	if (is_useless(v)) {
		verbs_down(v);
		return;
	}
	if (troubles == v->troubles)
		return;
	v->troubles = troubles;
	gone = __atomic_load_n(&dev->gone, __ATOMIC_RELAXED);
	LIST_EACH (node, &v->all) {
		struct verbs_link *l = LIST_ENTRY(node, struct verbs_link, in_all);

		if (gone || is_broken(l))
			verbs_fail(l, gone ? FI_ENODEV : FI_EIO);
	}
}
