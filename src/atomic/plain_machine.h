/* SPDX-License-Identifier: BSD-2-Clause */
/* What plain kernels may use beyond what every machine of its kind has. */
#ifndef WEFT_ATOMIC_PLAIN_MACHINE_H
#define WEFT_ATOMIC_PLAIN_MACHINE_H

#include <stdbool.h>

#if defined(__x86_64__)

/* Of functions to be called only if plain_wide(). */
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

#endif
