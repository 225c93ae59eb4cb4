/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending: claim, write, publish, and wake the owner when it asked for it. */
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/socket.h>

#include "hw/shm/shm.h"
#include "hw/wire.h"

/* Bytes of the first slot that are not payload. */
static inline size_t header_len(uint64_t head)
{
	return offsetof(struct ring_slot, rest) + (wire_flags(head) & WIRE_DATA ? 8 : 0);
}

/* A full socket means that wake-ups are waiting there already. */
static __attribute__((noinline, cold)) void wake_owner(struct shm_link *s)
{
	send(s->sock, &(char){BOOT_WAKE}, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static __attribute__((noinline, cold)) int claim_slow(struct shm_link *s, uint32_t slots,
						      uint64_t *word)
{
	int err = ring_claim(&s->ring, &s->next, s->src, slots, word);

	/* Pairs with the release in shm_rx.c publish_head. */
	s->head = __atomic_load_n(&s->ring.page->head, __ATOMIC_ACQUIRE);
	return err;
}

/*
 * Claims at our own last position, the frontier while nobody else sends. The slots' stale content
 * may be overwritten once this returns 0; s->next is where they start.
 */
static inline int claim(struct shm_link *s, uint32_t slots, uint64_t *word)
{
	uint64_t pos = s->next, *at = ring_claim_at(&s->ring, pos);
	uint32_t lap = ring_lap(&s->ring, pos);

	*word = __atomic_load_n(at, __ATOMIC_RELAXED);
	if (__builtin_expect(pos + slots - s->head > s->ring.mask + UINT64_C(1) ||
				     (int32_t)((claim_lap(*word) - lap) << 1) >= 0 ||
				     !__atomic_compare_exchange_n(at, word,
								  claim_word(lap, s->src, slots),
								  false, __ATOMIC_ACQ_REL,
								  __ATOMIC_RELAXED),
			     0))
		return claim_slow(s, slots, word);
	return 0;
}

/* The payload is in place: hand the line over. Pairs with the acquire in shm_turn. */
static inline void publish(struct shm_link *s, struct ring_slot *slot, uint32_t slots,
			   uint64_t word)
{
	__atomic_store_n(&slot->token, s->ring.secret + s->next, __ATOMIC_RELEASE);
	s->next += slots;
	if (__builtin_expect((word & CLAIM_SLEEP) != 0, 0))
		wake_owner(s);
}

int shm_send(struct link *link, uint64_t head, uint64_t tag, uint64_t data, const void *buf,
	     size_t len)
{
	struct shm_link *s = (struct shm_link *)link;
	size_t hdr = header_len(head);
	uint32_t slots = (uint32_t)((hdr + len + RING_SLOT - 1) / RING_SLOT);
	struct ring_slot *slot;
	uint64_t word;

	if (__builtin_expect(claim(s, slots, &word), 0))
		return -FI_EAGAIN;
	slot = ring_slot_at(&s->ring, s->next);
	slot->src = s->src;
	slot->len = (uint32_t)len;
	slot->head = head;
	slot->tag = tag;
	if (wire_flags(head) & WIRE_DATA)
		memcpy(slot->rest, &data, sizeof(data));
	if (len == 8)
		memcpy((unsigned char *)slot + hdr, buf, 8);
	else if (len)
		memcpy((unsigned char *)slot + hdr, buf, len);
	publish(s, slot, slots, word);
	return 0;
}

int shm_sendv(struct link *link, const struct packet *p, const struct iovec *iov, size_t count)
{
	struct shm_link *s = (struct shm_link *)link;
	size_t hdr = header_len(p->head);
	uint32_t slots = (uint32_t)((hdr + p->len + RING_SLOT - 1) / RING_SLOT);
	struct ring_slot *slot;
	unsigned char *to;
	uint64_t word;

	if (claim(s, slots, &word))
		return -FI_EAGAIN;
	slot = ring_slot_at(&s->ring, s->next);
	slot->src = s->src;
	slot->len = (uint32_t)p->len;
	slot->head = p->head;
	slot->tag = p->tag;
	if (wire_flags(p->head) & WIRE_DATA)
		memcpy(slot->rest, &p->data, sizeof(p->data));
	to = (unsigned char *)slot + hdr;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
	publish(s, slot, slots, word);
	return 0;
}
