/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles a bare queue pair whose device reports an error or is removed. */
#include <sched.h>

#define LOG_PROV "verbs"
#include "base/clock.h"
#include "base/log.h"
#include "hw/verbs/rc/rc.h"
#include "hw/verbs/rc/rc_srx.h"
#include "hw/verbs/dev/verbs_mem.h"

/* How long rc_collect waits for the next completion, and in all. */
#define QUIET_US  2000
#define RETURN_US 10000

static bool rc_removed_is_idle(const struct rc *rc)
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
	rc_collect(rc, rc_removed_is_idle, rc_complete);
	rc_give_up(rc);
}

static bool rc_removed_is_broken(const struct rc *rc)
{
	return verbs_note_read(&rc->note.broken) ||
	       (rc->srx && verbs_note_read(&rc->srx->note.broken));
}

bool rc_device_news(struct rc *rc, bool waiting)
{
	verbs_cache_sweep(rc->path->dev);
	if (waiting)
		verbs_news_read(rc->path->dev);
	if (verbs_dev_removed(rc->path->dev)) {
		bool is_new = !rc->removed;

		rc_removed(rc);
		return is_new;
	}
	if (rc->state == RC_OVER || !rc_removed_is_broken(rc))
		return false;
	rc_end(rc, FI_EIO);
	return true;
}
