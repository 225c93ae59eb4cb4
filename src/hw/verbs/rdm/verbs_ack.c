/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits for acknowledgements of software devices. Hardware sends a posted request even if this
 * process dies. With a software device this host's kernel sends, perhaps later in a kernel thread,
 * and never after the process and its queue pairs have ended. So on a software device a packet with
 * a message, or a short write, counts as sent only when the peer's device has acknowledged it.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "hw/verbs/rdm/verbs.h"

#define WAIT_MS   100 /* ms for one acknowledgement: the peer's host may be unreachable */
#define KEPT_MORE 64u /* entries by which `kept` grows */

/* Empty polls before this thread yields the processor, which the kernel's thread may need. */
#define SPINS 1000u

enum found { NOTHING, SOMETHING, FAILURE };

/* Returns a free entry for a completion; NULL: no memory. */
static struct ibv_wc *verbs_ack_place(struct verbs_kept *k)
{
	struct ibv_wc *more;

	if (k->first + k->count < k->size)
		return &k->wc[k->first + k->count];
	if (k->first) {
		memmove(k->wc, &k->wc[k->first], k->count * sizeof(*k->wc));
		k->first = 0;
		return &k->wc[k->count];
	}
	more = realloc(k->wc, (k->size + KEPT_MORE) * sizeof(*more));
	if (!more)
		return NULL;
	k->wc = more;
	k->size += KEPT_MORE;
	return &more[k->count];
}

/* Reads one completion. FAILURE: the link has broken, or memory is out. */
static enum found verbs_ack_read_one(struct verbs_link *l)
{
	struct verbs *v = l->own;
	struct ibv_wc *wc = verbs_ack_place(&v->kept);
	int n = wc ? ibv_poll_cq(v->cq, 1, wc) : -1;
	struct verbs_link *other;
	bool ours;

	if (n <= 0)
		return n ? FAILURE : NOTHING;
	/* A packet that arrived: no event is due. */
	other = pool_find(&v->links, wc->wr_id >> 32);
	if (other && wc->status == IBV_WC_SUCCESS && wc->qp_num == other->qp->qp_num) {
		verbs_sent(other, (uint32_t)wc->wr_id);
		return SOMETHING;
	}
	v->kept.count++;
	if (wc->wr_id >> 32 == pool_id(l) && wc->qp_num != l->qp->qp_num)
		l->direct.seen = (uint32_t)wc->wr_id;
	ours = wc->qp_num == l->qp->qp_num || (l->direct.qp && wc->qp_num == l->direct.qp->qp_num);
	return wc->status != IBV_WC_SUCCESS && ours ? FAILURE : SOMETHING;
}

/* Returns the number of unacknowledged packets or, with `direct`, RDMA requests. */
static uint32_t verbs_ack_missing(const struct verbs_link *l, bool direct)
{
	return direct ? l->direct.posted - l->direct.seen : l->posted - l->arrived;
}

void verbs_ack_wait(struct verbs_link *l, bool direct)
{
	uint64_t until = clock_coarse_ms() + WAIT_MS;
	bool *late = direct ? &l->direct.late : &l->late;
	enum found found = SOMETHING;
	unsigned int idle = 0;

	while (verbs_ack_missing(l, direct) && !l->err && found != FAILURE) {
		found = verbs_ack_read_one(l);
		if (found != NOTHING)
			continue;
		/* After a timeout, waits again only once the peer has acknowledged something. */
		if ((*late && verbs_ack_missing(l, direct) > 1) || clock_coarse_ms() >= until)
			break;
		if (!(++idle % SPINS))
			sched_yield();
	}
	*late = verbs_ack_missing(l, direct);
}

int verbs_ack_kept(struct verbs *v, struct ibv_wc *wc, int most)
{
	struct verbs_kept *k = &v->kept;
	unsigned int n = k->count < (unsigned int)most ? k->count : (unsigned int)most;

	memcpy(wc, &k->wc[k->first], n * sizeof(*wc));
	k->count -= n;
	k->first = k->count ? k->first + n : 0;
	return (int)n;
}

void verbs_ack_drop(struct verbs *v)
{
	free(v->kept.wc);
	v->kept = (struct verbs_kept){.wc = NULL};
}
