/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/group/group.h"

#include <stdlib.h>

#include "base/env.h"
#include "base/log.h"
#include "xfer/worker.h"

/* Index of kept_count: 0 for `kept`, 1 for `leaves`. */
static unsigned int sort_of(const struct wire_group *msg)
{
	return msg->kind == WIRE_GROUP_LEAVE || msg->kind == WIRE_GROUP_ABORT;
}

static struct kept_message *of_peer(struct list *node)
{
	return LIST_ENTRY(node, struct kept_message, of_peer);
}

void kept_drop(struct coll *c, struct kept_message *w)
{
	w->from->kept_count--;
	c->kept_count[sort_of(&w->msg)]--;
	list_remove(&w->link);
	list_remove(&w->of_peer);
	free(w);
}

/* Messages that the worker keeps of all peers together. */
static size_t kept_max(void)
{
	size_t max = env_get()->unexpected_max / KEPT_BYTES;

	return max < KEPT_LEAST ? KEPT_LEAST : max > KEPT_MOST ? KEPT_MOST : max;
}

/* Counts and logs a dropped message of the peer, before it is dropped. */
static void kept_refuse(struct coll *c, const struct peer *from, unsigned int sort)
{
	c->worker->joins_refused++;
	LOG_PEER(LOG_EP_CTRL,
		 "%s from peer %s dropped: %zu joins for groups unknown here are queued already "
		 "(at most %zu, by FI_WEFT_UNEXPECTED_MAX=%zu, %u of this peer)",
		 sort ? "end of a group" : "join", contact_text(&from->conn),
		 c->kept_count[0] + c->kept_count[1], kept_max(), env_get()->unexpected_max,
		 from->kept_count);
}

/* Returns the peer with the most messages; of several the one that came last. */
static struct peer *kept_fullest(const struct coll *c)
{
	struct peer *most = NULL;

	LIST_EACH_OF (struct peer, peer, &c->worker->conn.peers_list, conn.in_station) {
		if (!most || peer->kept_count >= most->kept_count)
			most = peer;
	}
	return most;
}

/* May one more message of the peer be kept? The peer with the most may lose one for it. */
static bool kept_make_space(struct coll *c, const struct peer *from)
{
	size_t max = kept_max(), share = max / KEPT_SHARES + (max % KEPT_SHARES != 0);
	struct kept_message *oldest;
	struct peer *most;

	if (from->kept_count >= share)
		return false;
	if (c->kept_count[0] + c->kept_count[1] < max)
		return true;
	most = kept_fullest(c);
	if (most->kept_count <= from->kept_count)
		return false;
	oldest = of_peer(most->kept_controls.next);
	kept_refuse(c, most, sort_of(&oldest->msg));
	kept_drop(c, oldest);
	return true;
}

/*
 * FAIL: what the peer said about this and earlier attempts is void. Returns false if it has said
 * FAIL for a later attempt.
 */
static bool kept_supersede(struct coll *c, struct peer *from, const struct wire_group *fail)
{
	LIST_EACH_SAFE (node, &from->kept_controls) {
		struct kept_message *w = of_peer(node);

		if (w->msg.key != fail->key || sort_of(&w->msg))
			continue;
		if (w->msg.attempt <= fail->attempt)
			kept_drop(c, w);
		else if (w->msg.kind == WIRE_GROUP_FAIL)
			return false;
	}
	return true;
}

void kept_add(struct coll *c, struct peer *from, const struct wire_group *msg)
{
	unsigned int sort = sort_of(msg);
	struct kept_message *w;

	if (msg->kind == WIRE_GROUP_FAIL && !kept_supersede(c, from, msg))
		return;
	if (!kept_make_space(c, from)) {
		kept_refuse(c, from, sort);
		return;
	}
	w = malloc(sizeof(*w));
	if (!w) {
		LOG_PEER(LOG_EP_CTRL,
			 "out of memory: an early message of %s about a join is dropped",
			 contact_text(&from->conn));
		return;
	}
	*w = (struct kept_message){.from = from, .msg = *msg};
	list_push(sort ? &c->leaves : &c->kept, &w->link);
	list_push(&from->kept_controls, &w->of_peer);
	c->kept_count[sort]++;
	from->kept_count++;
}

void kept_drop_of(struct coll *c, struct peer *peer)
{
	LIST_EACH_SAFE (node, &peer->kept_controls)
		kept_drop(c, of_peer(node));
}

void kept_close(struct coll *c)
{
	LIST_EACH (node, &c->worker->conn.peers_list)
		kept_drop_of(c, LIST_ENTRY(node, struct peer, conn.in_station));
}
