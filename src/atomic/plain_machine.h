/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes and pragmas of compiler and processor for the plain kernels. */
#ifndef WEFT_ATOMIC_PLAIN_MACHINE_H
#define WEFT_ATOMIC_PLAIN_MACHINE_H

#include <stdbool.h>

/* For functions that run on any processor of the architecture. */
#define PLAIN_ANY

#if defined(__x86_64__)

/* For functions that may run only if plain_wide(). */
#define PLAIN_WIDE __attribute__((target("avx2")))

static inline bool plain_wide(void)
{
	return __builtin_cpu_supports("avx2");
}

#else

#define PLAIN_WIDE

static inline bool plain_wide(void)
{
	return false;
}

#endif

/* For loops: few vectors per iteration; no vectors. gcc -O2 does so without a pragma. */
#if defined(__clang__)
#define PLAIN_TIGHT  _Pragma("clang loop unroll(disable) interleave_count(2)")
#define PLAIN_SCALAR _Pragma("clang loop unroll(disable) vectorize(disable)")
#else
#define PLAIN_TIGHT
#define PLAIN_SCALAR
#endif

#endif
