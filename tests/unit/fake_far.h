/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fake link with direct access to the peer's memory (link_local_ops). `there.said` records the
 * calls in order: put@address+bytes, get@address+bytes, take#packet (cancel_posted succeeded),
 * back#packet or left#packet (released with `done` true or false).
 */
#ifndef FAKE_FAR_H
#define FAKE_FAR_H

#include "fake_rma.h"

#define FAR_KEY 5

static struct {
	unsigned char memory[REGION]; /* the peer's */
	/* Result of `reach`; if `crowded`, the next access fails with -FI_EAGAIN. */
	bool reachable, crowded;
	int put_ends, get_ends; /* results of `put` and `get` */
	unsigned int begun;     /* the peer has begun the packets before this number */
	int held;               /* packets cancelled and not released */
	char said[4096];
} there;

static unsigned char buf[REGION]; /* ours */

static void note(const char *what, uint64_t at, size_t len)
{
	size_t used = strlen(there.said);

	if (len == SIZE_MAX)
		snprintf(there.said + used, sizeof(there.said) - used, "%s#%llu ", what,
			 (unsigned long long)at);
	else
		snprintf(there.said + used, sizeof(there.said) - used, "%s@%llu+%zu ", what,
			 (unsigned long long)at, len);
}

/* Copies between `local` and the peer's memory; both lists have the same length in all. */
static void move(const struct iovec *local, size_t local_count, const struct fi_rma_iov *remote,
		 size_t remote_count, bool put)
{
	size_t fragment = 0, skip = 0;

	for (size_t i = 0; i < remote_count; i++)
		for (size_t at = 0; at < remote[i].len; at++, skip++) {
			unsigned char *here, *far = &there.memory[remote[i].addr + at];

			for (; fragment < local_count && skip == local[fragment].iov_len; skip = 0)
				fragment++;
			ck_assert_uint_lt(fragment, local_count);
			here = (unsigned char *)local[fragment].iov_base + skip;
			*(put ? far : here) = *(put ? here : far);
		}
	for (; fragment < local_count && skip == local[fragment].iov_len; skip = 0)
		fragment++;
	ck_assert_uint_eq(fragment, local_count);
}

static int access(const char *what, int ends, const struct iovec *local, size_t local_count,
		  const struct fi_rma_iov *remote, size_t remote_count)
{
	ck_assert_uint_gt(remote_count, 0);
	ck_assert_uint_eq(remote[0].key, FAR_KEY);
	note(what, remote[0].addr, remote[0].len);
	if (there.crowded) {
		there.crowded = false;
		return -FI_EAGAIN;
	}
	if (ends >= 0)
		move(local, local_count, remote, remote_count, *what == 'p');
	return ends;
}

static int far_put(struct link *link, const struct iovec *local, size_t local_count,
		   const struct fi_rma_iov *remote, size_t remote_count)
{
	(void)link;
	return access("put", there.put_ends, local, local_count, remote, remote_count);
}

static int far_get(struct link *link, const struct iovec *local, size_t local_count,
		   const struct fi_rma_iov *remote, size_t remote_count)
{
	(void)link;
	return access("get", there.get_ends, local, local_count, remote, remote_count);
}

static bool far_reach(struct link *link, const struct fi_rma_iov *remote, size_t remote_count,
		      bool write)
{
	(void)link, (void)write;
	ck_assert_uint_gt(remote_count, 0);
	ck_assert_uint_eq(remote[0].key, FAR_KEY);
	return there.reachable;
}

static const void *far_cancel_posted(struct link *link, uint64_t place, size_t *len)
{
	(void)link;
	ck_assert_uint_lt(place, fake.count);
	ck_assert_uint_eq(wire_op(fake.packets[place].head), WIRE_PUT);
	ck_assert_int_eq(there.held, 0);
	if (place < there.begun)
		return NULL;
	there.held++;
	note("take", place, SIZE_MAX);
	*len = fake.packets[place].len;
	return fake.packets[place].payload;
}

static void far_release(struct link *link, uint64_t place, bool done)
{
	(void)link;
	ck_assert_int_eq(there.held, 1);
	there.held--;
	note(done ? "back" : "left", place, SIZE_MAX);
}

static bool far_recall_posted(struct link *link, uint64_t place)
{
	(void)link;
	ck_assert_uint_lt(place, fake.count);
	ck_assert_uint_eq(wire_op(fake.packets[place].head), WIRE_GET);
	return place >= there.begun;
}

static ssize_t far_fetch(struct link *link, const struct iovec *local, size_t local_count,
			 const struct iovec *remote, size_t remote_count, uint64_t key)
{
	return link_no_local.fetch(link, local, local_count, remote, remote_count, key);
}

static const struct link_local_ops far_ops = {
	.fetch = far_fetch,
	.put = far_put,
	.get = far_get,
	.reach = far_reach,
	.cancel_posted = far_cancel_posted,
	.release = far_release,
	.recall_posted = far_recall_posted,
};

static inline void far_setup(void)
{
	rma_setup();
	fake.link.local = &far_ops;
	memset(&there, 0, sizeof(there));
	there.reachable = true;
	for (size_t i = 0; i < REGION; i++) {
		there.memory[i] = (unsigned char)(i * 3);
		buf[i] = (unsigned char)(i * 5 + 1);
	}
}

static inline void far_teardown(void)
{
	ck_assert_int_eq(there.held, 0);
	rma_teardown();
}

static inline void far_post_write(uint64_t addr, size_t len, void *context)
{
	ck_assert_int_eq(
		fi_write(fake.ep, buf + addr, len, NULL, fake.addr, addr, FAR_KEY, context), 0);
}

static inline void far_post_read(uint64_t addr, size_t len, void *context)
{
	ck_assert_int_eq(fi_read(fake.ep, buf + addr, len, NULL, fake.addr, addr, FAR_KEY, context),
			 0);
}

static inline void far_post_add(uint64_t addr, void *context)
{
	ck_assert_int_eq(fi_atomic(fake.ep, buf, 1, NULL, fake.addr, addr, FAR_KEY, FI_UINT64,
				   FI_SUM, context),
			 0);
}

static inline void far_says_done(uint32_t seq)
{
	fake_says(WIRE_HEAD(WIRE_DONE, 0, 0, seq), 0, 0, NULL, 0);
}

static inline void far_expect_none_left(void)
{
	fake_expect_nothing();
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
	ck_assert_uint_eq(fake.peer->rma.awaiting_count, 0);
	ck_assert(list_empty(&fake.worker->awaiting));
}

#endif
