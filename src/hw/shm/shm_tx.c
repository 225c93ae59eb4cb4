/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending: claim slots, write, publish, and wake the owner if it sleeps. The path of an 8-byte
 * message calls no function, so it needs no stack frame; all other cases leave it by a tail call.
 * tests/source/hotpath.py counts its instructions.
 */
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/copy.h"
#include "hw/shm/shm.h"
#include "link/wire.h"

#define COLD   __attribute__((noinline, cold))
#define INLINE static inline __attribute__((always_inline))

/*
 * Claims on the slow path, refused ones included, after which the peer's ring is populated. A sender that reaches this
 * number shares the ring with others or sends much, and would fault at every page.
 */
#define POPULATE_AFTER 32
/* Claims on the slow path, of which one starts at the head: a wrong hint may have led beyond the frontier. */
#define START_OVER 64

static inline uint32_t slots_of(size_t bytes)
{
	return (uint32_t)((bytes + RING_SLOT - 1) / RING_SLOT);
}

/* A full socket holds unread wake-ups already. Returns 0: the packet is out. */
static COLD int wake_owner(struct shm_link *s)
{
	send(s->sock, &(char){BOOT_WAKE}, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	return 0;
}

/* Claimed slots, before they are published. */
struct claimed {
	struct link_slot *slot;
	uint64_t pos;
	uint64_t word; /* the claim word before our claim */
};

/* Prefetches a cache line for writing while the claim is still being made. */
INLINE void want_line(void *line)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* Claims at the end of our last claim. That is the frontier as long as nobody else sends. */
INLINE bool claim(const struct shm_link *s, uint32_t slots, struct claimed *c)
{
	uint64_t pos = s->next;
	uint64_t *at = ring_claim_at(&s->ring, pos);
	struct link_slot *slot = ring_slot_at(&s->ring, pos);
	uint64_t word;
	bool ours;

	want_line(slot);
	word = __atomic_load_n(at, __ATOMIC_RELAXED);
	ours = pos + (slots - 1) < s->stop && claim_stale(word, s->lap) &&
	       __atomic_compare_exchange_n(at, &word, s->claim | slots, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);

	*c = (struct claimed){slot, pos, word};
	return ours;
}

void shm_expect(struct shm_link *s, uint64_t pos)
{
	uint64_t end = (pos | s->ring.mask) + 1;

	s->stop = end < s->limit ? end : s->limit;
	s->lap = ring_lap_bits(&s->ring, pos);
	s->claim = s->lap | claim_word(0, s->src, 0);
}

/*
 * Claims at the frontier, wherever it is. Refuses a second lap of the peer's ring without a
 * progress call of our worker in between: a worker that only sends would never see an XOFF.
 */
static COLD bool claim_slow(struct shm_link *s, uint32_t slots, struct claimed *c)
{
	bool lap_over = s->next + slots > s->limit;
	int err;

	if (s->slow++ == POPULATE_AFTER)
		shm_ring_populate(&s->ring);
	if (lap_over && s->own->progress_calls == s->calls_seen) {
		idle_end(s->own->opener->idle);
		return false;
	}
	if (lap_over)
		s->calls_seen = s->own->progress_calls;
	if (s->slow % START_OVER == 0)
		s->next = __atomic_load_n(&s->ring.page->head, __ATOMIC_ACQUIRE);
	err = shm_ring_claim(&s->ring, &s->next, s->src, slots, &c->word);
	/* Pairs with the release in shm_rx.c shm_publish_head. */
	s->limit = __atomic_load_n(&s->ring.page->head, __ATOMIC_ACQUIRE) + s->ring.mask + 1;
	c->pos = s->next;
	c->slot = ring_slot_at(&s->ring, c->pos);
	shm_expect(s, err ? c->pos : c->pos + slots);
	return err == 0;
}

/* Publishes the packet; the payload is in place. Pairs with the acquire of shm_progress. */
INLINE int publish(struct shm_link *s, struct claimed c, uint32_t slots)
{
	__atomic_store_n(&c.slot->token, s->ring.secret + c.pos, __ATOMIC_RELEASE);
	s->next = c.pos + slots;
	if (__builtin_expect((c.word & CLAIM_SLEEP) != 0, 0))
		return wake_owner(s);
	return 0;
}

/* Writes all of a packet except data, payload and token. */
INLINE void write_header(const struct shm_link *s, struct link_slot *slot, uint64_t head,
			 uint64_t tag, uint32_t len)
{
	slot->src = s->src;
	slot->len = len;
	slot->head = head;
	slot->tag = tag;
}

INLINE int send_fragments(struct link *link, const struct packet *p, const struct iovec *iov,
			  size_t count)
{
	struct shm_link *s = (struct shm_link *)link;
	size_t hdr = shm_header_len(p->head);
	uint32_t slots = slots_of(hdr + p->len);
	struct claimed c, other;
	unsigned char *to;

	if (__builtin_expect(!claim(s, slots, &c), 0)) {
		if (!claim_slow(s, slots, &other))
			return -FI_EAGAIN;
		c = other;
	}
	write_header(s, c.slot, p->head, p->tag, (uint32_t)p->len);
	if (wire_flags(p->head) & WIRE_DATA)
		memcpy(c.slot->rest, &p->data, sizeof(p->data));
	/* The peer reads claims of long packets. */
	want_line(ring_claim_at(&s->ring, c.pos + slots));
	to = (unsigned char *)c.slot + hdr;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len)
			shm_copy(&s->copier[iov[i].iov_len > SHM_COPY_SINGLE], to, iov[i].iov_base,
				 iov[i].iov_len);
		to += iov[i].iov_len;
	}
	s->link.last = c.pos;
	return publish(s, c, slots);
}

