/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading completion queues, nonblocking and blocking. fi_cq(3). */
#include "core/cq.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fid.h"
#include "base/log.h"
#include "base/reason.h"
#include "link/link.h"

static inline __attribute__((always_inline)) void cq_read_hold(const struct cq *cq, bool locked)
{
	if (locked)
		shard_take(&cq->workers.shard);
	else
		shard_enter_alone(&cq->workers.shard, "fi_cq_read");
}

static inline __attribute__((always_inline)) void cq_read_release(const struct cq *cq, bool locked)
{
	if (locked)
		shard_give(&cq->workers.shard);
	else
		shard_leave_alone(&cq->workers.shard);
}

/* Copies entries of a constant size: a few register moves each. */
static inline __attribute__((always_inline)) ssize_t
copy_entries(struct cq *cq, unsigned char *to, size_t count, fi_addr_t *src, size_t size)
{
	size_t n;

	for (n = 0; n < count && cq->head != cq->tail; n++) {
		const struct cq_slot *slot = &cq->ring[cq->head & cq->mask];

		if (__builtin_expect(slot->error != NULL, 0))
			return n ? (ssize_t)n : -FI_EAVAIL;
		memcpy(to, slot, size);
		if (src)
			src[n] = slot->src;
		to += size;
		cq->head++;
	}
	return n ? (ssize_t)n : -FI_EAGAIN;
}

static ssize_t copy_out(struct cq *cq, void *buf, size_t count, fi_addr_t *src)
{
	if (cq->format == FI_CQ_FORMAT_TAGGED)
		return copy_entries(cq, buf, count, src, sizeof(struct fi_cq_tagged_entry));
	if (cq->format == FI_CQ_FORMAT_DATA)
		return copy_entries(cq, buf, count, src, sizeof(struct fi_cq_data_entry));
	if (cq->format == FI_CQ_FORMAT_MSG)
		return copy_entries(cq, buf, count, src, sizeof(struct fi_cq_msg_entry));
	return copy_entries(cq, buf, count, src, sizeof(struct fi_cq_entry));
}

/* The last of WORKERS_FINDS calls has found entries. */
static __attribute__((noinline)) void progress_all_the_same(struct cq *cq)
{
	if (cq->tail - cq->head > cq->finds * WORKERS_UNREAD)
		return;
	cq->finds = 0;
	workers_progress_whole(cq->dom, &cq->workers);
}

/* Notes that a call has found entries, which may be read by now. */
static inline __attribute__((always_inline)) void cq_read_found(struct cq *cq)
{
	if (__builtin_expect(!(++cq->finds % WORKERS_FINDS), 0))
		progress_all_the_same(cq);
}

/*
 * Ends one of many reads that found nothing. Messages that went past the queue, and requests that peers made
 * of our memory meanwhile, count as events: progress was of use to them.
 */
static __attribute__((noinline, cold)) ssize_t in_vain(struct cq *cq, bool locked)
{
	unsigned int calls = shard_calls(cq->workers.shard.shard);
	uint64_t seen = (uint64_t)cq->head + workers_served(&cq->workers);

	cq_read_release(cq, locked);
	wait_give_way(&cq->wait, calls, seen);
	return -FI_EAGAIN;
}

ssize_t cq_read_due(struct cq *cq, void *buf, size_t count, fi_addr_t *src)
{
	driven_due(cq->workers.list[0].worker);
	return copy_out(cq, buf, count, src);
}

/* Ends a read that found the queue empty. */
static inline __attribute__((always_inline)) ssize_t cq_read_end(struct cq *cq, ssize_t ret,
								 bool locked)
{
	if (ret == -FI_EAGAIN && wait_polled(&cq->wait, shard_calls(cq->workers.shard.shard)))
		return in_vain(cq, locked);
	cq_read_release(cq, locked);
	return ret;
}

/* Reads what a whole progress call brings. */
static __attribute__((noinline)) ssize_t cq_read_all(struct cq *cq, void *buf, size_t count,
						     fi_addr_t *src, bool locked)
{
	workers_progress_all(cq->dom, &cq->workers);
	return cq_read_end(cq, copy_out(cq, buf, count, src), locked);
}

/* Apart from read_now, where the call by pointer would take registers from reads that find nothing. */
static __attribute__((noinline)) ssize_t read_near(struct cq *cq, void *buf, size_t count,
						   struct driven *only, link_place at)
{
	return only->ops->read(cq, buf, count, only, at);
}

