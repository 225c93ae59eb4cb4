/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles completions: received packets, sends, errors. */
#include <arpa/inet.h>
#include <rdma/fi_errno.h>

#define LOG_PROV "verbs"
#include "base/log.h"
#include "base/reason.h"
#include "core/mr_nic.h"
#include "hw/verbs/rdm/verbs.h"

#define BATCH ((int)(sizeof(((struct verbs *)NULL)->wc) / sizeof(struct ibv_wc)))

/* Mask: every 1024th progress call reads the device's events. */
#define POLL_CALLS 1023u

static int verbs_progress_error_of(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_LOC_LEN_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
		return FI_EPROTO;
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
		return FI_EFAULT;
	case IBV_WC_REM_ACCESS_ERR:
		return FI_EACCES;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return FI_ETIMEDOUT;
	case IBV_WC_WR_FLUSH_ERR:
		return FI_ECONNRESET;
	default:
		return FI_EIO;
	}
}

void verbs_attend(struct verbs_link *l)
{
	list_remove(&l->in_attend);
	list_push(&l->own->attend, &l->in_attend);
}

void verbs_fail(struct verbs_link *l, int err)
{
	if (l->err)
		return;
	l->err = err;
	l->credits = 0;
	verbs_attend(l);
}

void verbs_fail_status(struct verbs_link *l, enum ibv_wc_status status)
{
	if (!l->err)
		LOG_INFO(LOG_EP_DATA, "the queue pair to peer %#x broke: %s", l->id,
			 verbs_status_text(status));
	if (!l->err)
		l->link.reason = REASON_DEVICE + (int)status;
	verbs_fail(l, verbs_progress_error_of(status));
}

void verbs_repost(struct verbs *v, uint16_t slot)
{
	struct ibv_sge sge = verbs_slots_sge(&v->recv, slot, VERBS_SLOT);
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	int err = ibv_post_srq_recv(v->srq, &wr, &bad);

	if (err)
		LOG_WARN(LOG_EP_DATA, "%s: cannot repost a receive slot, which is lost: %s",
			 v->path.dev->name, fi_strerror(err));
}

/* Returns the link that sent the packet; NULL: unknown or closed. */
static struct verbs_link *verbs_progress_sender(struct verbs *v, const struct ibv_wc *wc)
{
	struct verbs_link *l;

	if (!(wc->wc_flags & IBV_WC_WITH_IMM))
		return NULL;
	l = pool_find(&v->links, ntohl(wc->imm_data));
	return l && l->qp && l->qp->qp_num == wc->qp_num ? l : NULL;
}

/* Handles a packet's header. False: the header is invalid. */
static bool verbs_progress_take_head(struct verbs_link *l, const struct ibv_wc *wc,
				     const struct verbs_head *h)
{
	/* The first packet of the peer shows that the peer is ready to receive. */
	if (!l->heard) {
		l->heard = true;
		l->credits = l->credit_limit;
		if (l->rails)
			verbs_rails_ops->update(l->rails);
		verbs_rdma_on(l);
	}
	if (wc->byte_len < sizeof(*h) || h->flags & l->unknown ||
	    h->freed > l->credit_limit - l->credits)
		return false;
	if (__builtin_expect(l->rails != NULL, 0) && !verbs_rails_ops->spared(l, h))
		return false;
	l->credits += h->freed;
	if (__builtin_expect(l->rails != NULL, 0))
		verbs_rails_ops->credited(l, h->freed);
	if (__builtin_expect(h->flags & VERBS_PLAIN && l->direct.qp, 0))
		verbs_rdma_end(l, false);
	return true;
}

/* Handles a packet. Returns the link that may return credits once the slot is posted again; NULL: none. */
static struct verbs_link *verbs_progress_receive(struct verbs *v, const struct ibv_wc *wc,
						 uint16_t slot)
{
	struct verbs_link *l = verbs_progress_sender(v, wc);
	const struct verbs_head *h = (const void *)verbs_slots_at(&v->recv, slot);
	struct packet p;
	uint32_t id;

	if (!l || l->err)
		return NULL;
	if (!verbs_progress_take_head(l, wc, h)) {
		LOG_PEER(LOG_EP_DATA, "peer %#x sent a packet of %u bytes with an invalid header",
			 l->id, wc->byte_len);
		verbs_fail(l, FI_EPROTO);
		return NULL;
	}
	if (!h->head)
		return l;
	l->disconnected |= wire_op(h->head) == WIRE_DISCONNECT;
	p = (struct packet){.head = h->head,
			    .tag = h->tag,
			    .data = h->data,
			    .payload = h + 1,
			    .len = wc->byte_len - sizeof(*h)};
	id = pool_id(l);
	if (!l->rails || verbs_rails_ops->take(l, h->flags, &p))
		v->opener->events->deliver(v->opener, l->id, &p);
	l = pool_find(&v->links, id);
	if (l)
		l->freed++;
	return l;
}

static void complete_recv(struct verbs *v, const struct ibv_wc *wc)
{
	uint16_t slot = (uint16_t)wc->wr_id;
	struct verbs_link *peer = NULL;

	if (wc->status == IBV_WC_SUCCESS) {
		peer = verbs_progress_receive(v, wc, slot);
	} else {
		LIST_EACH_OF (struct verbs_link, l, &v->all, in_all)
			if (l->qp->qp_num == wc->qp_num)
				verbs_fail_status(l, wc->status);
	}
	verbs_repost(v, slot);
	if (peer)
		verbs_tell(peer);
}

