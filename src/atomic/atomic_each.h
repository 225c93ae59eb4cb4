/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loops over elements. A loop loads an element once, lets a step compute the new value, and
 * exchanges exactly the bits it loaded; if they have changed meanwhile, it repeats. Comparing bits
 * instead of values guarantees that NaNs and padding bytes cannot make the loop endless.
 */
#ifndef WEFT_ATOMIC_ATOMIC_EACH_H
#define WEFT_ATOMIC_ATOMIC_EACH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "atomic/atomic.h"

/*
 * Changes *t, an aligned copy of the element, to its new value. *v is the operand and *c the value to compare with,
 * both at any alignment, valid only if the operator uses them. Returns false if the element stays unchanged.
 */
typedef bool atomic_step(void *t, const void *v, const void *c);

/* Returns the address of element i. If there is no array, the result is not used. */
static inline void *atomic_at(const void *array, size_t i, size_t size)
{
	return (void *)((uintptr_t)array + i * size);
}

static inline bool atomic_aligned(const struct atomic_args *a, size_t size)
{
	return (uintptr_t)a->target % size == 0;
}

/* Processes elements of at most 32 bytes at any address, under locks. */
void atomic_locked(const struct atomic_args *a, size_t size, atomic_step *step);

/* Releases and acquires pair with each other, across threads and processes. */
#define ATOMIC_EACH(w, word)                                                                       \
	typedef word w##_shared __attribute__((may_alias));                                        \
	static inline __attribute__((always_inline)) void each_##w(const struct atomic_args *args, \
								   atomic_step *step)              \
	{                                                                                          \
		const struct atomic_args a = *args;                                                \
		w##_shared *target = a.target;                                                     \
                                                                                                   \
		if (!atomic_aligned(&a, sizeof(word))) {                                           \
			atomic_locked(args, sizeof(word), step);                                   \
			return;                                                                    \
		}                                                                                  \
		for (size_t i = 0; i < a.count; i++) {                                             \
			const void *v = atomic_at(a.operand, i, sizeof(word));                     \
			const void *c = atomic_at(a.compare, i, sizeof(word));                     \
			word old = __atomic_load_n(&target[i], __ATOMIC_ACQUIRE), new = old;       \
                                                                                                   \
			while (step(&new, v, c) &&                                                 \
			       !__atomic_compare_exchange_n(&target[i], &old, new, false,          \
							    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))   \
				new = old;                                                         \
			if (a.result)                                                              \
				memcpy(atomic_at(a.result, i, sizeof(word)), &old, sizeof(word));  \
		}                                                                                  \
	}

/* For kernels that inline the step in a loop of their own. */
ATOMIC_EACH(u8, uint8_t)
ATOMIC_EACH(u16, uint16_t)
ATOMIC_EACH(u32, uint32_t)
ATOMIC_EACH(u64, uint64_t)

/* For other kernels: one shared loop. */
void atomic_each_u8(const struct atomic_args *a, atomic_step *step);
void atomic_each_u16(const struct atomic_args *a, atomic_step *step);
void atomic_each_u128(const struct atomic_args *a, atomic_step *step);
void atomic_each_u256(const struct atomic_args *a, atomic_step *step);

#endif
