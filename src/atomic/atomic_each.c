/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Elements that no instruction can exchange, changed under a lock chosen by their cache line; loops shared by kernels, which
 * the compiler would else inline into each.
 */
#include "atomic/atomic_each.h"
#include "base/forked.h"

#define LINE    64 /* bytes */
#define LARGEST 32 /* bytes of an element */

_Static_assert(FORKED_ELEMENTS_COUNT == 1 << 6, "stripe_of takes six bits");

/* Hashes the cache line in which an element begins, so regular distances use different locks. */
static unsigned int stripe_of(const void *element)
{
	uint64_t line = (uintptr_t)element / LINE;

	return FORKED_ELEMENTS + (unsigned int)(line * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

void atomic_locked(const struct atomic_args *args, size_t size, atomic_step *step)
{
	const struct atomic_args a = *args;
	char old[LARGEST], new[LARGEST] __attribute__((aligned(LARGEST)));

	for (size_t i = 0; i < a.count; i++) {
		void *target = atomic_at(a.target, i, size);
		unsigned int lock = stripe_of(target);

		forked_take(lock);
		memcpy(old, target, size);
		memcpy(new, old, size);
		if (step(new, atomic_at(a.operand, i, size), atomic_at(a.compare, i, size)))
			memcpy(target, new, size);
		forked_give(lock);
		if (a.result)
			memcpy(atomic_at(a.result, i, size), old, size);
	}
}

void atomic_each_u8(const struct atomic_args *a, atomic_step *step)
{
	each_u8(a, step);
}

void atomic_each_u16(const struct atomic_args *a, atomic_step *step)
{
	each_u16(a, step);
}

/* No processor has an atomic instruction for 32 bytes. */
void atomic_each_u256(const struct atomic_args *a, atomic_step *step)
{
	atomic_locked(a, 32, step);
}
