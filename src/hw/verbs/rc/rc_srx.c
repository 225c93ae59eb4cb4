/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive contexts: a shared receive queue of the device. The device completes receives in
 * any order, so each has a slot, whose number is in its wr_id.
 */
#include "hw/verbs/rc/rc.h"

#include <errno.h>
#include <stdlib.h>

#define LOG_PROV "verbs"
#include "base/forked.h"
#include "base/log.h"

#define USUAL_SIZE 256

static uint32_t size_of(const struct verbs_dev *dev, size_t asked)
{
	size_t size = asked ? asked : USUAL_SIZE, most = (size_t)dev->attr.max_srq_wr;

	if (size > RULES_RC_SIZE_MAX)
		size = RULES_RC_SIZE_MAX;
	return (uint32_t)(size < most ? size : most);
}

static int rc_srx_make_slots(struct rc_srx *s)
{
	s->work = calloc(s->size, sizeof(*s->work));
	s->free = calloc(s->size, sizeof(*s->free));
	if (!s->work || !s->free)
		return -FI_ENOMEM;
	while (s->free_count < s->size) {
		s->free[s->free_count] = s->free_count;
		s->free_count++;
	}
	return 0;
}

static int make_queue(struct rc_srx *s)
{
	const struct verbs_dev *dev = s->dev;
	struct ibv_srq_init_attr init = {
		.srq_context = &s->note,
		.attr = {.max_wr = s->size,
			 .max_sge = dev->attr.max_srq_sge < RULES_RC_IOV_MAX
					    ? (uint32_t)dev->attr.max_srq_sge
					    : RULES_RC_IOV_MAX}};

	s->srq = dev->lib->create_srq(dev->pd, &init);
	if (s->srq)
		return 0;
	LOG_WARN(
		LOG_EP_CTRL,
		"cannot make a shared receive queue of %u: %s (a smaller fi_rx_attr.size, or ulimit -l)",
		s->size, fi_strerror(errno ? errno : FI_ENOMEM));
	return errno ? -errno : -FI_ENOMEM;
}

int rc_srx_open(void *device, size_t size, void **srx)
{
	const struct verbs_path *path = device;
	struct rc_srx *s;
	int err;

	if (path->dev->attr.max_srq <= 0)
		return -FI_EOPNOTSUPP;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -FI_ENOMEM;
	s->dev = path->dev;
	s->size = size_of(path->dev, size);
	err = rc_srx_make_slots(s);
	if (!err)
		err = make_queue(s);
	if (err)
		rc_srx_close(s);
	else
		*srx = s;
	return err;
}

void rc_srx_close(void *srx)
{
	struct rc_srx *s = srx;

	if (s->srq && s->dev->forked == forked_count())
		s->dev->lib->destroy_srq(s->srq);
	free(s->work);
	free(s->free);
	free(s);
}

int rc_srx_post(struct rc_srx *s, struct ibv_recv_wr *wr, const struct rc_work *work)
{
	struct ibv_recv_wr *bad;
	uint32_t slot;
	int err;

	if (!s->free_count)
		return -FI_EAGAIN;
	slot = s->free[s->free_count - 1];
	s->work[slot] = *work;
	s->work[slot].len = 1;
	wr->wr_id = RC_RECEIVE | slot;
	err = ibv_post_srq_recv(s->srq, wr, &bad);
	if (err)
		return err == ENOMEM ? -FI_EAGAIN : -err;
	s->free_count--;
	return 0;
}

struct rc_work rc_srx_take(struct rc_srx *s, uint64_t wr_id)
{
	uint32_t slot = (uint32_t)wr_id;

	s->work[slot].len = 0;
	s->free[s->free_count++] = slot;
	return s->work[slot];
}

int rc_srx_cancel(void *srx, void *context)
{
	const struct rc_srx *s = srx;

	for (uint32_t i = 0; i < s->size; i++)
		if (s->work[i].len && s->work[i].context == context)
			return -FI_EOPNOTSUPP;
	return -FI_ENOENT;
}
