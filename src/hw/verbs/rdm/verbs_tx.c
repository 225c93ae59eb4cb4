/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending: short packets are posted inline, longer ones by way of a slot. A send with a slot, and
 * one of VERBS_SIGNAL others, is signaled: its completion completes all sends before it. On a
 * software device all sends are signaled: verbs_ack.c.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>

#define LOG_PROV "verbs"
#include "base/copy.h"
#include "base/log.h"
#include "hw/verbs/rdm/verbs.h"

static int post_request(struct verbs_link *l, struct ibv_send_wr *wr, uint16_t slot)
{
	struct ibv_send_wr *bad;
	int err;

	wr->wr_id = (uint64_t)pool_id(l) << 32 | (l->posted + 1);
	if (slot != VERBS_NO_SLOT || !((l->posted + 1) & l->unsignaled))
		wr->send_flags |= IBV_SEND_SIGNALED;
	err = ibv_post_send(l->qp, wr, &bad);
	if (err == ENOMEM)
		return -FI_EAGAIN;
	if (err) {
		LOG_WARN(LOG_EP_DATA, "%s: posting a send to peer %#x failed: %s",
			 l->own->path.dev->name, l->id, strerror(err));
		verbs_fail(l, err);
		return -FI_EAGAIN; /* the next progress call ends the link and the operation */
	}
	l->slots[++l->posted % VERBS_FLIGHT] = slot;
	return 0;
}

static int verbs_tx_post(struct verbs_link *l, struct ibv_send_wr *wr, uint16_t slot)
{
	wr->opcode = IBV_WR_SEND_WITH_IMM;
	wr->imm_data = htonl(l->peer_imm);
	return post_request(l, wr, slot);
}

/* Header and payload fit the work request. */
static int post_inline(struct verbs_link *l, struct verbs_head *h, const struct iovec *iov,
		       size_t count)
{
	struct ibv_sge sge[VERBS_SEGMENTS] = {{.addr = (uintptr_t)h, .length = sizeof(*h)}};
	struct ibv_send_wr wr = {.sg_list = sge, .num_sge = 1, .send_flags = IBV_SEND_INLINE};

	for (size_t i = 0; i < count; i++)
		if (iov[i].iov_len)
			sge[wr.num_sge++] = (struct ibv_sge){.addr = (uintptr_t)iov[i].iov_base,
							     .length = iov[i].iov_len};
	return verbs_tx_post(l, &wr, VERBS_NO_SLOT);
}

/* Copies header and payload to a slot: `sge` names it. Returns the slot; VERBS_NO_SLOT: none now. */
static uint16_t fill_slot(struct verbs_slots *slots, const struct verbs_head *h,
			  const struct iovec *iov, size_t count, struct ibv_sge *sge)
{
	unsigned char *to;
	uint16_t slot;

	if (!slots->free_count && verbs_slots_grow(slots))
		return VERBS_NO_SLOT; /* completed sends free slots */
	slot = verbs_slots_get(slots);
	to = verbs_slots_at(slots, slot);
	memcpy(to, h, sizeof(*h));
	to += sizeof(*h);
	for (size_t i = 0; i < count; i++) {
		copy_bytes(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
	*sge = verbs_slots_sge(slots, slot, to - verbs_slots_at(slots, slot));
	return slot;
}

static int post_copy(struct verbs_link *l, const struct verbs_head *h, const struct iovec *iov,
		     size_t count)
{
	struct verbs_slots *slots = &l->own->send;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1};
	uint16_t slot = fill_slot(slots, h, iov, count, &sge);
	int err;

	if (slot == VERBS_NO_SLOT)
		return -FI_EAGAIN;
	err = verbs_tx_post(l, &wr, slot);
	if (err)
		verbs_slots_put(slots, slot);
	return err;
}

/* Does the packet carry data of an operation that is reported complete once it is sent? */
static inline bool verbs_tx_carries(uint64_t head)
{
	unsigned int op = wire_op(head);

	return op == WIRE_MSG || op == WIRE_PUT || op == WIRE_AMO;
}

static int verbs_tx_send_packet(struct verbs_link *l, const struct packet *p,
				const struct iovec *iov, size_t count)
{
	struct verbs_head h = {.head = p->head,
			       .tag = p->tag,
			       .data = p->data,
			       .freed = l->freed,
			       .flags = verbs_flags(l)};
	bool disconnect = wire_op(p->head) == WIRE_DISCONNECT;
	int err;

	/* The last entry of the queue is for credits and for disconnect, which needs no credits. */
	if (!disconnect && (!l->credits || verbs_in_flight(l) >= VERBS_FLIGHT - 1))
		return -FI_EAGAIN;
	if (verbs_in_flight(l) >= VERBS_FLIGHT)
		return -FI_EAGAIN;
	err = sizeof(h) + p->len <= l->inline_max && count < VERBS_SEGMENTS
		      ? post_inline(l, &h, iov, count)
		      : post_copy(l, &h, iov, count);
	if (err)
		return err;
	l->credits -= !disconnect;
	l->freed = 0;
	if (__builtin_expect(l->software, 0) && verbs_tx_carries(p->head))
		verbs_ack_wait(l, false);
	return 0;
}

int verbs_send_kept(struct verbs_link *l, struct verbs_head *h, const struct iovec *iov,
		    size_t count, struct verbs_kept_packet *packet)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1};
	uint16_t kept;
	int err;

	if (!l->credits || verbs_in_flight(l) >= VERBS_FLIGHT - 1)
		return -FI_EAGAIN;
	h->freed = l->freed;
	h->flags |= l->spares_freed << VERBS_SPARES;
	kept = fill_slot(&l->own->send, h, iov, count, &sge);
	if (kept == VERBS_NO_SLOT)
		return -FI_EAGAIN;
	wr.send_flags = sge.length <= l->inline_max ? IBV_SEND_INLINE : IBV_SEND_SIGNALED;
	err = verbs_tx_post(l, &wr, VERBS_NO_SLOT);
	if (err) {
		verbs_slots_put(&l->own->send, kept);
		return err;
	}
	*packet = (struct verbs_kept_packet){.number = l->posted, .slot = kept, .len = sge.length};
	l->credits--;
	l->freed = l->spares_freed = 0;
	if (__builtin_expect(l->software, 0) && verbs_tx_carries(h->head))
		verbs_ack_wait(l, false);
	return 0;
}

