/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/shm/shm_bounce.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>

#include "base/iov.h"

/* Returns the bits of `units` units, at least one. */
static uint64_t bits(uint32_t first, uint32_t units)
{
	return UINT64_MAX >> (RING_UNITS - units) << first;
}

static bool is_free(uint64_t used, uint32_t first, uint32_t units)
{
	return units - 1 < RING_UNITS - first && !(used & bits(first, units));
}

/* Returns the first of `units` consecutive free units; RING_UNITS: there are none. */
static uint32_t find(uint64_t used, uint32_t units)
{
	for (uint32_t first = 0; first < RING_UNITS; first++)
		if (is_free(used, first, units))
			return first;
	return RING_UNITS;
}

/* A receiver of the earlier message finds the new use: the fence precedes the first new byte. */
static void begin_use(struct ring_page *page, const struct shm_bounced *s)
{
	for (uint32_t i = s->first; i < s->first + s->units; i++)
		__atomic_store_n(&page->uses[i], s->use, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* orders non-temporal stores, too */
}

/*
 * Reserves units for `len` bytes, or returns NULL. Prefers those of this peer's last message, which
 * may be in one of the peer's caches.
 */
static struct shm_bounced *reserve(struct shm_bounce *bounce, struct shm_link *link, size_t len)
{
	uint32_t units = (uint32_t)((len + SHM_BOUNCE_UNIT - 1) / SHM_BOUNCE_UNIT);
	uint32_t first = link->bounce_at;
	struct shm_bounced *s;

	if (first % units || !is_free(bounce->used, first, units)) /* align: no useless gaps */
		first = find(bounce->used, units);
	if (first == RING_UNITS)
		return NULL;
	link->bounce_at = first;
	s = &bounce->bounced[first];
	bounce->used |= bits(first, units);
	*s = (struct shm_bounced){
		.bounce = bounce, .first = first, .units = units, .use = ++bounce->use};
	return s;
}

static struct shm_bounce *bounce_of(struct shm *shm)
{
	if (!shm->bounce)
		shm->bounce = calloc(1, sizeof(*shm->bounce));
	return shm->bounce;
}

/* Returns the last message if it is the wanted one, in the same batch; else NULL. */
static struct shm_bounced *put_before(const struct shm_bounce *bounce,
				      const struct shm_bounced *want)
{
	struct shm_bounced *s = bounce->last;

	return s && s->takers && want->batch && s->batch == want->batch &&
			       s->memory == want->memory && s->len == want->len
		       ? s
		       : NULL;
}

static struct shm_bounced *put(struct shm_link *link, const struct iovec *iov, size_t count,
			       const struct shm_bounced *want)
{
	struct ring *ring = &link->own->ring;
	struct shm_bounce *bounce = link->own->bounce;
	struct shm_bounced *s = reserve(bounce, link, want->len);
	unsigned char *at;

	if (!s)
		return NULL;
	begin_use(ring->page, s);
	at = ring->bounce + (size_t)s->first * SHM_BOUNCE_UNIT;
	for (size_t i = 0; i < count; i++) {
		shm_copy(&link->bounce_copier, at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	s->batch = want->batch;
	s->memory = want->memory;
	s->len = want->len;
	bounce->last = s;
	return s;
}

int shm_bounce_put(struct shm_link *l, const struct iovec *iov, size_t count, const void *batch,
		   struct fi_rma_iov *at, void **registered)
{
	struct shm_bounced want = {.batch = count == 1 ? batch : NULL, .memory = iov[0].iov_base},
			   *s;
	uint64_t place;

	for (size_t i = 0; i < count; i++)
		want.len += iov[i].iov_len;
	if (!want.len || want.len > SHM_BOUNCE_MAX || !bounce_of(l->own))
		return -FI_ENOSYS;
	s = put_before(l->own->bounce, &want);
	if (!s)
		s = put(l, iov, count, &want);
	if (!s)
		return -FI_ENOSYS;
	s->takers++;
	place = SHM_BOUNCE_BASE | (uint64_t)s->use << SHM_BOUNCE_USE_SHIFT |
		s->first * (uint64_t)SHM_BOUNCE_UNIT;
	for (size_t i = 0; i < count; i++) {
		at[i] = (struct fi_rma_iov){.addr = place, .len = iov[i].iov_len};
		place += iov[i].iov_len;
	}
	*registered = s;
	return 0;
}

void shm_bounce_end(struct shm_bounced *s)
{
	if (--s->takers == 0)
		s->bounce->used &= ~bits(s->first, s->units);
}

static uint64_t offset_of(const struct iovec *remote)
{
	return (uintptr_t)remote->iov_base & ((UINT64_C(1) << SHM_BOUNCE_USE_SHIFT) - 1);
}

static bool within(const struct iovec *remote)
{
	uint64_t at = offset_of(remote);

	return (uintptr_t)remote->iov_base >= SHM_BOUNCE_BASE && at <= RING_BOUNCE &&
	       remote->iov_len <= RING_BOUNCE - at;
}

/* Do the units that were read still have the use of the address? */
static bool still_there(const struct ring *r, const struct iovec *remote)
{
	uint32_t use = (uint32_t)((uintptr_t)remote->iov_base >> SHM_BOUNCE_USE_SHIFT);
	uint64_t end = offset_of(remote) + remote->iov_len;

	for (uint64_t at = offset_of(remote) / SHM_BOUNCE_UNIT; at * SHM_BOUNCE_UNIT < end; at++)
		if (__atomic_load_n(&r->page->uses[at], __ATOMIC_RELAXED) != use)
			return false;
	return true;
}

ssize_t shm_bounce_take(const struct ring *r, const struct iovec *local, size_t local_count,
			const struct iovec *remote, size_t remote_count)
{
	size_t moved = 0;

	for (size_t i = 0; i < remote_count; i++) {
		size_t got;

		if (!within(&remote[i]))
			return -FI_EFAULT;
		got = iov_scatter(local, local_count, moved, r->bounce + offset_of(&remote[i]),
				  remote[i].iov_len);
		__atomic_thread_fence(__ATOMIC_ACQUIRE); /* pairs with begin_use */
		if (!still_there(r, &remote[i]))
			return -FI_ECONNRESET;
		moved += got;
		if (got != remote[i].iov_len)
			break;
	}
	return (ssize_t)moved;
}
