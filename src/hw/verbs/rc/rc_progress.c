/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles completions: reports each work request to the application's queues and counters. */
#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>

#define LOG_PROV "verbs"
#include "base/clock.h"
#include "base/log.h"
#include "hw/verbs/rc/rc.h"

/* Masks: progress calls between two polls for events, connecting and else (at most every ms). */
#define NEWS_CALLS_BUSY 7u
#define NEWS_CALLS_IDLE 63u
#define NEWS_MS         1

/* How long rc_collect waits for the next completion, and in all. */
#define QUIET_US  2000
#define RETURN_US 10000

static int rc_progress_error_of(const struct rc *rc, enum ibv_wc_status status, bool receive)
{
	switch (status) {
	case IBV_WC_LOC_LEN_ERR:
		return receive ? FI_ETRUNC : FI_EMSGSIZE;
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
		return FI_EFAULT;
	case IBV_WC_WR_FLUSH_ERR:
		return rc->removed ? FI_ENODEV : FI_ECANCELED;
	case IBV_WC_REM_ACCESS_ERR:
		return FI_EACCES;
	case IBV_WC_REM_INV_REQ_ERR: /* some devices report LOC_LEN_ERR of a receive this way */
		return receive ? FI_ETRUNC : FI_EREMOTEIO;
	case IBV_WC_REM_OP_ERR:
		return FI_EREMOTEIO;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return FI_ETIMEDOUT;
	default:
		return FI_EIO;
	}
}

static struct rc_work *next_over(struct rc_ring *ring)
{
	return &ring->work[ring->over++ & ring->mask];
}

static struct cntr *rc_progress_counter_of(const struct ep *ep, uint64_t flags)
{
	if (flags & FI_SEND)
		return ep->cntrs[0];
	return flags & FI_READ ? ep->cntrs[2] : ep->cntrs[3];
}

static void rc_progress_sent(struct rc *rc, const struct rc_work *work)
{
	struct cntr *cntr = rc_progress_counter_of(rc->ep, work->flags);

	if (__builtin_expect(work->flags == RC_HALF || !work->flags, 0))
		return;
	if (work->flags & FI_COMPLETION)
		cq_push_done(rc->ep->tx_cq, work->context, work->flags & RC_SAYS);
	if (cntr)
		cntr_done(cntr, work->len);
}

static void push_failure(struct cq *cq, struct cntr *cntr, const struct cq_slot *slot,
			 const struct cq_error *why)
{
	if (cq)
		cq_push_error(cq, slot, why, NULL);
	if (cntr)
		cntr_fail(cntr);
}

void rc_unsent(struct rc *rc, const struct rc_work *work, int err, int prov_errno)
{
	push_failure(rc->ep->tx_cq, rc_progress_counter_of(rc->ep, work->flags),
		     &(struct cq_slot){.context = work->context, .flags = work->flags & RC_SAYS},
		     &(struct cq_error){.err = err, .prov_errno = prov_errno});
}

/* Reports a failed send. If it is the first of two requests, the second reports nothing more. */
static void rc_progress_unsent(struct rc *rc, const struct rc_work *work, enum ibv_wc_status status)
{
	struct rc_work *second = &rc->tx.work[rc->tx.over & rc->tx.mask];

	if (!work->flags)
		return;
	if (work->flags == RC_HALF)
		work = second;
	rc_unsent(rc, work, rc_progress_error_of(rc, status, false), (int)status);
	if (work == second)
		second->flags = 0;
}

/* Completes all sends up to this one. Only this one can have failed. */
static void rc_progress_complete_send(struct rc *rc, const struct ibv_wc *wc)
{
	uint32_t last = (uint32_t)wc->wr_id;

	while (rc->tx.over != last)
		rc_progress_sent(rc, next_over(&rc->tx));
	if (wc->status == IBV_WC_SUCCESS)
		rc_progress_sent(rc, next_over(&rc->tx));
	else
		rc_progress_unsent(rc, next_over(&rc->tx), wc->status);
}

