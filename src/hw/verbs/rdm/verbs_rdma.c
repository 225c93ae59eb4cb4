/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#define LOG_PROV "verbs"
#include "base/copy.h"
#include "base/forked.h"
#include "base/iov.h"
#include "base/log.h"
#include "core/mr_nic.h"
#include "hw/verbs/rdm/verbs.h"

/* A position in a list of segments or ranges: entry, and byte within it. */
struct spot {
	size_t index, at;
};

struct verbs_rdma {
	struct list link; /* verbs_direct.rdma_posted */
	uint64_t id;
	bool write;
	bool taken_along; /* sent inline: our side needs no registration */
	uint16_t slot;    /* slot that stands for our segments, or VERBS_NO_SLOT */
	size_t len;       /* bytes of the operation */
	size_t left;      /* bytes not posted yet */
	uint32_t begun;   /* requests posted */
	uint32_t over;    /* requests completed */
	struct spot ours, theirs;
	size_t local_count, remote_count;
	struct iovec local[WIRE_IOV_MAX];
	struct fi_rma_iov remote[WIRE_IOV_MAX];
	uint32_t lkey[WIRE_IOV_MAX];         /* of each local segment */
	struct verbs_mem *mem[WIRE_IOV_MAX]; /* of each segment, or NULL: none of ours */
};

/* Segments registered for a peer to read. */
struct rndv_region {
	size_t count;
	struct verbs_mem *mem[WIRE_IOV_MAX];
};

void verbs_rdma_pool(struct pool *pool)
{
	pool_init(pool, sizeof(struct verbs_rdma));
}

static void free_rdma(struct verbs_link *l, struct verbs_rdma *m)
{
	for (size_t i = 0; i < m->local_count; i++)
		verbs_mem_put(m->mem[i]);
	if (m->slot != VERBS_NO_SLOT)
		verbs_slots_put(&l->own->send, m->slot);
	list_remove(&m->link);
	pool_put(&l->own->rdma_posted, m);
}

/* Are all segments in regions known to our device? If so, uses the keys of the regions. */
static bool in_regions(struct verbs_link *l, struct verbs_rdma *m)
{
	struct domain *dom = l->own->opener->dom;

	if (!dom->nic || ((const struct verbs_path *)dom->nic)->dev != l->own->path.dev)
		return false;
	for (size_t i = 0; i < m->local_count; i++)
		if (m->local[i].iov_len && !mr_nic_find(dom, &m->local[i], !m->write, &m->lkey[i]))
			return false;
	return true;
}

/* Copies a short operation's data to a slot, cheaper than registering it. False: no slot. */
static bool in_slot(struct verbs_link *l, struct verbs_rdma *m)
{
	struct verbs_slots *slots = &l->own->send;
	unsigned char *to;

	if (m->len > VERBS_SLOT || (!slots->free_count && verbs_slots_grow(slots)))
		return false;
	m->slot = verbs_slots_get(slots);
	to = verbs_slots_at(slots, m->slot);
	for (size_t i = 0; m->write && i < m->local_count; i++) {
		if (m->local[i].iov_len)
			copy_bytes(to, m->local[i].iov_base, m->local[i].iov_len);
		to += m->local[i].iov_len;
	}
	return true;
}

static bool verbs_rdma_registered(struct verbs_link *l, struct verbs_rdma *m)
{
	unsigned int access = m->write ? 0 : IBV_ACCESS_LOCAL_WRITE;

	for (size_t i = 0; i < m->local_count; i++) {
		if (!m->local[i].iov_len)
			continue;
		m->mem[i] = verbs_mem_get(l->own->path.dev, &m->local[i], access);
		if (!m->mem[i])
			return false;
		m->lkey[i] = m->mem[i]->mr->lkey;
	}
	return true;
}

/* Makes our segments accessible to the device. False: the device refuses a segment. */
static bool take_memory(struct verbs_link *l, struct verbs_rdma *m)
{
	for (size_t i = 0; i < m->local_count; i++)
		m->mem[i] = NULL;
	m->slot = VERBS_NO_SLOT;
	m->taken_along =
		m->write && m->len <= l->direct.inline_max && m->local_count <= VERBS_SEGMENTS;
	return m->taken_along || in_regions(l, m) || in_slot(l, m) || verbs_rdma_registered(l, m);
}

static void verbs_rdma_fill(struct verbs_rdma *m, const struct link_copy *from)
{
	m->id = from->id;
	m->write = from->write;
	m->left = 0;
	m->begun = m->over = 0;
	m->ours = m->theirs = (struct spot){0, 0};
	m->local_count = from->local_count;
	m->remote_count = from->remote_count;
	memcpy(m->local, from->local, from->local_count * sizeof(m->local[0]));
	memcpy(m->remote, from->remote, from->remote_count * sizeof(m->remote[0]));
	for (size_t i = 0; i < m->remote_count; i++)
		m->left += m->remote[i].len;
	m->len = m->left;
	list_init(&m->link);
}

static inline uint32_t in_flight(const struct verbs_direct *d)
{
	return d->posted - d->arrived;
}

