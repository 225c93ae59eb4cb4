/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes before the end of an endpoint: waiting for its peers. */
#include <time.h>

#include "base/clock.h"
#include "api/ep.h"
#include "link/engine.h"

#define LAST_MS     1000   /* ms that a close waits at most for peers to take their answers */
#define LAST_NAP_NS 100000 /* ns between two looks at that */

int ep_quiesce(struct ep *ep)
{
	int err;

	domain_lock(ep->dom);
	err = ep->worker ? worker_quiesce(ep->worker) : 0;
	domain_unlock(ep->dom);
	return err;
}

/* Nothing is locked while peers are waited for: they may be endpoints of this domain. */
void ep_serve_last(struct ep *ep)
{
	const struct timespec nap = {.tv_nsec = LAST_NAP_NS};
	uint64_t end = clock_coarse_ms() + LAST_MS;
	bool done;

	for (;;) {
		domain_lock(ep->dom);
		done = !ep->worker || worker_serve_last(ep->worker);
		domain_unlock(ep->dom);
		if (done || clock_coarse_ms() >= end)
			return;
		nanosleep(&nap, NULL);
	}
}
