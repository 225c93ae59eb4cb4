/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collective groups over the fake link. Members are the test's endpoint, the fake peer, and an
 * address that nobody listens at. Helpers deliver the peer's control messages and check those sent
 * to it.
 */
#ifndef FAKE_GROUP_H
#define FAKE_GROUP_H

#define FAKE_CAPS (FI_MSG | FI_TAGGED | FI_COLLECTIVE)
#include "fake_link.h"

#include <poll.h>
#include <rdma/fi_collective.h>

#include "base/log.h"
#include "coll/coll.h"
#include "coll/op.h"

static struct {
	fi_addr_t self, nobody;
	struct coll *coll;
} our;

static inline void group_setup(void)
{
	char name[128];
	size_t len = sizeof(name);

	fake_open_connected();
	ck_assert_int_eq(fi_getname(&fake.ep->fid, name, &len), 0);
	ck_assert_int_eq(fi_av_insert(fake.av, name, 1, &our.self, 0, NULL), 1);
	ck_assert_int_eq(fi_av_insert(fake.av, "fi_shm://nobody", 1, &our.nobody, 0, NULL), 1);
	our.coll = coll_of(fake.worker);
}

static inline struct fid_av_set *group_set(const fi_addr_t *members, size_t count)
{
	struct fi_av_set_attr attr = {
		.count = count, .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL};
	struct fid_av_set *set;

	ck_assert_int_eq(fi_av_set(fake.av, &attr, &set, NULL), 0);
	for (size_t i = 0; i < count; i++)
		ck_assert_int_eq(fi_av_set_insert(set, members[i]), 0);
	return set;
}

/*
 * Joins with control messages between the members, or (`managed`) without: the application does it.
 */
static inline struct fid_mc *group_join(struct fid_av_set *set, bool managed)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	struct fid_mc *mc;

	if (!managed)
		ck_assert_int_eq(fi_av_set_addr(set, &addr), 0);
	ck_assert_int_eq(fi_join_collective(fake.ep, addr, set, 0, &mc, NULL), 0);
	return mc;
}

/*
 * Checks that the join has completed without an error, or (`stands` false) that no event tells of
 * it.
 */
static inline void group_expect_stands(const struct fid_mc *mc, bool stands)
{
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t ret = fi_eq_read(fake.eq, &event, &entry, sizeof(entry), 0);

	ck_assert_int_eq(ret, stands ? (ssize_t)sizeof(entry) : -FI_EAGAIN);
	if (stands)
		ck_assert(event == FI_JOIN_COMPLETE && entry.fid == &mc->fid);
}

/* Checks that the packet sent `back` before the last is a control message of `kind`. Returns it. */
static inline struct wire_group group_said(enum wire_group_kind kind, unsigned int back)
{
	const struct fake_packet *p = fake_last(back);
	struct wire_group word;

	ck_assert_uint_eq(wire_op(p->head), WIRE_GROUP);
	ck_assert_uint_eq(p->len, sizeof(word));
	memcpy(&word, p->payload, sizeof(word));
	ck_assert_uint_eq(word.kind, kind);
	return word;
}

static inline void group_says(struct wire_group word)
{
	fake_says(WIRE_HEAD(WIRE_GROUP, 0, 0, 0), 0, 0, &word, sizeof(word));
	worker_progress(fake.worker);
}

/* Returns the tag of member `rank`'s message in collective `seq`, a broadcast of one uint64. */
static inline uint64_t group_tag(uint64_t seq, uint32_t root, uint32_t rank)
{
	struct op_args a = {
		.kind = FI_BROADCAST, .type = FI_UINT64, .op = FI_NOOP, .count = 1, .root = root};

	return WIRE_GROUP_TAG(seq, op_what(&a), rank);
}

static inline void group_sends(uint64_t id, uint64_t tag, const void *buf, size_t len)
{
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED | WIRE_DATA, WIRE_RX_GROUP, 0), tag, id, buf,
		  len);
	worker_progress(fake.worker);
}

#endif
