/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fake link with direct access to the peer's memory (link_memory_ops). `there.said` records the
 * calls in order: put@address+bytes, get@address+bytes, take#packet (of a write that is
 * performed), back#packet or left#packet (the write is done, or left to the peer).
 */
#ifndef FAKE_FAR_H
#define FAKE_FAR_H

#include "fake_rma.h"

#define FAR_KEY 5

static struct {
	unsigned char memory[REGION]; /* the peer's */
	/* What `look` of a copy finds; if `crowded`, the next access fails with -FI_EAGAIN. */
	bool reachable, crowded;
	int put_ends, get_ends; /* results of `put` and `get` */
	unsigned int begun;     /* the peer has begun the packets before this number */
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

static int far_look(const struct link_copy *c)
{
	ck_assert_uint_gt(c->remote_count, 0);
	ck_assert_uint_eq(c->remote[0].key, FAR_KEY);
	return there.reachable ? LINK_DONE : -FI_EAGAIN;
}

static int far_copy(struct link *link, const struct link_copy *c)
{
	(void)link;
	if (c->look)
		return far_look(c);
	if (c->message)
		return -FI_ENOSYS;
	return access(c->write ? "put" : "get", c->write ? there.put_ends : there.get_ends,
		      c->local, c->local_count, c->remote, c->remote_count);
}

/* The peer has not begun with the packet: takes it. NULL: it has. */
static const struct fake_packet *far_take(uint64_t place, unsigned int op)
{
	ck_assert_uint_lt(place, fake.count);
	ck_assert_uint_eq(wire_op(fake.packets[place].head), op);
	return place < there.begun ? NULL : &fake.packets[place];
}

static int far_write(uint64_t place, struct link_copy c)
{
	const struct fake_packet *p = far_take(place, WIRE_PUT);
	struct iovec data;
	size_t want = 0;
	int ret;

	if (!p)
		return -FI_EAGAIN;
	note("take", place, SIZE_MAX);
	for (size_t i = 0; i < c.remote_count; i++)
		want += c.remote[i].len;
	data = (struct iovec){(unsigned char *)(uintptr_t)p->payload + p->len - want, want};
	c.local = &data;
	c.local_count = want ? 1 : 0;
	ret = far_copy(NULL, &c);
	note(ret >= 0 || ret == -FI_EFAULT ? "back" : "left", place, SIZE_MAX);
	return ret;
}

static int far_perform(struct link *link, uint64_t place, const struct link_copy *c)
{
	int ret;

	(void)link;
	if (c->write)
		return far_write(place, *c);
	ret = c->local ? far_copy(NULL, c) : LINK_DONE;
	return (ret >= 0 || ret == -FI_EFAULT) && far_take(place, WIRE_GET) ? ret : -FI_EAGAIN;
}

static void far_abort(struct link *link)
{
	(void)link;
}

static const struct link_memory_ops far_ops = {
	.reg = link_registers_nothing,
	.dereg = link_deregisters_nothing,
	.copy = far_copy,
	.abort = far_abort,
	.perform = far_perform,
};

static inline void far_setup(void)
{
	rma_setup();
	fake.link.memory = &far_ops;
	fake.link.local = true;
	memset(&there, 0, sizeof(there));
	there.reachable = true;
	for (size_t i = 0; i < REGION; i++) {
		there.memory[i] = (unsigned char)(i * 3);
		buf[i] = (unsigned char)(i * 5 + 1);
	}
}

static inline void far_teardown(void)
{
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