int verbs_rdma(struct link *link, const struct link_copy *from)
{
	struct verbs_link *l = (struct verbs_link *)link;
	const struct verbs_direct *d = &l->direct;
	struct verbs_rdma *m;

	if (from->at_once)
		return -FI_ENOSYS;
	/* A short operation is posted at once, whatever the number of its fragments, or not at all. */
	if (from->now && (!l->heard || d->next || d->reads ||
			  in_flight(d) + 2 * WIRE_IOV_MAX > VERBS_RDMA_FLIGHT))
		return -FI_EAGAIN;
	m = l->direct.failed ? NULL : pool_get(&l->own->rdma_posted);
	if (!m)
		return -FI_ENOMEM;
	verbs_rdma_fill(m, from);
	if (!take_memory(l, m)) {
		free_rdma(l, m);
		return -FI_ENOMEM;
	}
	list_push(&l->direct.rdma_posted, &m->link);
	if (!l->direct.next)
		l->direct.next = m;
	verbs_rdma_on(l);
	/* An injected write has no other place that waits for its acknowledgement. */
	if (l->software && m->write && m->len <= VERBS_SLOT && !m->left && !l->direct.failed)
		verbs_ack_wait(l, true);
	return LINK_UNDER_WAY;
}

/*
 * Fills in the segments of the next *len local bytes; reduces *len if they need more than
 * VERBS_SEGMENTS. Returns the number of segments.
 */
static int our_fragments(struct verbs_link *l, struct verbs_rdma *m,
			 struct ibv_sge sge[VERBS_SEGMENTS], size_t *len)
{
	size_t want = *len;
	int count = 0;

	if (m->slot != VERBS_NO_SLOT) {
		sge[0] = verbs_slots_sge(&l->own->send, m->slot, (uint32_t)want);
		sge[0].addr += m->len - m->left;
		return 1;
	}
	while (want && count < VERBS_SEGMENTS) {
		const struct iovec *iov = &m->local[m->ours.index];
		size_t take = iov->iov_len - m->ours.at;

		if (take > want)
			take = want;
		if (take)
			sge[count++] =
				(struct ibv_sge){.addr = (uintptr_t)iov->iov_base + m->ours.at,
						 .length = (uint32_t)take,
						 .lkey = m->lkey[m->ours.index]};
		m->ours.at += take;
		want -= take;
		if (m->ours.at == iov->iov_len)
			m->ours = (struct spot){m->ours.index + 1, 0};
	}
	*len -= want;
	return count;
}

/* Is the link a rail, and another one works? That one does again what a broken one had. */
static bool verbs_rdma_has_spare(const struct verbs_link *l)
{
	return l->rails && verbs_rails_ops->spare(l);
}

/* Is more than RDMA over? A request may fail before a progress call has read that the device was taken away. */
static bool verbs_rdma_is_broken(const struct verbs_link *l)
{
	verbs_news_read(l->own->path.dev);
	return l->err || verbs_dev_removed(l->own->path.dev);
}

/* A post failed: the next progress call ends RDMA on the link, or the rail. */
static void verbs_rdma_give_up(struct verbs_link *l, int err)
{
	l->direct.next = NULL;
	l->direct.failed = true;
	if (verbs_rdma_has_spare(l) && verbs_rdma_is_broken(l)) {
		verbs_fail(l, err);
		return;
	}
	LOG_WARN(LOG_EP_DATA,
		 "%s: cannot post an RDMA request to peer %#x: %s; packets from now on",
		 l->own->path.dev->name, l->id, fi_strerror(err));
	verbs_attend(l);
}

/* Posts the next fragment of the operation. False: given up. */
static bool post_fragment(struct verbs_link *l, struct verbs_rdma *m)
{
	struct verbs_direct *d = &l->direct;
	struct ibv_sge sge[VERBS_SEGMENTS];
	struct ibv_send_wr wr = {.wr_id = (uint64_t)pool_id(l) << 32 | (d->posted + 1),
				 .sg_list = sge,
				 .opcode = m->write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED |
					       (m->taken_along ? IBV_SEND_INLINE : 0)};
	struct ibv_send_wr *bad;
	size_t len;
	int err;

	while (m->theirs.at == m->remote[m->theirs.index].len)
		m->theirs = (struct spot){m->theirs.index + 1, 0};
	len = m->remote[m->theirs.index].len - m->theirs.at;
	if (len > (m->write ? d->write_max : d->read_max))
		len = m->write ? d->write_max : d->read_max;
	wr.num_sge = our_fragments(l, m, sge, &len);
	wr.wr.rdma.remote_addr = m->remote[m->theirs.index].addr + m->theirs.at;
	wr.wr.rdma.rkey = (uint32_t)m->remote[m->theirs.index].key;
	err = ibv_post_send(d->qp, &wr, &bad);
	if (err) {
		verbs_rdma_give_up(l, err);
		return false;
	}
	d->posted++;
	d->reads += !m->write;
	m->begun++;
	m->theirs.at += len;
	m->left -= len;
	return true;
}