static inline __attribute__((always_inline)) ssize_t
read_now(struct cq *cq, void *buf, size_t count, fi_addr_t *src, bool locked)
{
	link_place at;
	struct driven *only;
	ssize_t ret;

	if (MISUSED_BUFFER("fi_cq_read", buf, count))
		return -FI_EINVAL;
	cq_read_hold(cq, locked);
	only = cq->workers.only;
	if (cq->head != cq->tail && count) { /* a read of 0 entries asks for progress */
		ret = copy_out(cq, buf, count, src);
		cq_read_found(cq);
		cq_read_release(cq, locked);
		return ret;
	}
	at = link_cursor_place(only->idle.cursor);
	switch (workers_look(&cq->workers)) {
	case WORKERS_NEWS:
		ret = src ? only->ops->readfrom(cq, buf, count, src, only)
			  : read_near(cq, buf, count, only, at);
		cq_read_release(cq, locked);
		return ret;
	case WORKERS_ALL:
		return cq_read_all(cq, buf, count, src, locked);
	default:
		return cq_read_end(cq, -FI_EAGAIN, locked);
	}
}

static ssize_t read_st(struct fid_cq *fid, void *buf, size_t count)
{
	return read_now(cq_of(fid), buf, count, NULL, false);
}

static ssize_t read_mt(struct fid_cq *fid, void *buf, size_t count)
{
	return read_now(cq_of(fid), buf, count, NULL, true);
}

static ssize_t readfrom_st(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)
{
	return read_now(cq_of(fid), buf, count, src, false);
}

static ssize_t readfrom_mt(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)
{
	return read_now(cq_of(fid), buf, count, src, true);
}

/*
 * Copies err_data to the application's buffer if there is one (from API 1.5), else returns a pointer that is valid
 * until the next read of an error. Older structs end before err_data_size, or before src_addr.
 */
static void give_err_data(struct cq *cq, struct fi_cq_err_entry *buf, struct cq_error *error)
{
	uint32_t api = domain_api(cq->dom);
	bool sized = FI_VERSION_GE(api, FI_VERSION(1, 5));

	if (sized && buf->err_data && buf->err_data_size) {
		if (buf->err_data_size > error->data_size)
			buf->err_data_size = error->data_size;
		memcpy(buf->err_data, error->data, buf->err_data_size);
		free(error);
		return;
	}
	free(cq->err_data);
	cq->err_data = error;
	buf->err_data = error->data_size ? error->data : NULL;
	if (sized)
		buf->err_data_size = error->data_size;
}

static ssize_t take_error(struct cq *cq, struct fi_cq_err_entry *buf)
{
	struct cq_slot *slot = &cq->ring[cq->head & cq->mask];

	if (cq->head == cq->tail || !slot->error)
		return -FI_EAGAIN;
	buf->op_context = slot->context;
	buf->flags = slot->flags;
	buf->len = slot->len;
	buf->buf = slot->buf;
	buf->data = slot->data;
	buf->tag = slot->tag;
	buf->olen = slot->error->olen;
	buf->err = slot->error->err;
	buf->prov_errno = slot->error->prov_errno;
	if (FI_VERSION_GE(domain_api(cq->dom), FI_VERSION(1, 20)))
		buf->src_addr = slot->src;
	if (slot->error != cq->overrun) { /* the overrun entry stays */
		give_err_data(cq, buf, slot->error);
		cq->head++;
	}
	return 1;
}

static ssize_t read_error(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct cq *cq = cq_of(fid);
	ssize_t ret;

	(void)flags;
	if (!buf)
		return LOG_REFUSE(-FI_EINVAL, LOG_CQ, "fi_cq_readerr: no entry to fill in");
	shard_take(&cq->workers.shard);
	ret = take_error(cq, buf);
	if (ret == 1)
		cq_read_found(cq);
	else
		workers_progress_locked(cq->dom, &cq->workers);
	shard_give(&cq->workers.shard);
	return ret;
}

/* Returns whether a reader that waits for `need` entries can return; errors and signals count at once. Locked. */
static bool cq_read_enough(struct cq *cq, uint32_t need)
{
	uint32_t count = cq->tail - cq->head;

	if (count >= need || cq->signaled)
		return true;
	for (uint32_t i = 0; i < count; i++)
		if (cq->ring[(cq->head + i) & cq->mask].error)
			return true;
	return false;
}

/* The same with the shard not locked. */
static bool can_go_on(struct cq *cq, uint32_t need)
{
	bool over;

	shard_take(&cq->workers.shard);
	over = cq_read_enough(cq, need);
	shard_give(&cq->workers.shard);
	return over;
}

/* The same after a progress call, if one is due. Adds the calls of shard_part to *parts. */
static bool progress_and_go_on(struct cq *cq, uint32_t need, unsigned int *parts)
{
	bool over;

	unsigned int before;

	shard_take(&cq->workers.shard);
	before = cq->workers.shard.shard->parts;
	if (!cq_read_enough(cq, need))
		workers_progress_near(&cq->workers);
	if (cq_read_enough(cq, need)) /* what came near says nothing of the other transports */
		cq_read_found(cq);
	else
		workers_progress_waiting(cq->dom, &cq->workers, &cq->wait);
	*parts += cq->workers.shard.shard->parts - before;
	over = cq_read_enough(cq, need);
	shard_give(&cq->workers.shard);
	return over;
}