void verbs_drop_kept(struct verbs_link *l, const struct verbs_kept_packet *packet)
{
	bool arrived = l->posted - packet->number >= verbs_in_flight(l);

	if (arrived || packet->len <= l->inline_max)
		verbs_slots_put(&l->own->send, packet->slot);
	else
		l->slots[packet->number % VERBS_FLIGHT] = packet->slot;
}

int verbs_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
	       uint64_t tag)
{
	struct packet p = {.head = head, .tag = tag, .data = data, .len = len};
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	return len > link->eager_max ? -FI_EMSGSIZE
				     : verbs_tx_send_packet((struct verbs_link *)link, &p, &iov, 1);
}

int verbs_sendv(struct link *link, const struct packet *p, const struct iovec *iov, size_t count)
{
	return verbs_tx_send_packet((struct verbs_link *)link, p, iov, count);
}

void verbs_say(struct verbs_link *l, bool signaled)
{
	struct verbs_head h = {.freed = l->freed,
			       .flags = verbs_flags(l) | l->spares_freed << VERBS_SPARES};
	struct ibv_sge sge = {.addr = (uintptr_t)&h, .length = sizeof(h)};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_INLINE};

	if (signaled)
		wr.send_flags |= IBV_SEND_SIGNALED;
	l->owes = true;
	/*
	 * Without a spare slot, waits until the peer returns some, if it reads. The last one is for packets that return spare
	 * slots: so two sides that have used theirs do not wait for each other.
	 */
	if (l->rails && l->spares <= (l->spares_freed < VERBS_SPARE_OWED))
		return;
	if (verbs_in_flight(l) < VERBS_FLIGHT && !verbs_tx_post(l, &wr, VERBS_NO_SLOT)) {
		l->spares -= l->rails != NULL;
		l->freed = l->spares_freed = 0;
		l->owes = false;
		return;
	}
	verbs_attend(l);
}

void verbs_tell(struct verbs_link *l)
{
	if (l->heard && !l->err &&
	    (l->owes || l->freed >= l->window / 2 || l->spares_freed >= VERBS_SPARE_OWED))
		verbs_say(l, false);
}

/* It is an RDMA write of no bytes. */
void verbs_ping(struct verbs_link *l)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};

	if (verbs_in_flight(l) < VERBS_FLIGHT)
		post_request(l, &wr, VERBS_NO_SLOT);
}

void verbs_sent(struct verbs_link *l, uint32_t posted)
{
	/* Ignores completions of sends that were never posted. */
	if (posted - l->arrived > verbs_in_flight(l))
		return;
	while (l->arrived != posted) {
		uint16_t slot = l->slots[++l->arrived % VERBS_FLIGHT];

		if (slot != VERBS_NO_SLOT)
			verbs_slots_put(&l->own->send, slot);
	}
}
