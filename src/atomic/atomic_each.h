/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loops over elements. Each loads an element once, has a step work out what becomes of it, and
 * exchanges the very bits it loaded; if they have changed meanwhile, again. As bits are compared
 * and not values, neither a NaN nor what lies in padding can keep it turning.
 */
#ifndef WEFT_ATOMIC_ATOMIC_EACH_H
#define WEFT_ATOMIC_ATOMIC_EACH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "atomic/atomic.h"

/*
 * *t, a copy of the element aligned to its size, becomes what it shall be, given the operand *v and
 * the value *c compared with, both at any alignment and only there if the operator has them. False:
 * the element stays as it is.
 */
typedef bool atomic_step(void *t, const void *v, const void *c);

/* Element i of an array. Where there is no array nobody looks at what this gives. */
static inline void *atomic_at(const void *array, size_t i, size_t size)
{
	return (void *)((uintptr_t)array + i * size);
}

static inline bool atomic_aligned(const struct atomic_args *a, size_t size)
{
	return (uintptr_t)a->target % size == 0;
}

/* Under locks, elements of at most 32 bytes at any address. */
void atomic_locked(const struct atomic_args *a, size_t size, atomic_step *step);

/* The releases and acquires are each other's partners, in whatever thread or process. */
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

/* For kernels that are worth a loop of their own, with the step in it. */
ATOMIC_EACH(u8, uint8_t)
ATOMIC_EACH(u16, uint16_t)
ATOMIC_EACH(u32, uint32_t)
ATOMIC_EACH(u64, uint64_t)

/* For the others, one loop for all. */
void atomic_each_u8(const struct atomic_args *a, atomic_step *step);
void atomic_each_u16(const struct atomic_args *a, atomic_step *step);
void atomic_each_u128(const struct atomic_args *a, atomic_step *step);
void atomic_each_u256(const struct atomic_args *a, atomic_step *step);

#endif
