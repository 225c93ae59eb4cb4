/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending: claim, write, publish, and wake the owner when it asked for it. The road of a message
 * of eight bytes calls nothing, so that it needs no stack; whatever else comes up leaves it by a
 * tail call. tests/source/hotpath.py counts its instructions.
 */
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/socket.h>

#include "hw/shm/shm.h"
#include "hw/wire.h"

#define COLD   __attribute__((noinline, cold))
#define INLINE static inline __attribute__((always_inline))

/* Bytes of the first slot that are not payload. */
static inline size_t header_len(uint64_t head)
{
	return offsetof(struct ring_slot, rest) + (wire_flags(head) & WIRE_DATA ? 8 : 0);
}

static inline uint32_t slots_of(size_t bytes)
{
	return (uint32_t)((bytes + RING_SLOT - 1) / RING_SLOT);
}

/* A full socket means that wake-ups are waiting there already. Always 0: the packet is out. */
static COLD int wake_owner(struct shm_link *s)
{
	send(s->sock, &(char){BOOT_WAKE}, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	return 0;
}

static COLD bool claim_slow(struct shm_link *s, uint32_t slots, uint64_t *word)
{
	int err = ring_claim(&s->ring, &s->next, s->src, slots, word);

	/* Pairs with the release in shm_rx.c publish_head. */
	s->limit = __atomic_load_n(&s->ring.page->head, __ATOMIC_ACQUIRE) + s->ring.mask + 1;
	return err == 0;
}

/*
 * Claims at our own last position, the frontier while nobody else sends. The slots' stale content
 * may be overwritten once this says true; s->next is where they start, *word what the claim
 * replaced.
 */
INLINE bool claim(struct shm_link *s, uint32_t slots, uint64_t *word)
{
	uint64_t pos = s->next, *at = ring_claim_at(&s->ring, pos);
	uint64_t lap = ring_lap_bits(&s->ring, pos);

	*word = __atomic_load_n(at, __ATOMIC_RELAXED);
	return pos + slots <= s->limit && claim_stale(*word, lap) &&
	       __atomic_compare_exchange_n(at, word, lap | s->owner | slots, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The payload is in place: hand the line over. Pairs with the acquire in shm_turn. */
INLINE int publish(struct shm_link *s, struct ring_slot *slot, uint32_t slots, uint64_t word)
{
	uint64_t pos = s->next;

	__atomic_store_n(&slot->token, s->ring.secret + pos, __ATOMIC_RELEASE);
	s->next = pos + slots;
	if (__builtin_expect((word & CLAIM_SLEEP) != 0, 0))
		return wake_owner(s);
	return 0;
}

/* Everything of a packet but its payload and token, into the slot at s->next. */
INLINE struct ring_slot *write_header(struct shm_link *s, const struct packet *p)
{
	struct ring_slot *slot = ring_slot_at(&s->ring, s->next);

	slot->src = s->src;
	slot->head = p->head;
	slot->tag = p->tag;
	slot->len = (uint32_t)p->len;
	if (wire_flags(p->head) & WIRE_DATA)
		memcpy(slot->rest, &p->data, sizeof(p->data));
	return slot;
}

INLINE int send_pieces(struct link *link, const struct packet *p, const struct iovec *iov,
		       size_t count)
{
	struct shm_link *s = (struct shm_link *)link;
	size_t hdr = header_len(p->head);
	uint32_t slots = slots_of(hdr + p->len);
	struct ring_slot *slot;
	unsigned char *to;
	uint64_t word;

	if (__builtin_expect(!claim(s, slots, &word), 0) && !claim_slow(s, slots, &word))
		return -FI_EAGAIN;
	slot = write_header(s, p);
	to = (unsigned char *)slot + hdr;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
	return publish(s, slot, slots, word);
}

int shm_sendv(struct link *link, const struct packet *p, const struct iovec *iov, size_t count)
{
	return send_pieces(link, p, iov, count);
}

/* Packets of any size, whatever the state of the ring. */
static __attribute__((noinline)) int send_any(struct link *link, uint64_t head, uint64_t tag,
					      uint64_t data, const void *buf, size_t len)
{
	struct packet p = {.head = head, .tag = tag, .data = data, .len = len};
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	return send_pieces(link, &p, &iov, 1);
}

/* The header is written; the payload and the rest remain. */
static __attribute__((noinline)) int send_copy(struct shm_link *s, struct ring_slot *slot,
					       const void *buf, size_t len, uint64_t word)
{
	if (len)
		memcpy(slot->rest, buf, len);
	return publish(s, slot, 1, word);
}

int shm_send(struct link *link, uint64_t head, uint64_t tag, uint64_t data, const void *buf,
	     size_t len)
{
	struct shm_link *s = (struct shm_link *)link;
	struct packet p = {.head = head, .tag = tag, .len = len};
	struct ring_slot *slot;
	uint64_t word;

	if (len > sizeof(slot->rest) || wire_flags(head) & WIRE_DATA ||
	    __builtin_expect(!claim(s, 1, &word), 0))
		return send_any(link, head, tag, data, buf, len);
	slot = write_header(s, &p);
	if (len != 8)
		return send_copy(s, slot, buf, len, word);
	memcpy(slot->rest, buf, 8);
	return publish(s, slot, 1, word);
}
