/* SPDX-License-Identifier: BSD-2-Clause */
/* What a hostile peer can do in the endpoint's ring alone. */
#ifndef FAULT_HOSTILE_RING_ACTS_H
#define FAULT_HOSTILE_RING_ACTS_H

#include "hostile_run.h"

/* Makes a packet of any kind for the ring; returns the length of its payload. */
static inline size_t make_packet(struct run *r, struct raw_link *l)
{
	hostile_make(&r->rng, l, 1 + rng_below(&r->rng, 14), (unsigned int)rng_bits(&r->rng, 8));
	if (hostile.f.len > SHM_PACKET_MAX)
		hostile.f.len = SHM_PACKET_MAX;
	return hostile.f.len;
}

/* Claims slots for a packet of any kind and writes it; it is not published. */
static inline bool claim_packet(struct run *r, struct raw_link *l, uint32_t src,
				struct raw_claim *c)
{
	size_t len = make_packet(r, l);

	if (!raw_ring_claim(&l->ring, l->sock, l->id, raw_ring_slots(&hostile.f, len), c))
		return false;
	raw_ring_fill(&l->ring, c, &hostile.f, src, hostile.payload, len);
	return true;
}

static void claim_never_published(struct run *r, struct raw_link *l)
{
	struct raw_claim c;

	claim_packet(r, l, l->id, &c);
}

static void wrong_token(struct run *r, struct raw_link *l)
{
	static const uint64_t states[] = {1,
					  UINT64_MAX,
					  RING_SLOTS,
					  RING_TAKEN,
					  RING_CANCELLED,
					  UINT64_C(1) << 61,
					  RING_CANCELLED | RING_TAKEN};
	struct raw_claim c;

	if (claim_packet(r, l, l->id, &c))
		raw_ring_publish(&l->ring, &c, RNG_CHOOSE(&r->rng, states));
}

static void length_beyond(struct run *r, struct raw_link *l)
{
	struct raw_claim c;

	if (!claim_packet(r, l, l->id, &c))
		return;
	raw_ring_slot(&l->ring, c.pos)->len = rng_one_in(&r->rng, 2)
						      ? SHM_PACKET_MAX + 1 + rng_below(&r->rng, 64)
						      : UINT32_MAX - rng_below(&r->rng, 64);
	raw_ring_publish(&l->ring, &c, 0);
}

/* A packet of `len` bytes whose claim word says `slots`. */
static void put_unequal(struct raw_link *l, const struct raw_claim *c, uint32_t len, uint32_t slots)
{
	uint64_t *word = &l->ring.claims[c->pos & l->ring.mask];

	raw_ring_slot(&l->ring, c->pos)->len = len;
	__atomic_store_n(word, (*word & ~UINT64_C(4095)) | slots, __ATOMIC_RELEASE);
	raw_ring_publish(&l->ring, c, 0);
}

/* The packet is shorter than its claim. */
static void length_below_claim(struct run *r, struct raw_link *l)
{
	struct raw_claim c;

	if (claim_packet(r, l, l->id, &c))
		put_unequal(l, &c, rng_below(&r->rng, hostile.f.len + 1), c.slots);
}

/* The claim is longer than the packet, from the beginning: later it would take slots of others. */
static void claim_of_more(struct run *r, struct raw_link *l)
{
	size_t len = make_packet(r, l);
	uint32_t slots = raw_ring_slots(&hostile.f, len);
	struct raw_claim c;

	slots += rng_below(&r->rng, RING_MOST + 1 - slots);
	if (!raw_ring_claim(&l->ring, l->sock, l->id, slots, &c))
		return;
	raw_ring_fill(&l->ring, &c, &hostile.f, l->id, hostile.payload, len);
	raw_ring_publish(&l->ring, &c, 0);
}

/*
 * The claim says no slots, or more than any packet takes: the endpoint may give its slots to others.
 * So the packet is there before, and nothing is written behind it.
 */
