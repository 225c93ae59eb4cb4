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

/* What was claimed: filled by claim, and by claim_slow at another place. */
struct claimed {
	struct ring_slot *slot;
	uint64_t pos;
	uint64_t word; /* what the claim replaced */
};

static COLD bool claim_slow(struct shm_link *s, uint32_t slots, struct claimed *c)
{
	int err;

	c->pos = s->next;
	err = ring_claim(&s->ring, &c->pos, s->src, slots, &c->word);
	/* Partner: shm_rx.c publish_head. */
	s->limit = __atomic_load_n(&s->ring.page->head, __ATOMIC_ACQUIRE) + s->ring.mask + 1;
	s->next = c->pos;
	c->slot = ring_slot_at(&s->ring, c->pos);
	return err == 0;
}

/*
 * Claims at our own last position, the frontier while nobody else sends. The slots' stale content
 * may be overwritten once this says true.
 */
INLINE bool claim(struct shm_link *s, uint32_t slots, struct claimed *c)
{
	uint64_t pos = s->next, *at = ring_claim_at(&s->ring, pos);
	uint64_t lap = ring_lap_bits(&s->ring, pos);

	c->pos = pos;
	c->slot = ring_slot_at(&s->ring, pos);
	c->word = __atomic_load_n(at, __ATOMIC_RELAXED);
	return pos + slots <= s->limit && claim_stale(c->word, lap) &&
	       __atomic_compare_exchange_n(at, &c->word, lap | s->owner | slots, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The payload is in place: hand the line over. Partner: shm_turn. */
INLINE int publish(struct shm_link *s, const struct claimed *c, uint32_t slots)
{
	__atomic_store_n(&c->slot->token, s->ring.secret + c->pos, __ATOMIC_RELEASE);
	s->next = c->pos + slots;
	if (__builtin_expect((c->word & CLAIM_SLEEP) != 0, 0))
		return wake_owner(s);
	return 0;
}

/* Everything of a packet but its payload and token. */
INLINE void write_header(const struct shm_link *s, struct ring_slot *slot, const struct packet *p)
{
	slot->src = s->src;
	slot->head = p->head;
	slot->tag = p->tag;
	slot->len = (uint32_t)p->len;
	if (wire_flags(p->head) & WIRE_DATA)
		memcpy(slot->rest, &p->data, sizeof(p->data));
}

INLINE int send_pieces(struct link *link, const struct packet *p, const struct iovec *iov,
		       size_t count)
{
	struct shm_link *s = (struct shm_link *)link;
	size_t hdr = header_len(p->head);
	uint32_t slots = slots_of(hdr + p->len);
	struct claimed c;
	unsigned char *to;

	if (__builtin_expect(!claim(s, slots, &c), 0)) {
		struct claimed other;

		if (!claim_slow(s, slots, &other))
			return -FI_EAGAIN;
		c = other;
	}
	write_header(s, c.slot, p);
	to = (unsigned char *)c.slot + hdr;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
	return publish(s, &c, slots);
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

	return len > link->eager_max ? -FI_EMSGSIZE : send_pieces(link, &p, &iov, 1);
}

/* The header is written; the payload and the rest remain. */
static __attribute__((noinline)) int send_copy(struct shm_link *s, struct claimed c,
					       const void *buf, size_t len)
{
	if (len)
		memcpy(c.slot->rest, buf, len);
	return publish(s, &c, 1);
}

int shm_send(struct link *link, uint64_t head, uint64_t tag, uint64_t data, const void *buf,
	     size_t len)
{
	struct shm_link *s = (struct shm_link *)link;
	struct packet p = {.head = head, .tag = tag, .len = len};
	struct claimed c;

	if (len > sizeof(c.slot->rest) || wire_flags(head) & WIRE_DATA)
		return send_any(link, head, tag, data, buf, len);
	if (__builtin_expect(!claim(s, 1, &c), 0))
		return send_any(link, head, tag, 0, buf, len);
	write_header(s, c.slot, &p);
	if (len != 8)
		return send_copy(s, c, buf, len);
	memcpy(c.slot->rest, buf, 8);
	return publish(s, &c, 1);
}
