/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A collective group of the endpoint and its peers, one at a time, and what peers say about it: the right messages, with
 * bytes changed. Members join it, or the application manages them.
 */
#ifndef FUZZ_GROUPS_H
#define FUZZ_GROUPS_H

#include <rdma/fi_collective.h>

#include "world.h"

#define group_member group_member_here /* <unistd.h> has another one */
#include "coll/group/group.h"
#undef group_member

#define MEMBERS (PEERS + 1)

static struct {
	struct fid_mc *mc; /* NULL: there is no group */
	bool joined;
} club;

/* The endpoint is the first member, or the second one. */
static inline void club_join(bool second, bool managed)
{
	struct fi_av_set_attr attr = {
		.count = MEMBERS, .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL};
	fi_addr_t rank[MEMBERS] = {world.self, world.addr[0], world.addr[1]};
	fi_addr_t whole = FI_ADDR_NOTAVAIL;
	struct fid_av_set *set;

	if (second) {
		rank[0] = world.addr[0];
		rank[1] = world.self;
	}
	MUST(!fi_av_set(world.av, &attr, &set, NULL));
	for (unsigned int i = 0; i < MEMBERS; i++)
		MUST(!fi_av_set_insert(set, rank[i]));
	if (!managed)
		MUST(!fi_av_set_addr(set, &whole));
	if (fi_join_collective(world.ep, whole, set, 0, &club.mc, NULL))
		club.mc = NULL;
	MUST(!fi_close(&set->fid));
}

static inline void club_leave(void)
{
	CLOSE(club.mc);
	club.joined = false;
}

/* Looks whether the join has ended. */
static inline void club_look(void)
{
	struct fi_eq_err_entry err = {0};
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t ret;

	while ((ret = fi_eq_read(world.eq, &event, &entry, sizeof(entry), 0)) != -FI_EAGAIN) {
		if (ret == -FI_EAVAIL)
			MUST(fi_eq_readerr(world.eq, &err, 0) > 0 && err.err > 0);
		else
			MUST(ret == sizeof(entry) && event == FI_JOIN_COMPLETE);
		if (ret > 0 && club.mc && entry.fid == &club.mc->fid)
			club.joined = true;
	}
}

/* Begins a collective. */
static inline void club_call(struct input *in)
{
	static const size_t counts[] = {1, 8, 600, 20000};
	size_t count = CHOOSE(in, counts);
	struct slot *s = slot_new(SEND, count * 8 * MEMBERS);
	fi_addr_t group = fi_mc_addr(club.mc), root = take8(in) % 2 ? world.addr[0] : world.self;
	ssize_t ret;

	if (!s)
		return;
	s->result = malloc(count * 8 * MEMBERS);
	MUST(s->result);
	switch (take8(in) % 6) {
	case 0:
		ret = fi_barrier(world.ep, group, s);
		break;
	case 1:
		ret = fi_broadcast(world.ep, s->buf, count, NULL, group, root, FI_UINT64, 0, s);
		break;
	case 2:
		ret = fi_allgather(world.ep, s->buf, count, NULL, s->result, NULL, group, FI_UINT64,
				   0, s);
		break;
	case 3:
		ret = fi_alltoall(world.ep, s->buf, count, NULL, s->result, NULL, group, FI_UINT64,
				  0, s);
		break;
	case 4:
		ret = fi_reduce(world.ep, s->buf, count, NULL, s->result, NULL, group, root,
				FI_UINT64, FI_SUM, 0, s);
		break;
	default:
		ret = fi_allreduce(world.ep, s->buf, count, NULL, s->result, NULL, group, FI_UINT64,
				   FI_SUM, 0, s);
	}
	slot_posted(s, ret);
}

static inline void club_step(struct input *in)
{
	uint8_t what = take8(in);

	club_look();
	if (!club.mc)
		club_join(what & 1, what & 2);
	else if (what >= 192)
		club_leave();
	else if (club.joined)
		club_call(in);
}

/* ---- What peers say ---- */

/* The endpoint's view of the group, or NULL. */
static inline const struct group *club_group(void)
{
	return club.mc ? (const struct group *)club.mc : NULL;
}

/* A control message of that rank, as one of its kind should be, but for one byte that the input may change. */
static inline struct wire_group club_message(struct input *in)
{
	const struct group *g = club_group();
	struct wire_group m = {.kind = take8(in) % (WIRE_GROUP_HERE + 2),
			       .rank = take8(in) % (MEMBERS + 1),
			       .size = MEMBERS,
			       .attempt = 1,
			       .cpus = 4,
			       .shares = 1};
	uint8_t change = take8(in);

	if (g) {
		m.attempt = g->join.attempt;
		m.key = g->join.key;
		m.id = g->id ? g->id : m.kind == WIRE_GROUP_DOWN ? 5 : 0;
	}
	m.error = m.kind == WIRE_GROUP_FAIL || m.kind == WIRE_GROUP_ABORT ? FI_ECONNABORTED : 0;
	if (change & 64)
		((uint8_t *)&m)[change % 64 % sizeof(m)] = take8(in);
	return m;
}

/* The tag of a message of the collective that the endpoint is at, from one of its members: `ours` is one of the endpoint's own. */
static inline uint64_t club_tag(struct input *in, uint64_t ours)
{
	uint8_t how = take8(in);

	ours = (ours & ~WIRE_GROUP_RANK_MASK) | how % (MEMBERS + 1);
	return how & 128 ? ours ^ UINT64_C(1) << take8(in) % 64 : ours;
}

static inline uint64_t club_number(void)
{
	return club_group() ? club_group()->id : 1;
}

/* Time passes for those who wait for members. */
static inline void club_wait(void)
{
	struct coll *coll = world.worker->coll;

	if (coll)
		coll->wake_at = 1;
}

#endif