/* Reports a write with immediate data, which consumed a receive. */
static void on_write_data(struct rc *rc, const struct rc_work *work, const struct ibv_wc *wc)
{
	const struct ep *ep = rc->ep;

	if (ep->rx_cq)
		cq_push(ep->rx_cq,
			(struct cq_slot){.context = work->context,
					 .flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
					 .len = wc->byte_len,
					 .data = ntohl(wc->imm_data),
					 .src = FI_ADDR_NOTAVAIL});
}

static void rc_progress_received(struct rc *rc, const struct rc_work *work, const struct ibv_wc *wc)
{
	struct cq_slot slot = {.context = work->context,
			       .flags = FI_MSG | FI_RECV,
			       .len = wc->byte_len,
			       .buf = work->buf,
			       .src = FI_ADDR_NOTAVAIL};

	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		slot.flags |= FI_REMOTE_CQ_DATA;
		slot.data = ntohl(wc->imm_data);
	}
	if (work->flags & FI_COMPLETION)
		cq_push(rc->ep->rx_cq, slot);
	if (rc->ep->cntrs[1])
		cntr_done(rc->ep->cntrs[1], wc->byte_len);
}

/* Takes a shared receive. The endpoint decides whether the receive writes a completion. */
static struct rc_work of_shared(struct rc *rc, const struct ibv_wc *wc)
{
	struct rc_work work = rc_srx_take(rc->srx, wc->wr_id);

	if (!rc->ep->rx_cq)
		work.flags &= ~FI_COMPLETION;
	else if (!rc->ep->rx_bind_flags)
		work.flags |= FI_COMPLETION;
	return work;
}

static void not_received(struct rc *rc, const struct rc_work *work, enum ibv_wc_status status)
{
	int err = rc_progress_error_of(rc, status, true);

	push_failure(rc->ep->rx_cq, rc->ep->cntrs[1],
		     &(struct cq_slot){.context = work->context, .flags = FI_MSG | FI_RECV},
		     &(struct cq_error){.err = err, .prov_errno = (int)status});
}

void rc_came(struct rc *rc, const struct ibv_wc *wc)
{
	struct rc_work shared, *work;

	if (rc->srx) {
		shared = of_shared(rc, wc);
		work = &shared;
	} else {
		work = next_over(&rc->rx);
	}

	if (wc->status == IBV_WC_SUCCESS) {
		if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
			on_write_data(rc, work, wc);
		else
			rc_progress_received(rc, work, wc);
		return;
	}
	not_received(rc, work, wc->status);
}

void rc_give_back(struct rc *rc, const struct rc_work *work)
{
	not_received(rc, work, IBV_WC_WR_FLUSH_ERR);
}

/* Completes operations under way as flushed: the device reports nothing more. */
static void rc_progress_give_up(struct rc *rc)
{
	while (rc->tx.over != rc->tx.posted)
		rc_progress_unsent(rc, next_over(&rc->tx), IBV_WC_WR_FLUSH_ERR);
	while (rc->rx.over != rc->rx.posted)
		rc_give_back(rc, next_over(&rc->rx));
}

/* A work request has completed, with or without error. */
static void rc_progress_complete(struct rc *rc, const struct ibv_wc *wc)
{
	if (wc->wr_id & RC_RECEIVE)
		rc_came(rc, wc);
	else
		rc_progress_complete_send(rc, wc);
	/* An error, or a flush that we did not begin, means that the queue pair is broken. */
	if (__builtin_expect(wc->status == IBV_WC_SUCCESS, 1) || rc->state == RC_OVER)
		return;
	LOG_INFO(LOG_EP_DATA, "the queue pair is broken: %s", verbs_status_text(wc->status));
	rc_end(rc, rc_progress_error_of(rc, wc->status, false));
}

/* Completed requests make space for others, unless the connection has ended. */
static void rc_progress_make_space(struct rc *rc)
{
	if (rc->state == RC_UP) {
		rc->tx.limit = rc->tx.over + rc->tx.size;
		rc_set_gate(rc);
	}
	if (rc->state != RC_OVER)
		rc->rx.limit = rc->rx.over + rc->rx.size;
}

static bool is_under_way(const struct rc_ring *ring, const void *context)
{
	for (uint32_t at = ring->over; at != ring->posted; at++)
		if (ring->work[at & ring->mask].context == context)
			return true;
	return false;
}