int shm_sendv(struct link *link, const struct packet *p, const struct iovec *iov, size_t count)
{
	return send_fragments(link, p, iov, count);
}

/* Sends a packet of any size up to eager_max, by the slow path if necessary. */
static __attribute__((noinline)) int send_any(struct link *link, const void *buf, size_t len,
					      uint64_t data, uint64_t head, uint64_t tag)
{
	struct packet p = {.head = head, .tag = tag, .data = data, .len = len};
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	return len > link->eager_max ? -FI_EMSGSIZE : send_fragments(link, &p, &iov, 1);
}

/* Longest payload, in bytes, of a one-slot packet, and of one with data. */
#define SLOT_MAX (RING_SLOT - 32u)
#define DATA_MAX (RING_SLOT - 40u)

/* Sends a packet with data. Short one-sided requests are such packets, too. */
static __attribute__((noinline)) int send_data(struct link *link, const void *buf, size_t len,
					       uint64_t data, uint64_t head, uint64_t tag)
{
	struct shm_link *s = (struct shm_link *)link;
	struct claimed c;

	if (__builtin_expect(len > DATA_MAX || !claim(s, 1, &c), 0))
		return send_any(link, buf, len, data, head, tag);
	write_header(s, c.slot, head, tag, (uint32_t)len);
	memcpy(c.slot->rest, &data, sizeof(data));
	copy_few(c.slot->rest + 8, buf, len);
	s->link.last = c.pos;
	return publish(s, c, 1);
}

/* Sends a packet without data that fits one slot. */
static __attribute__((noinline)) int send_slot(struct link *link, const void *buf, size_t len,
					       uint64_t data, uint64_t head, uint64_t tag)
{
	struct shm_link *s = (struct shm_link *)link;
	struct claimed c;

	if (__builtin_expect(len > SLOT_MAX || !claim(s, 1, &c), 0))
		return send_any(link, buf, len, data, head, tag);
	write_header(s, c.slot, head, tag, (uint32_t)len);
	if (len)
		memcpy(c.slot->rest, buf, len);
	return publish(s, c, 1);
}

int shm_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
	     uint64_t tag)
{
	struct shm_link *s = (struct shm_link *)link;
	struct claimed c;

	if (__builtin_expect(wire_flags(head) & WIRE_DATA, 0))
		return send_data(link, buf, len, data, head, tag);
	if (__builtin_expect(len != 8, 0))
		return send_slot(link, buf, len, data, head, tag);
	if (__builtin_expect(!claim(s, 1, &c), 0))
		return send_any(link, buf, 8, 0, head, tag);
	write_header(s, c.slot, head, tag, 8);
	memcpy(c.slot->rest, buf, 8);
	return publish(s, c, 1);
}