void verbs_rdma_on(struct verbs_link *l)
{
	struct verbs_direct *d = &l->direct;

	while (d->next && l->heard) {
		struct verbs_rdma *m = d->next;
		/* A write must wait for earlier reads: it could change what they still have to read. */
		uint32_t reads = m->write ? 1 : VERBS_READS;

		if (in_flight(d) >= VERBS_RDMA_FLIGHT || d->reads >= reads || !post_fragment(l, m))
			return;
		if (!m->left)
			d->next = m->link.next == &d->rdma_posted
					  ? NULL
					  : LIST_ENTRY(m->link.next, struct verbs_rdma, link);
	}
}

void verbs_rdma_end(struct verbs_link *l, bool silent)
{
	struct verbs_direct *d = &l->direct;

	if (!d->qp)
		return;
	/* After this the device accesses none of our memory. */
	if (l->own->path.dev->forked == forked_count())
		l->own->path.dev->lib->destroy_qp(d->qp);
	d->qp = NULL;
	d->next = NULL;
	l->link.rdma_usable = false;
	while (!list_empty(&d->rdma_posted))
		free_rdma(l, LIST_ENTRY(d->rdma_posted.next, struct verbs_rdma, link));
	if (silent)
		return;
	if (!l->err)
		verbs_say(l, false);
	if (l->rails)
		verbs_rails_ops->rdma_ended(l);
	else
		l->own->opener->events->rdma_failed(l->own->opener, l->id);
}

void verbs_rdma_abort(struct link *link)
{
	verbs_rdma_end((struct verbs_link *)link, true);
}

/* Is the way to the peer's device broken? Else one of the devices has refused an access. */
static bool is_unreachable(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RESP_TIMEOUT_ERR ||
	       status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_FATAL_ERR;
}

void verbs_rdma_done(struct verbs_link *l, const struct ibv_wc *wc, bool silent)
{
	struct verbs_direct *d = &l->direct;
	struct verbs_rdma *m;
	uint64_t id;

	/* Completions of an ended queue pair may still come. */
	if (!d->qp || d->arrived + 1 != (uint32_t)wc->wr_id || list_empty(&d->rdma_posted))
		return;
	if (wc->status != IBV_WC_SUCCESS && verbs_rdma_has_spare(l) &&
	    (is_unreachable(wc->status) || verbs_rdma_is_broken(l))) {
		verbs_fail_status(l, wc->status);
		return;
	}
	if (wc->status != IBV_WC_SUCCESS) {
		LOG_INFO(LOG_EP_DATA, "RDMA with peer %#x ended, packets replace it: %s", l->id,
			 verbs_status_text(wc->status));
		verbs_rdma_end(l, silent);
		return;
	}
	d->arrived++;
	if ((int32_t)(d->arrived - d->seen) > 0)
		d->seen = d->arrived;
	m = LIST_ENTRY(d->rdma_posted.next, struct verbs_rdma, link);
	m->over++;
	d->reads -= !m->write;
	if (!d->failed)
		verbs_rdma_on(l);
	if (m->left || m->over != m->begun)
		return;
	id = m->id;
	if (m->slot != VERBS_NO_SLOT && !m->write)
		iov_scatter(m->local, m->local_count, 0, verbs_slots_at(&l->own->send, m->slot),
			    m->len);
	free_rdma(l, m);
	if (silent)
		return;
	if (l->rails)
		verbs_rails_ops->done(l, id);
	else
		l->own->opener->events->copied(l->own->opener, id,
					       l->link.counted ? LINK_COUNTED : LINK_DONE);
}

bool verbs_rdma_writes(const struct verbs_link *l)
{
	LIST_EACH (node, &l->direct.rdma_posted) {
		if (LIST_ENTRY(node, struct verbs_rdma, link)->write)
			return true;
	}
	return false;
}

void verbs_rndv_deregister(struct link *link, void *registered)
{
	struct rndv_region *e = registered;

	(void)link;
	for (size_t i = 0; i < e->count; i++)
		verbs_mem_put(e->mem[i]);
	free(e);
}

int verbs_rndv_register(struct link *link, const struct iovec *iov, size_t count,
			struct fi_rma_iov *at, void **registered)
{
	struct verbs_link *l = (struct verbs_link *)link;
	struct rndv_region *e = calloc(1, sizeof(*e));

	if (!e)
		return -FI_ENOMEM;
	for (; e->count < count; e->count++) {
		const struct iovec *s = &iov[e->count];
		struct verbs_mem *mem = NULL;

		if (s->iov_len)
			mem = verbs_mem_get(l->own->path.dev, s, IBV_ACCESS_REMOTE_READ);
		if (s->iov_len && !mem) {
			verbs_rndv_deregister(link, e);
			return -FI_ENOMEM;
		}
		e->mem[e->count] = mem;
		at[e->count] = (struct fi_rma_iov){.addr = (uintptr_t)s->iov_base,
						   .len = s->iov_len,
						   .key = mem ? mem->mr->rkey : 0};
	}
	*registered = e;
	return 0;
}