static void verbs_progress_complete_send(struct verbs *v, const struct ibv_wc *wc, bool silent)
{
	struct verbs_link *l = pool_find(&v->links, wc->wr_id >> 32);

	if (!l)
		return;
	if (wc->qp_num != l->qp->qp_num) {
		verbs_rdma_done(l, wc, silent);
		return;
	}
	verbs_sent(l, (uint32_t)wc->wr_id);
	if (wc->status != IBV_WC_SUCCESS)
		verbs_fail_status(l, wc->status);
}

static void verbs_progress_attend(struct verbs *v)
{
	struct list todo = v->attend, *node;

	todo.next->prev = todo.prev->next = &todo;
	list_init(&v->attend);
	while ((node = list_pop(&todo))) {
		struct verbs_link *l = LIST_ENTRY(node, struct verbs_link, in_attend);

		if (!l->err && l->direct.failed)
			verbs_rdma_end(l, false);
		if (!l->err)
			verbs_tell(l);
		else if (!l->ended) {
			l->ended = true;
			if (l->rails)
				verbs_rails_ops->broke(l);
			else
				v->opener->events->ended(v->opener, l->id, l->err);
		}
	}
}

int verbs_read(struct verbs *v)
{
	int n = (int)v->got;

	if (__builtin_expect(!(v->got | v->kept.count), 1))
		return ibv_poll_cq(v->cq, BATCH, v->wc);
	v->got = 0;
	return n ? n : verbs_ack_kept(v, v->wc, BATCH);
}

static void verbs_progress_take_last(struct verbs_link *l, const struct verbs_head *h)
{
	l->disconnected |= wire_op(h->head) == WIRE_DISCONNECT;
	/* What waits for credits of another rail has been reported as sent. */
	if (!l->rails || l->err || h->freed > l->credit_limit - l->credits)
		return;
	l->credits += h->freed;
	verbs_rails_ops->credited(l, h->freed);
}

void verbs_last_messages(struct verbs *v, const struct ibv_wc *wc)
{
	uint16_t slot = (uint16_t)wc->wr_id;
	const struct verbs_head *h;
	struct verbs_link *l;

	if (wc->wr_id >> 32) {
		verbs_progress_complete_send(v, wc, true);
		return;
	}
	l = wc->status == IBV_WC_SUCCESS ? verbs_progress_sender(v, wc) : NULL;
	h = (const void *)verbs_slots_at(&v->recv, slot);
	if (l && wc->byte_len >= sizeof(*h))
		verbs_progress_take_last(l, h);
	verbs_repost(v, slot);
}

/* Before the first link: closes a removed device, so that the removal need not wait for us. */
static __attribute__((noinline, cold)) void poll_watched(struct verbs *v)
{
	if (++v->progress_calls & POLL_CALLS)
		return;
	verbs_news_read(v->watched.dev);
	if (!verbs_dev_removed(v->watched.dev))
		return;
	verbs_let_go(v);
	mr_nic_let_go(v->opener->dom);
}

bool verbs_progress_device(struct verbs *v)
{
	int n;

	if (!v->up) {
		if (v->watched.dev)
			poll_watched(v);
		return false;
	}
	if (__builtin_expect(!(++v->progress_calls & POLL_CALLS), 0))
		verbs_poll_events(v);
	n = v->up ? verbs_read(v) : 0;
	for (int i = 0; i < n; i++)
		if (v->wc[i].wr_id >> 32) /* pool numbers are never 0: a send or RDMA request */
			verbs_progress_complete_send(v, &v->wc[i], false);
		else
			complete_recv(v, &v->wc[i]);
	if (__builtin_expect(!list_empty(&v->attend), 0))
		verbs_progress_attend(v);
	return n > 0;
}

bool verbs_progress(void *state)
{
	struct verbs *v = state;
	bool any = verbs_progress_device(v);

	if (__builtin_expect(v->multi != NULL, 0))
		any |= verbs_rails_ops->progress(v);
	return any;
}

bool verbs_idle(const void *state)
{
	const struct verbs *v = state;

	return !v->up && !v->watched.dev && !v->multi;
}

static bool arm_device(struct verbs *v)
{
	int n;

	if (!v->up)
		return true;
	verbs_poll_events(v);
	if (!v->up)
		return true;
	if (v->got || v->kept.count || !list_empty(&v->attend))
		return false;
	verbs_channel_read(v->path.dev, v->channel, v->cq);
	if (ibv_req_notify_cq(v->cq, 0))
		return false;
	n = ibv_poll_cq(v->cq, BATCH, v->wc);
	v->got = n > 0 ? (unsigned int)n : 0;
	return n <= 0;
}

bool verbs_arm(void *state)
{
	struct verbs *v = state;
	bool armed;

	if (v->multi)
		verbs_rails_ops->sleep(v);
	armed = arm_device(v);
	for (unsigned int i = 0; v->multi && i < v->multi->count; i++)
		armed &= arm_device(&v->multi->further[i]);
	return armed;
}