/* Devices return no single request, only all when the connection ends. */
int rc_cancel(const struct offload *n, void *context)
{
	const struct rc *rc = (const struct rc *)n;
	bool there = is_under_way(&rc->tx, context) || is_under_way(&rc->rx, context);

	return there ? -FI_EOPNOTSUPP : -FI_ENOENT;
}

/* ---- A device that reports an error or is removed ---- */

static bool rc_progress_is_idle(const struct rc *rc)
{
	return rc->tx.over == rc->tx.posted && (rc->srx || rc->rx.over == rc->rx.posted);
}

void rc_collect(struct rc *rc, bool (*is_over)(const struct rc *rc),
		void (*take)(struct rc *rc, const struct ibv_wc *wc))
{
	uint64_t now = clock_us(), quiet = now + QUIET_US, end = now + RETURN_US;
	bool over = false;
	struct ibv_wc wc;

	for (; !over && now < quiet && now < end; now = clock_us()) {
		over = is_over(rc);
		while (ibv_poll_cq(rc->cq, 1, &wc) > 0) {
			take(rc, &wc);
			quiet = clock_us() + QUIET_US;
		}
		sched_yield();
	}
}

/* Receives of a shared context that no queue pair took stay until the context is closed. */
void rc_removed(struct rc *rc)
{
	if (rc->removed)
		return;
	rc->removed = true;
	verbs_news_remove(rc->path->dev, rc->news_fd);
	rc_end(rc, FI_ENODEV);
	rc_collect(rc, rc_progress_is_idle, rc_progress_complete);
	rc_progress_give_up(rc);
}

/* Handles events of the device. True: one concerned the endpoint. */
static bool rc_progress_device_news(struct rc *rc, bool waiting)
{
	verbs_cache_sweep(rc->path->dev);
	if (waiting)
		verbs_news_read(rc->path->dev);
	if (verbs_dev_removed(rc->path->dev)) {
		bool is_new = !rc->removed;

		rc_removed(rc);
		return is_new;
	}
	if (rc->state == RC_OVER || (!verbs_note_read(&rc->note.broken) &&
				     (!rc->srx || !verbs_note_read(&rc->srx->note.broken))))
		return false;
	rc_end(rc, FI_EIO);
	return true;
}

/* ---- Progress ---- */

/* Limits polls by time, too: polls are system calls, progress calls may be ns apart. */
static __attribute__((noinline, cold)) bool is_time_for_news(struct rc *rc)
{
	uint64_t now = clock_coarse_ms();

	if (rc->state == RC_UP && now < rc->next_news)
		return false;
	rc->next_news = now + NEWS_MS;
	return true;
}

bool rc_progress(void *state)
{
	struct rc *rc = state;
	struct pollfd fd = {.fd = rc->news_fd, .events = POLLIN};
	unsigned int every;
	bool waiting, heard;
	int n;

	if (!rc->cq)
		return false;
	if (rc->batch_count)
		rc_flush_batch(rc);
	n = (int)rc->got;
	rc->got = 0;
	if (!n && !rc->removed)
		n = ibv_poll_cq(rc->cq, RC_BATCH, rc->wc);
	for (int i = 0; i < n; i++)
		rc_progress_complete(rc, &rc->wc[i]);
	if (n > 0)
		rc_progress_make_space(rc);
	every = rc->state == RC_UP ? NEWS_CALLS_IDLE : NEWS_CALLS_BUSY;
	if (!rc->offload.opener->armed && (++rc->progress_calls & every || !is_time_for_news(rc)))
		return n > 0;
	waiting = poll(&fd, 1, 0) > 0; /* one system call for all sources of events */
	heard = rc_progress_device_news(rc, waiting);
	if (rc->events && waiting)
		heard |= rc_news(rc);
	return n > 0 || heard;
}

bool rc_arm(void *state)
{
	struct rc *rc = state;
	int n;

	if (!rc->cq || rc->removed)
		return true;
	if (rc->got)
		return false;
	verbs_channel_read(rc->path->dev, rc->channel, rc->cq);
	if (ibv_req_notify_cq(rc->cq, 0))
		return false;
	n = ibv_poll_cq(rc->cq, RC_BATCH, rc->wc);
	rc->got = n > 0 ? (unsigned int)n : 0;
	return n <= 0;
}
