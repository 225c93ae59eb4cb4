/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/settle.h"

#include <sched.h>

#include "base/clock.h"
#include "base/log.h"
#include "xfer/conn.h"

#define SAY_MS 1000

static void note(struct port *port, bool last)
{
	for (unsigned int i = 0; i < PORT_TRANSPORTS; i++)
		if (port->hw[i] && port_transports[i]->settle)
			port_transports[i]->settle(port->hw[i], last);
}

/* A peer that was stopped in the middle keeps us here: say so now and then. */
static void say(struct port *port, uint32_t id, uint64_t *next)
{
	struct peer *peer = pool_find(&port->peer_pool, id);
	uint64_t now = clock_coarse_ms();
	char text[ADDR_STR_MAX + 32] = "somebody unknown";

	if (now < *next)
		return;
	*next = now + SAY_MS;
	if (peer)
		addr_print(&peer->name, text, sizeof(text));
	LOG_WARN(LOG_MR, "close: waiting for %s, which accesses our memory directly", text);
}

/* The locked domain stays locked: a peer's copy needs nothing of us. */
static void wait_for_peers(struct port *port, unsigned int hw)
{
	uint64_t next = clock_coarse_ms() + SAY_MS;
	uint32_t id;

	if (!port->hw[hw] || !port_transports[hw]->settle)
		return;
	while (!port_transports[hw]->settled(port->hw[hw], &id)) {
		say(port, id, &next);
		conn_poll(port); /* what a peer that died had begun is ended when that is noticed */
		sched_yield();
	}
}

void settle_close(struct port *port)
{
	note(port, true);
	for (unsigned int i = 0; i < PORT_TRANSPORTS; i++)
		wait_for_peers(port, i);
}

void xfer_settle(struct domain *dom)
{
	if (domain_foreign(dom))
		return;
	LIST_EACH (node, &dom->ports)
		note(LIST_ENTRY(node, struct port, in_domain), false);
	LIST_EACH (node, &dom->ports)
		for (unsigned int i = 0; i < PORT_TRANSPORTS; i++)
			wait_for_peers(LIST_ENTRY(node, struct port, in_domain), i);
}