static void claim_of_nonsense(struct run *r, struct raw_link *l)
{
	struct raw_claim c;
	uint64_t *word, was, said;

	if (!claim_packet(r, l, l->id, &c))
		return;
	word = &l->ring.claims[c.pos & l->ring.mask];
	was = __atomic_load_n(word, __ATOMIC_RELAXED);
	said = rng_one_in(&r->rng, 8) ? 0 : RING_MOST + 1 + rng_below(&r->rng, 4095 - RING_MOST);
	raw_ring_publish(&l->ring, &c, 0);
	__atomic_compare_exchange_n(word, &was, (was & ~UINT64_C(4095)) | said, false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* The packet is longer than its claim, over packets of others. */
static void length_of_others(struct run *r, struct raw_link *l)
{
	struct raw_claim c;

	if (claim_packet(r, l, l->id, &c))
		put_unequal(l, &c,
			    hostile.f.len + rng_below(&r->rng, SHM_PACKET_MAX + 1 - hostile.f.len),
			    c.slots);
}

/* The claim says fewer slots than the packet takes: others claim these, too. */
static void claim_below_length(struct run *r, struct raw_link *l)
{
	struct raw_claim c;

	if (claim_packet(r, l, l->id, &c))
		put_unequal(l, &c, hostile.f.len, 1 + rng_below(&r->rng, c.slots));
}

static void source_nobody_has(struct run *r, struct raw_link *l)
{
	struct raw_claim c;
	uint32_t src = rng_one_in(&r->rng, 2) ? (uint32_t)rng_next(&r->rng) | 1u << 31
					      : rng_below(&r->rng, 1000);

	if (claim_packet(r, l, src, &c))
		raw_ring_publish(&l->ring, &c, 0);
}

/* Returns the source of a packet that another peer has sent lately, or our own. */
static uint32_t another_source(struct run *r, struct raw_link *l)
{
	uint32_t start = rng_below(&r->rng, l->ring.mask + 1);

	for (uint32_t i = 0; i <= l->ring.mask; i++) {
		const struct raw_slot *s = raw_ring_slot(&l->ring, start + i);
		uint64_t pos = s->token - l->ring.secret;

		if (pos - l->ring.page->head + l->ring.mask <= 2 * (uint64_t)l->ring.mask &&
		    raw_ring_slot(&l->ring, pos) == s && s->src != l->id)
			return s->src;
	}
	return l->id;
}

/* A packet in the name of another peer of the ring. */
static void source_of_another(struct run *r, struct raw_link *l)
{
	struct raw_claim c;

	if (claim_packet(r, l, another_source(r, l), &c))
		raw_ring_publish(&l->ring, &c, 0);
}

/*
 * Not if others have the slot by now: this process may have slept since it looked. Zeroes are in
 * packets of others, too; another FOE_DATA would be an event that nobody may cause.
 */
static inline bool replace_word(uint64_t *at, uint64_t was, uint64_t is)
{
	return was && is && was != FOE_DATA &&
	       __atomic_compare_exchange_n(at, &was, is, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Header and payload change after they are published. */
static void words_changed_later(struct run *r, struct raw_link *l)
{
	struct raw_claim c;
	uint64_t *words;

	if (!claim_packet(r, l, l->id, &c))
		return;
	words = (uint64_t *)(void *)raw_ring_slot(&l->ring, c.pos);
	raw_ring_publish(&l->ring, &c, 0);
	/* Until the endpoint has passed: the slots may then be those of others. */
	for (int i = 0; i < 2000 && *(volatile uint64_t *)&l->ring.page->head <= c.pos &&
			*(volatile uint64_t *)words == l->ring.secret + c.pos;
	     i++) {
		uint64_t *at = words + 1 + rng_below(&r->rng, c.slots * 8 - 1);
		uint64_t was = *(volatile uint64_t *)at;
		uint64_t is = rng_one_in(&r->rng, 2) ? hostile_number(&r->rng)
						     : was ^ rng_bits(&r->rng, 64);

		if (replace_word(at, was, is))
			replace_word(at, is, was);
	}
}

/* Guards are taken in any name and not given back. */
static void forged_guards(struct run *r, struct raw_link *l)
{
	for (uint32_t n = 1 + rng_below(&r->rng, 8); n; n--) {
		uint64_t id = rng_one_in(&r->rng, 2) ? l->id : rng_next(&r->rng) >> 32;
		uint64_t *at = &l->ring.page->guards[rng_below(&r->rng, RING_GUARDS)].word;

		__atomic_store_n(at, (rng_next(&r->rng) & ~UINT64_C(0xffffffff)) | id,
				 __ATOMIC_RELEASE);
	}
	add(&scene->kicks); /* the endpoint closes a region */
}

#endif
