/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/quiesce.h"

#include <sched.h>

#include "base/clock.h"
#include "base/log.h"
#include "xfer/conn/conn.h"

#define SAY_MS 1000 /* between two log lines */

static void note(struct worker *worker, bool last)
{
	for (unsigned int i = 0; i < LINK_KINDS; i++)
		if (worker->via[i].state && worker->via[i].transport->quiesce)
			worker->via[i].transport->quiesce(worker->via[i].state, last);
}

/* Logs the peer that delays us, once a second: it may be stopped in the middle of a copy. */
static void say(struct worker *worker, uint32_t id, uint64_t *next)
{
	struct peer *peer = pool_find(&worker->peer_pool, id);
	uint64_t now = clock_coarse_ms();
	char text[ADDR_STR_MAX + 32] = "somebody unknown";

	if (now < *next)
		return;
	*next = now + SAY_MS;
	if (peer)
		addr_print(&peer->name, text, sizeof(text));
	LOG_WARN(LOG_MR, "close: waiting for %s, which accesses our memory directly", text);
}

/*
 * Waits until the noted direct accesses have ended. Keeps the domain's lock: a peer's copy needs
 * nothing of us.
 */
static void wait_for_peers(struct worker *worker, enum link_kind kind)
{
	const struct transport *t = worker->via[kind].transport;
	void *state = worker->via[kind].state;
	uint64_t next = clock_coarse_ms() + SAY_MS;
	uint32_t id;

	if (!state || !t->quiesce)
		return;
	while (!t->quiesced(state, &id)) {
		say(worker, id, &next);
		/* conn_poll notices the death of a peer and releases its access guards. */
		conn_poll(worker);
		sched_yield();
	}
}

void quiesce_close(struct worker *worker)
{
	note(worker, true);
	for (unsigned int i = 0; i < LINK_KINDS; i++)
		wait_for_peers(worker, i);
}

void xfer_quiesce(struct domain *dom)
{
	if (domain_foreign(dom))
		return;
	LIST_EACH (node, &dom->workers)
		note(LIST_ENTRY(node, struct worker, in_domain), false);
	LIST_EACH (node, &dom->workers)
		for (unsigned int i = 0; i < LINK_KINDS; i++)
			wait_for_peers(LIST_ENTRY(node, struct worker, in_domain), i);
}
