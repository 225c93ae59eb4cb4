/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/shm/shm_stage.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>

#include "base/iov.h"

/* What lies there is read later. */
#define STAGE_PERCENT 67u

static uint64_t bits(uint32_t first, uint32_t units)
{
	return ((UINT64_C(1) << units) - 1) << first;
}

/* The first of so many free units in a row, or SHM_STAGE_UNITS. */
static uint32_t find(uint64_t used, uint32_t units)
{
	for (uint32_t first = 0; first + units <= SHM_STAGE_UNITS; first++)
		if (!(used & bits(first, units)))
			return first;
	return SHM_STAGE_UNITS;
}

static struct shm_staged *reserve(struct shm_stage *stage, size_t len)
{
	uint32_t units = (uint32_t)((len + SHM_STAGE_UNIT - 1) / SHM_STAGE_UNIT);
	uint32_t first = find(stage->used, units);
	struct shm_staged *s = &stage->staged[first];

	if (first == SHM_STAGE_UNITS)
		return NULL;
	stage->used |= bits(first, units);
	*s = (struct shm_staged){.stage = stage, .first = first, .units = units};
	return s;
}

static struct shm_stage *stage_of(struct shm *shm)
{
	if (!shm->stage) {
		shm->stage = calloc(1, sizeof(*shm->stage));
		if (shm->stage)
			shm->stage->copier.percent = STAGE_PERCENT;
	}
	return shm->stage;
}

/* Another receiver of what was put there last. */
static struct shm_staged *put_before(const struct shm_stage *stage, const struct shm_staged *want)
{
	struct shm_staged *s = stage->last;

	return s && s->takers && want->batch && s->batch == want->batch &&
			       s->memory == want->memory && s->len == want->len
		       ? s
		       : NULL;
}

static struct shm_staged *put(struct shm *shm, const struct iovec *iov, size_t count,
			      const struct shm_staged *want)
{
	struct shm_stage *stage = shm->stage;
	struct shm_staged *s = reserve(stage, want->len);
	unsigned char *at;

	if (!s)
		return NULL;
	at = shm->ring.stage + (size_t)s->first * SHM_STAGE_UNIT;
	for (size_t i = 0; i < count; i++) {
		shm_copy(&stage->copier, at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	s->batch = want->batch;
	s->memory = want->memory;
	s->len = want->len;
	stage->last = s;
	return s;
}

int shm_expose(struct link *link, const struct iovec *iov, size_t count, const void *batch,
	       struct fi_rma_iov *at, void **exposed)
{
	struct shm *shm = ((struct shm_link *)link)->own;
	struct shm_staged want = {.batch = count == 1 ? batch : NULL, .memory = iov[0].iov_base},
			  *s;
	uint64_t place;

	for (size_t i = 0; i < count; i++)
		want.len += iov[i].iov_len;
	if (!want.len || want.len > SHM_STAGE_MAX || !stage_of(shm))
		return -FI_ENOSYS;
	s = put_before(shm->stage, &want);
	if (!s)
		s = put(shm, iov, count, &want);
	if (!s)
		return -FI_ENOSYS;
	s->takers++;
	place = SHM_STAGE_BASE + s->first * (uint64_t)SHM_STAGE_UNIT;
	for (size_t i = 0; i < count; i++) {
		at[i] = (struct fi_rma_iov){.addr = place, .len = iov[i].iov_len};
		place += iov[i].iov_len;
	}
	*exposed = s;
	return 0;
}

void shm_conceal(void *exposed)
{
	struct shm_staged *s = exposed;

	if (--s->takers == 0)
		s->stage->used &= ~bits(s->first, s->units);
}

static bool within(const struct iovec *remote)
{
	uint64_t at = (uintptr_t)remote->iov_base - SHM_STAGE_BASE;

	return at <= RING_STAGE && remote->iov_len <= RING_STAGE - at;
}

ssize_t shm_stage_take(const struct ring *r, const struct iovec *local, size_t local_count,
		       const struct iovec *remote, size_t remote_count)
{
	size_t moved = 0;

	for (size_t i = 0; i < remote_count; i++) {
		size_t got;

		if (!within(&remote[i]))
			return -FI_EFAULT;
		got = iov_scatter(local, local_count, moved,
				  r->stage + ((uintptr_t)remote[i].iov_base - SHM_STAGE_BASE),
				  remote[i].iov_len);
		moved += got;
		if (got != remote[i].iov_len)
			break;
	}
	return (ssize_t)moved;
}
