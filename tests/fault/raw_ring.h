/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receive ring of shared memory, as docs/SHM-LAYOUT.md describes it: raw clients write packets to
 * an endpoint's ring beside its other peers, and read a ring of their own.
 */
#ifndef FAULT_RAW_RING_H
#define FAULT_RAW_RING_H

#include <sys/stat.h>

#include "raw_client.h"

#define DATA           0x02 /* a packet's flag: 8 bytes of data come before the payload */
#define RING_SLOT      64u
#define RING_GUARDS    55u
#define RING_MOST      257u /* slots that one packet takes at most */
#define RING_CLAIM_MS  5    /* how long a raw client waits for free slots */
#define CLAIM_SLEEP    (UINT64_C(1) << 32)
#define RING_TAKEN     (UINT64_C(1) << 62)
#define RING_CANCELLED (UINT64_C(1) << 63)

struct raw_ring_page {
	uint32_t magic, slots;
	uint64_t secret;
	uint64_t head __attribute__((aligned(64)));
	uint64_t hint __attribute__((aligned(64)));
	uint32_t closed __attribute__((aligned(64)));
	struct {
		uint64_t word __attribute__((aligned(64)));
	} guards[RING_GUARDS];
	uint64_t joint[8] __attribute__((aligned(64)));
	uint32_t uses[64];
};

struct raw_slot {
	uint64_t token;
	uint32_t src, len;
	uint64_t head, tag;
	unsigned char rest[32];
};

struct raw_ring {
	struct raw_ring_page *page; /* NULL: not mapped */
	uint64_t *claims;
	unsigned char *slots; /* mapped twice in a row */
	uint64_t secret;
	uint32_t mask, shift;
	size_t map_len;
};

/* Slots that a raw client has claimed. */
struct raw_claim {
	uint64_t pos, word; /* `word`: the claim word before */
	uint32_t slots;
};

static inline struct raw_slot *raw_ring_slot(const struct raw_ring *r, uint64_t pos)
{
	return (struct raw_slot *)(r->slots + (pos & r->mask) * RING_SLOT);
}

static inline uint32_t raw_ring_lap(const struct raw_ring *r, uint64_t pos)
{
	return pos >> r->shift & 0x7fffffff;
}

