/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes to a region of the peer over two fake devices, of which the first has the region's key. */
#ifndef UNIT_FAKE_REGIONS_H
#define UNIT_FAKE_REGIONS_H

#include "core/mr_table.h"
#include "fake_rails.h"

#define KEY   (MR_KEY_IN_NIC | 11) /* of the region: the first device's rkey below */
#define SHORT ((size_t)8)

static unsigned int operations; /* posted */

static inline void setup_keyed(void)
{
	setup();
	ends[0].l->link.reaches = true;
	verbs_rails_update(r);
	operations = 0;
	memset(memory, 0, LONG);
}

static inline int post_key(uint64_t key, uint64_t at, size_t len, bool now)
{
	const struct iovec ours = {memory, len};
	const struct fi_rma_iov theirs = {.addr = at, .len = len, .key = key};
	const struct link_copy op = {.id = ++operations,
				     .write = true,
				     .now = now,
				     .local = &ours,
				     .local_count = 1,
				     .remote = &theirs,
				     .remote_count = 1};

	int ret = link_made->memory->copy(link_made, &op);

	return ret == LINK_UNDER_WAY ? 0 : ret;
}

static inline int post(size_t len)
{
	return post_key(KEY, 0, len, false);
}

/* The peer answers the last question. */
static inline void tells(uint32_t rkey)
{
	struct verbs_rail_message m = asked;

	ck_assert_uint_eq(m.what, VERBS_RAIL_KEY_ASKED);
	asked.what = 0;
	m.what = VERBS_RAIL_KEY;
	m.rkey = rkey;
	hears_next(&m);
}

/* The peer's end of the broken rail is destroyed. */
static inline void closes(unsigned int rail)
{
	const struct verbs_rail_message m = {
		.what = VERBS_RAIL_CLOSED, .rail = rail, .serial = r->rail[rail].serial};

	ck_assert(r->rail[rail].closing);
	ends[rail].done = ends[rail].requests;
	hears_next(&m);
}

#endif
