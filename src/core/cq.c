/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening, closing and filling completion queues; reading them is cq_read.c. fi_cq(3). */
#include "core/cq.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fid.h"
#include "base/log.h"

#define CQ_SIZE_DEFAULT 1024u
#define CQ_SIZE_MAX     (1u << 20) /* limit of attr->size; the ring itself may grow beyond */

/* Doubles the ring. false: out of memory, nothing changed. */
static bool cq_grow(struct cq *cq)
{
	uint32_t old = cq->mask + 1, count = cq->tail - cq->head;
	struct cq_slot *ring;

	if (old > UINT32_MAX / 4)
		return false;
	ring = malloc(2 * (size_t)old * sizeof(*ring));
	if (!ring)
		return false;
	for (uint32_t i = 0; i < count; i++)
		ring[i] = cq->ring[(cq->head + i) & cq->mask];
	free(cq->ring);
	cq->ring = ring;
	cq->mask = 2 * old - 1;
	cq->head = 0;
	cq->tail = count;
	cq->limit = cq->mask;
	return true;
}

void cq_overrun(struct cq *cq)
{
	if (cq->is_overrun)
		return;
	LOG_WARN(LOG_CQ,
		 "out of memory: queue overrun, completions after the %u unread ones are lost",
		 cq->tail - cq->head);
	cq->is_overrun = true;
	cq->ring[cq->tail++ & cq->mask] = (struct cq_slot){.error = cq->overrun};
	cq->limit = cq->tail;
	for (unsigned int i = 0; i < cq->workers.count; i++)
		cq->workers.list[i].worker->ops->starve(cq->workers.list[i].worker);
	wait_notify(&cq->wait);
}

/* `limit` leaves one slot free, for the overrun entry. */
struct cq_slot *cq_slot_slow(struct cq *cq)
{
	static struct cq_slot dropped;

	if (!cq->is_overrun) {
		cq->limit = cq->head + cq->mask;
		if (cq->tail != cq->limit || cq_grow(cq))
			return &cq->ring[cq->tail++ & cq->mask];
		cq_overrun(cq);
	}
	return &dropped;
}

void cq_push_done_slow(struct cq *cq, void *context, uint64_t flags)
{
	cq_push(cq, (struct cq_slot){.context = context, .flags = flags});
}

void cq_push_error(struct cq *cq, const struct cq_slot *entry, const struct cq_error *why,
		   const void *err_data)
{
	struct cq_error *error = cq->is_overrun ? NULL : malloc(sizeof(*error) + why->data_size);
	struct cq_slot slot = *entry;

	if (!error) {
		cq_overrun(cq);
		return;
	}
	*error = *why;
	if (why->data_size)
		memcpy(error->data, err_data, why->data_size);
	slot.error = error;
	cq_push(cq, slot);
	if (cq->is_overrun) /* by this entry */
		free(error);
}

int cq_add_worker(struct cq *cq, struct driven *worker)
{
	return workers_add(&cq->workers, worker, &cq->wait);
}

void cq_del_worker(struct cq *cq, struct driven *worker)
{
	workers_del(&cq->workers, worker, &cq->wait);
}

static int cq_close(struct fid *fid)
{
	struct cq *cq = (struct cq *)fid;

	if (domain_foreign(cq->dom))
		return 0;
	if (ref_busy(&cq->ref))
		return -FI_EBUSY;
	domain_lock(cq->dom);
	list_remove(&cq->in_domain);
	shard_leave(&cq->workers.shard);
	domain_unlock(cq->dom);
	for (uint32_t i = cq->head; i != cq->tail; i++)
		free(cq->ring[i & cq->mask].error);
	if (!cq->is_overrun)
		free(cq->overrun);
	wait_fini(&cq->wait);
	ref_put(&cq->dom->ref);
	free(cq->err_data);
	workers_fini(&cq->workers);
	free(cq->ring);
	fid_free(fid);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	return wait_control(&((struct cq *)fid)->wait, command, arg);
}

static struct fi_ops cq_fi_ops = FID_OPS(cq_close, fid_no_bind, cq_control);

static int cq_check_attr(const struct domain *dom, const struct fi_cq_attr *attr)
{
	if (attr->flags & ~FI_AFFINITY)
		return LOG_REFUSE(-FI_EINVAL, LOG_CQ, "unknown flags %#llx of a completion queue",
				  (unsigned long long)attr->flags);
	if (attr->format > FI_CQ_FORMAT_TAGGED)
		return LOG_REFUSE(-FI_EINVAL, LOG_CQ, "format %d is none of enum fi_cq_format",
				  attr->format);
	if (attr->wait_cond > FI_CQ_COND_THRESHOLD)
		return LOG_REFUSE(-FI_EINVAL, LOG_CQ,
				  "wait_cond %d is none of enum fi_cq_wait_cond", attr->wait_cond);
	if (attr->size > CQ_SIZE_MAX)
		return LOG_REFUSE(-FI_EINVAL, LOG_CQ, "size %zu exceeds %u", attr->size,
				  CQ_SIZE_MAX);
	return domain_refuse_xpu(dom, &attr->xpu_ctx, "fi_cq_open");
}

int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out, void *context)
{
	struct fi_cq_attr none = {.size = 0}; /* FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE */
	struct domain *dom = domain_of(domain);
	uint32_t size = CQ_SIZE_DEFAULT;
	struct cq *cq;
	int err;

	attr = attr ? attr : &none;
	err = out ? cq_check_attr(dom, attr) : -FI_EINVAL;
	if (err)
		return err;
	cq = apart_alloc(sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	while (size < attr->size)
		size *= 2;
	cq->ring = malloc(size * sizeof(*cq->ring));
	cq->overrun = calloc(1, sizeof(*cq->overrun));
	if (!cq->ring || !cq->overrun) {
		err = -FI_ENOMEM;
		goto free_ring;
	}
	cq->overrun->err = cq->overrun->prov_errno = FI_EOVERRUN;
	err = wait_init(&cq->wait, attr->wait_obj, attr->wait_set);
	if (err)
		goto free_ring;
	/* A thread that sleeps on a condition variable makes no progress. fi_cq(3) FI_WAIT_MUTEX_COND. */
	if (wait_must_poll(&cq->wait) && (err = progress_start(dom)))
		goto fini_wait;
	cq->mask = size - 1;
	cq->limit = size - 1;
	cq->capacity_asked = attr->size ? (uint32_t)attr->size : size;
	attr->size = cq->capacity_asked;
	cq->format = attr->format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT : attr->format;
	cq->wait_cond = attr->wait_cond;
	cq->dom = dom;
	workers_init(&cq->workers, dom);
	cq->fid.fid = (struct fid){FI_CLASS_CQ, context, &cq_fi_ops};
	domain_lock(dom);
	cq_install(cq);
	list_push(&dom->queues, &cq->in_domain);
	domain_unlock(dom);
	ref_get(&dom->ref);
	wait_own(&cq->wait, &cq->waitable, &cq_waitable_ops);
	*out = &cq->fid;
	return 0;
fini_wait:
	wait_fini(&cq->wait);
free_ring:
	free(cq->overrun);
	free(cq->ring);
	free(cq);
	return err;
}