/* Maps the ring of `fd`, which the caller keeps. */
static inline void raw_ring_map(struct raw_ring *r, int fd)
{
	struct page page;
	size_t claims, slots, len;
	unsigned char *base;

	if (pread(fd, &page, sizeof(page), 0) != sizeof(page))
		fail("a ring's page: %s", strerror(errno));
	claims = (page.slots * sizeof(uint64_t) + RING_PAGE - 1) & ~(size_t)(RING_PAGE - 1);
	slots = (size_t)page.slots * RING_SLOT;
	len = RING_PAGE + claims + slots;
	base = mmap(NULL, len + slots, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED ||
	    mmap(base, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(base + len, slots, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		 (off_t)(RING_PAGE + claims)) == MAP_FAILED)
		fail("cannot map a ring: %s", strerror(errno));
	*r = (struct raw_ring){.page = (struct raw_ring_page *)(void *)base,
			       .claims = (uint64_t *)(void *)(base + RING_PAGE),
			       .slots = base + RING_PAGE + claims,
			       .secret = page.secret,
			       .mask = page.slots - 1,
			       .shift = (uint32_t)__builtin_ctz(page.slots),
			       .map_len = len + slots};
}

static inline void raw_ring_unmap(struct raw_ring *r)
{
	if (r->page)
		munmap(r->page, r->map_len);
	r->page = NULL;
}

/* Makes an empty ring and maps it. Returns its file. */
static inline int raw_ring_make(struct raw_ring *r, uint64_t secret)
{
	int fd = ring_file(RING_LEN, SEALS, (struct page){RING_MAGIC, RING_SLOTS, secret});

	raw_ring_map(r, fd);
	r->page->head = r->page->hint = RING_SLOTS;
	return fd;
}

/* Moves *pos to the first position whose claim word is of an earlier lap. False: look again. */
static inline bool raw_ring_frontier(const struct raw_ring *r, uint64_t *pos, uint64_t *word)
{
	for (uint32_t i = 0; i <= r->mask; i++) {
		int32_t ahead;

		*word = __atomic_load_n(&r->claims[*pos & r->mask], __ATOMIC_ACQUIRE);
		ahead = (int32_t)(((uint32_t)(*word >> 33) - raw_ring_lap(r, *pos)) << 1);
		if (ahead < 0)
			return true;
		if (ahead > 0 || (*word & 4095) - 1 >= RING_MOST)
			return false;
		*pos += *word & 4095;
	}
	return false;
}

/*
 * Claims slots as the peer number `id`. Wakes the endpoint by `sock` if it sleeps. False: no slots
 * are free.
 */
static inline bool raw_ring_claim(struct raw_ring *r, int sock, uint32_t id, uint32_t slots,
				  struct raw_claim *c)
{
	uint64_t end = now_ms() + RING_CLAIM_MS;

	for (*c = (struct raw_claim){.slots = slots}; now_ms() <= end; sched_yield()) {
		uint64_t head = __atomic_load_n(&r->page->head, __ATOMIC_ACQUIRE);
		uint64_t hint = __atomic_load_n(&r->page->hint, __ATOMIC_RELAXED);

		c->pos = hint - head <= r->mask ? hint : head;
		if (!raw_ring_frontier(r, &c->pos, &c->word) ||
		    c->pos + slots - head > r->mask + UINT64_C(1) ||
		    !__atomic_compare_exchange_n(&r->claims[c->pos & r->mask], &c->word,
						 (uint64_t)raw_ring_lap(r, c->pos) << 33 |
							 (uint64_t)(id & 0xfffff) << 12 | slots,
						 false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&r->page->hint, c->pos, __ATOMIC_RELAXED);
		if (c->word & CLAIM_SLEEP)
			send(sock, "w", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		return true;
	}
	return false;
}

/* Writes a packet into claimed slots. */
static inline void raw_ring_fill(const struct raw_ring *r, const struct raw_claim *c,
				 const struct frame *f, uint32_t src, const void *payload,
				 size_t len)
{
	struct raw_slot *s = raw_ring_slot(r, c->pos);
	size_t at = f->head >> 8 & DATA ? 8 : 0;

	s->src = src;
	s->len = f->len;
	s->head = f->head;
	s->tag = f->tag;
	if (at)
		memcpy(s->rest, &f->data, sizeof(f->data));
	if (len)
		memcpy(s->rest + at, payload, len);
}

static inline uint32_t raw_ring_slots(const struct frame *f, size_t len)
{
	return (uint32_t)((32 + (f->head >> 8 & DATA ? 8 : 0) + len + RING_SLOT - 1) / RING_SLOT);
}

/* The claimed slots become a packet, or (`state` not 0) what that state says. */
static inline void raw_ring_publish(struct raw_ring *r, const struct raw_claim *c, uint64_t state)
{
	__atomic_store_n(&raw_ring_slot(r, c->pos)->token, r->secret + c->pos + state,
			 __ATOMIC_RELEASE);
}

/* The owner: returns the packet at the head, or NULL. */
static inline const struct raw_slot *raw_ring_peek(const struct raw_ring *r)
{
	uint64_t head = r->page->head;
	struct raw_slot *s = raw_ring_slot(r, head);

	return __atomic_load_n(&s->token, __ATOMIC_ACQUIRE) == r->secret + head ? s : NULL;
}

/* The owner: frees the slots of the packet at the head. */
static inline void raw_ring_step(struct raw_ring *r)
{
	uint64_t head = r->page->head, slots = r->claims[head & r->mask] & 4095;

	__atomic_store_n(&r->page->head, head + (slots ? slots : 1), __ATOMIC_RELEASE);
}

#endif
