/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/stall.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/threads.h"
#include "xfer/conn/conn.h"
#include "xfer/conn/connect.h"

#define LOOK_MS 1000  /* between two looks at a ring */
#define SAY_MS  10000 /* between two log lines about one packet */

void stall_end(struct worker *worker)
{
	threads_end(worker->stall.threads);
	worker->stall.threads = NULL;
	worker->stall.since = 0;
}

/* Returns the connected peer that claims by this owner, or NULL. */
static struct peer *claimer(struct worker *worker, uint32_t owner)
{
	LIST_EACH (node, &worker->peers_list) {
		struct peer *peer = LIST_ENTRY(node, struct peer, in_worker);

		if ((pool_id(peer) & TRANSPORT_OWNER_MASK) == owner && peer->conn.sock >= 0)
			return peer;
	}
	return NULL;
}

static void warn(const struct peer *peer, const char *what)
{
	char text[ADDR_STR_MAX + 32];

	addr_print(&peer->name, text, sizeof(text));
	LOG_WARN(LOG_EP_DATA, "ring: %s (process %d) has claimed a packet and does not send it: %s",
		 text, (int)connect_pid(peer->conn.sock), what);
}

/* Is no thread of the peer in the middle of a send? See base/threads.h. */
static bool is_elsewhere(struct stall *s, const struct peer *peer)
{
	if (!s->threads)
		s->threads = threads_begin(connect_pid(peer->conn.sock));
	return s->threads && threads_elsewhere(s->threads);
}

/* The packet has not come for FI_WEFT_CLAIM_TIMEOUT. */
static void judge(struct worker *worker, uint32_t owner, uint64_t now)
{
	struct peer *peer = claimer(worker, owner);
	struct stall *s = &worker->stall;

	if (peer && !is_elsewhere(s, peer)) {
		if (now >= s->say)
			warn(peer, "messages behind it wait");
		s->say = now >= s->say ? now + SAY_MS : s->say;
		return;
	}
	worker->via[LINK_HOST].transport->skip(worker->via[LINK_HOST].state);
	stall_end(worker);
	if (peer) {
		warn(peer, "disconnected");
		conn_expel(peer);
	} else {
		LOG_WARN(LOG_EP_DATA, "ring: skipped a packet that no connected peer is sending");
	}
}

void stall_watch(struct worker *worker)
{
	const struct transport *t = worker->via[LINK_HOST].transport;
	uint64_t now = clock_coarse_ms();
	struct stall *s = &worker->stall;
	uint32_t owner;

	if (now < s->look || !t || !t->blocked)
		return;
	s->look = now + LOOK_MS;
	if (!t->blocked(worker->via[LINK_HOST].state, &s->mark, &owner)) {
		stall_end(worker);
		return;
	}
	if (!s->since)
		s->since = now;
	else if (now - s->since >= (uint64_t)env_get()->claim_timeout)
		judge(worker, owner, now);
}
