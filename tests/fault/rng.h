/* SPDX-License-Identifier: BSD-2-Clause */
/* Random choices that a seed repeats. */
#ifndef FAULT_RNG_H
#define FAULT_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t at;
};

static inline uint64_t rng_mix(uint64_t v)
{
	v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
	return v ^ v >> 31;
}

static inline uint64_t rng_next(struct rng *r)
{
	return rng_mix(r->at += UINT64_C(0x9e3779b97f4a7c15));
}

/* Returns a number below `n`. */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)((rng_next(r) >> 32) * n >> 32);
}

static inline bool rng_one_in(struct rng *r, uint32_t n)
{
	return rng_below(r, n) == 0;
}

/* Returns a number of up to `bits` bits; small ones are as likely as large ones. */
static inline uint64_t rng_bits(struct rng *r, unsigned int bits)
{
	unsigned int n = rng_below(r, bits + 1);

	return n ? rng_next(r) >> (64 - n) : 0;
}

#define RNG_CHOOSE(r, table) (table)[rng_below(r, sizeof(table) / sizeof((table)[0]))]

#endif
