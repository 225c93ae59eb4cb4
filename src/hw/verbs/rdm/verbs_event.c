/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles events of the device: broken queues, removal. */
#include <rdma/fi_errno.h>

#include "core/mr_nic.h"
#include "hw/verbs/rdm/verbs.h"
#include "hw/verbs/dev/verbs_mem.h"

static bool verbs_event_is_broken(const struct verbs_link *l)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	return l->own->path.dev->lib->query_qp(l->qp, &attr, IBV_QP_STATE, &init) ||
	       attr.qp_state == IBV_QPS_ERR || attr.qp_state == IBV_QPS_SQE;
}

/* Returns 0, or a positive error if the objects that all links share are unusable. */
static int verbs_event_useless(const struct verbs *v)
{
	if (verbs_dev_removed(v->path.dev))
		return FI_ENODEV;
	return verbs_note_read(&v->note.broken) ? FI_EIO : 0;
}

void verbs_poll_events(struct verbs *v)
{
	struct verbs_dev *dev = v->path.dev;
	unsigned int troubles;
	int err;

	verbs_cache_sweep(dev);
	verbs_news_read(dev);
	troubles = __atomic_load_n(&dev->troubles, __ATOMIC_RELAXED);
	err = verbs_event_useless(v);
	/* Closes the unusable device with its last link: another device may get the address. */
	if (err && list_empty(&v->all) && !v->regions) {
		verbs_down(v);
		mr_nic_let_go(v->opener->dom);
		return;
	}
	if (troubles == v->troubles)
		return;
	v->troubles = troubles;
	if (err)
		verbs_news_remove(dev, v->epfd);
	LIST_EACH (node, &v->all) {
		struct verbs_link *l = LIST_ENTRY(node, struct verbs_link, in_all);

		if (err || verbs_event_is_broken(l))
			verbs_fail(l, err ? err : FI_EIO);
	}
}

bool verbs_usable(const struct verbs *v)
{
	return !verbs_event_useless(v);
}
