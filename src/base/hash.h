/* SPDX-License-Identifier: BSD-2-Clause */
/* One step of a hash: every input bit affects every output bit. The same in every process. */
#ifndef WEFT_BASE_HASH_H
#define WEFT_BASE_HASH_H

#include <stdint.h>

static inline uint64_t hash_mix(uint64_t x)
{
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 32;
}

#endif
