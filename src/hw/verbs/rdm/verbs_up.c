/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects that all links of a worker share: device and its events, completion queue, receive slots. */
#include <rdma/fi_errno.h>

#include "base/forked.h"
#include "core/mr_nic.h"
#include "hw/verbs/rdm/verbs.h"

#define SRQ_MAX (VERBS_CHUNK * VERBS_CHUNKS)

static unsigned int srq_limit(const struct verbs *v)
{
	int limit = v->path.dev->attr.max_srq_wr;

	return limit < SRQ_MAX ? (unsigned int)limit : SRQ_MAX;
}

static int verbs_up_make_queues(struct verbs *v)
{
	const struct verbs_lib *lib = v->path.dev->lib;
	struct ibv_srq_init_attr attr = {.srq_context = &v->note,
					 .attr = {.max_wr = srq_limit(v), .max_sge = 1}};

	v->cq = lib->create_cq(v->path.dev->ctx, 2 * VERBS_CHUNK, &v->note, v->channel, 0);
	if (!v->cq)
		return verbs_failed("a completion queue");
	v->srq = lib->create_srq(v->path.dev->pd, &attr);
	if (v->srq)
		return 0;
	lib->destroy_cq(v->cq);
	return verbs_failed("a shared receive queue");
}

void verbs_let_go(struct verbs *v)
{
	if (v->watched.dev)
		verbs_dev_close(&v->watched);
	v->watched.dev = NULL;
}

int verbs_up(struct verbs *v)
{
	int err;

	if (v->up)
		return 0;
	err = verbs_dev_open(v->at, &v->path);
	if (err)
		return err;
	err = verbs_channel_open(v->path.dev, v->epfd, v->epfd, &v->channel);
	if (err)
		goto close_device;
	err = verbs_up_make_queues(v);
	if (err)
		goto close_channel;
	verbs_slots_init(&v->recv, v->path.dev, VERBS_SLOT);
	verbs_slots_init(&v->send, v->path.dev, VERBS_SLOT);
	v->note = (struct verbs_note){false, false};
	v->troubles = __atomic_load_n(&v->path.dev->troubles, __ATOMIC_RELAXED);
	v->up = true;
	verbs_let_go(v);
	return 0;
close_channel:
	verbs_channel_close(v->path.dev, v->channel, v->epfd);
close_device:
	verbs_dev_close(&v->path);
	return err;
}

void verbs_down(struct verbs *v)
{
	const struct verbs_lib *lib = v->path.dev->lib;
	bool forked = v->path.dev->forked != forked_count();

	if (!list_empty(&v->asked_regions))
		verbs_rails_ops->drop_regions(v);
	if (!forked) {
		lib->destroy_srq(v->srq);
		lib->destroy_cq(v->cq);
		verbs_channel_close(v->path.dev, v->channel, v->epfd);
	}
	verbs_slots_fini(&v->recv, forked);
	verbs_slots_fini(&v->send, forked);
	verbs_dev_close(&v->path);
	v->up = false;
	v->got = 0;
	verbs_ack_drop(v);
}

/* Makes space for all completions before the next progress call, with so many receive slots; twice that if possible. */
static int add_completions(struct verbs *v, unsigned int slots)
{
	unsigned int need =
		slots + (pool_in_use(&v->links) + 1) * (VERBS_FLIGHT + VERBS_RDMA_FLIGHT);
	unsigned int most = (unsigned int)v->path.dev->attr.max_cqe, size = 2 * need;

	if (need <= (unsigned int)v->cq->cqe)
		return 0;
	if (size > most && need <= most)
		size = most;
	return v->path.dev->lib->resize_cq(v->cq, (int)size) ? -FI_ENOSPC : 0;
}

/* Adds a chunk of receive slots and posts them. */
static int add_slots(struct verbs *v)
{
	uint16_t slot;
	int err;

	if (v->recv.count + VERBS_CHUNK > srq_limit(v) ||
	    add_completions(v, v->recv.count + VERBS_CHUNK))
		return -FI_ENOSPC;
	err = verbs_slots_grow(&v->recv);
	while (!err && (slot = verbs_slots_get(&v->recv)) != VERBS_NO_SLOT)
		verbs_repost(v, slot);
	return err;
}

unsigned int verbs_grant(struct verbs *v)
{
	unsigned int window = VERBS_WINDOW;

	while (v->credits_granted + window + VERBS_SPARE > v->recv.count && !add_slots(v))
		;
	/* If more packets come than slots are free, the device makes senders retry (RNR). */
	if (v->credits_granted + window + VERBS_SPARE > v->recv.count)
		window = VERBS_NARROW;
	if (!v->recv.count || add_completions(v, v->recv.count))
		return 0;
	v->credits_granted += window + VERBS_SPARE;
	return window;
}

void verbs_revoke(struct verbs *v, unsigned int window)
{
	v->credits_granted -= window + VERBS_SPARE;
}

/* ---- Events of the device: broken queues, removal --------------------------------------------- */

/* Returns 0, or a positive error if the objects that all links share are unusable. */
static int verbs_up_useless(const struct verbs *v)
{
	if (verbs_dev_removed(v->path.dev))
		return FI_ENODEV;
	return verbs_note_read(&v->note.broken) ? FI_EIO : 0;
}

void verbs_poll_events(struct verbs *v)
{
	struct verbs_dev *dev = v->path.dev;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	unsigned int troubles;
	int err;

	verbs_cache_sweep(dev);
	verbs_news_read(dev);
	troubles = __atomic_load_n(&dev->troubles, __ATOMIC_RELAXED);
	err = verbs_up_useless(v);
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
	LIST_EACH_OF (struct verbs_link, l, &v->all, in_all)
		if (err || dev->lib->query_qp(l->qp, &attr, IBV_QP_STATE, &init) ||
		    attr.qp_state == IBV_QPS_ERR || attr.qp_state == IBV_QPS_SQE)
			verbs_fail(l, err ? err : FI_EIO);
}

bool verbs_usable(const struct verbs *v)
{
	return !verbs_up_useless(v);
}
