/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/group/group.h"

#include "base/log.h"
#include "xfer/worker.h"

#define TEXT_MAX (ADDR_STR_MAX + 32)

static bool is_child(const struct group *g, uint32_t rank)
{
	uint32_t step = rank - g->rank;

	return step && !(step & (step - 1)) && g->join.children & step;
}

static bool is_parent(const struct group *g, uint32_t rank)
{
	return g->rank && rank == join_parent(g->rank);
}

bool member_may(struct group *g, const struct peer *from, const struct wire_group *msg)
{
	switch (msg->kind) {
	case WIRE_GROUP_UP:
		return is_child(g, msg->rank) && group_has(g, msg->rank, from);
	case WIRE_GROUP_DOWN:
		return is_parent(g, msg->rank) && group_has(g, msg->rank, from);
	case WIRE_GROUP_PROBE:
		return (is_child(g, msg->rank) || is_parent(g, msg->rank)) &&
		       group_has(g, msg->rank, from);
	case WIRE_GROUP_LEAVE:
		return group_has(g, msg->rank, from);
	case WIRE_GROUP_HERE: /* names the receiver's rank */
		return msg->rank == g->rank && group_rank(g, from) < g->size;
	default:
		/* The sender may not know its rank in this group: FAIL, ASK, ABORT. */
		return group_rank(g, from) < g->size;
	}
}

static const char *member_kind_of(const struct wire_group *msg)
{
	static const char *const names[] = {"0",   "UP",    "DOWN",  "FAIL", "PROBE",
					    "ASK", "ABORT", "LEAVE", "HERE"};

	return msg->kind < sizeof(names) / sizeof(names[0]) ? names[msg->kind] : "unknown";
}

void member_refuse(struct coll *c, const struct peer *from, const struct wire_group *msg)
{
	char text[TEXT_MAX];

	c->worker->nonmember_refused++;
	addr_print(&from->conn.name, text, sizeof(text));
	LOG_PEER(LOG_EP_CTRL,
		 "%s about a group dropped: its sender %s is not the member that may send it (rank "
		 "%u); %llu such messages so far",
		 member_kind_of(msg), text, msg->rank,
		 (unsigned long long)c->worker->nonmember_refused);
}

void member_refuse_message(struct coll *c, const struct peer *from, uint64_t tag)
{
	char text[TEXT_MAX] = "(disconnected)";

	c->worker->nonmember_refused++;
	if (from)
		addr_print(&from->conn.name, text, sizeof(text));
	LOG_PEER(LOG_EP_CTRL,
		 "message to a group dropped: its sender %s is not the member of rank %u that it "
		 "names; %llu such messages so far",
		 text, (uint32_t)(tag & WIRE_GROUP_RANK_MASK),
		 (unsigned long long)c->worker->nonmember_refused);
}