static int cq_arm(struct waitable *self)
{
	struct cq *cq = (struct cq *)self;
	unsigned int parts = 0;
	int nap;

	wait_arm(&cq->wait);
	wait_drain(&cq->wait);
	if (progress_and_go_on(cq, 1, &parts) || !workers_arm(cq->dom, &cq->workers, NULL, &nap) ||
	    (nap && !wait_must_poll(&cq->wait)) || can_go_on(cq, 1))
		return -FI_EAGAIN;
	if (wait_must_poll(&cq->wait))
		progress_take_over(cq->dom);
	return 0;
}

static bool cq_ready(struct waitable *self)
{
	struct cq *cq = (struct cq *)self;
	bool any;

	shard_take(&cq->workers.shard);
	if (cq->head == cq->tail)
		workers_progress_locked(cq->dom, &cq->workers);
	else
		cq_read_found(cq);
	any = cq->head != cq->tail;
	shard_give(&cq->workers.shard);
	return any;
}

static struct wait_view cq_look(struct waitable *self)
{
	struct cq *cq = (struct cq *)self;

	return (struct wait_view){cq->dom, &cq->ref, 0, 0};
}

/* What is unread stays news. */
static bool cq_polled(struct waitable *self, struct wait_view *seen)
{
	(void)seen;
	return cq_ready(self);
}

const struct waitable_ops cq_waitable_ops = {cq_arm, cq_ready, cq_look, cq_polled};

struct cq_wait {
	struct wait_for base;
	struct cq *cq;
	uint32_t need;
};

static bool wait_over(struct wait_for *self, bool arm)
{
	struct cq_wait *w = (struct cq_wait *)self;

	for (unsigned int tries = 0; tries < WORKERS_ARM_TRIES; tries++) {
		if (progress_and_go_on(w->cq, w->need, &self->parts))
			return true;
		/*
		 * Return without progress after arming, which would consume the arming. Another
		 * thread may have made progress before, so check the queue once more.
		 */
		if (!arm || workers_arm(w->cq->dom, &w->cq->workers, &w->cq->wait, &self->nap))
			return arm && can_go_on(w->cq, w->need);
	}
	self->nap = WORKERS_NAP_MS;
	return false;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src,
			    const void *cond, int timeout)
{
	struct cq *cq = cq_of(fid);
	struct cq_wait what = {.base.ready = wait_over, .cq = cq, .need = 1};
	ssize_t ret;

	if (cq->wait.obj == FI_WAIT_NONE)
		return LOG_REFUSE(
			-FI_ENOSYS, LOG_CQ,
			"fi_cq_sread: the wait object is FI_WAIT_NONE: open the queue with FI_WAIT_UNSPEC, or poll by fi_cq_read");
	if (count && !buf)
		return LOG_REFUSE(-FI_EINVAL, LOG_CQ, "fi_cq_sread: %zu entries at NULL", count);
	if (cq->wait_cond == FI_CQ_COND_THRESHOLD && cond) {
		what.need = (uint32_t)(size_t)cond;
		if (what.need > count)
			what.need = (uint32_t)count;
	}
	ret = wait_until(&cq->wait, &what.base, wait_end(timeout));
	workers_uncover(cq->dom, &cq->wait);
	if (ret == -FI_EINTR)
		return ret;
	shard_take(&cq->workers.shard);
	cq->signaled = 0;
	ret = copy_out(cq, buf, count, src);
	shard_give(&cq->workers.shard);
	return ret;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int signal_reader(struct fid_cq *fid)
{
	struct cq *cq = cq_of(fid);

	shard_take(&cq->workers.shard);
	cq->signaled = 1;
	shard_give(&cq->workers.shard);
	wait_signal(&cq->wait);
	return 0;
}

static const char *error_text(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf,
			      size_t len)
{
	const struct device_ops *device = cq_of(fid)->dom->device_ops;
	const char *text = device ? device->error_text(prov_errno) : reason_text(prov_errno);
	(void)err_data;

	if (buf && len)
		snprintf(buf, len, "%s", text);
	return buf && len ? buf : text;
}

/* clang-format off */
#define CQ_OPS(read_, readfrom_)                                                                   \
	{                                                                                          \
		.size = sizeof(struct fi_ops_cq), .read = (read_), .readfrom = (readfrom_),        \
		.readerr = read_error, .sread = cq_sread, .sreadfrom = cq_sreadfrom,               \
		.signal = signal_reader, .strerror = error_text, .export_xpu = fid_no_call_2_7,    \
	}
/* clang-format on */

static struct fi_ops_cq ops_st = CQ_OPS(read_st, readfrom_st);
static struct fi_ops_cq ops_mt = CQ_OPS(read_mt, readfrom_mt);

void cq_install(struct cq *cq)
{
	cq->fid.ops = cq->dom->unlocked ? &ops_st : &ops_mt;
}
