/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plain kernels. Each goes through blocks of a fixed number of elements, which compilers turn
 * into vector instructions even where they shun the code for leftovers (gcc -O2), then through the
 * rest. A block exists twice: for every machine, and for those with wide vectors.
 */
#include "atomic/atomic.h"
#include "atomic/atomic_rows.h"
#include "atomic/atomic_types.h"
#include "atomic/plain_machine.h"

#define TYPES (FI_FLOAT8_E5M2 + 1)
#define OPS   (FI_DIFF + 1)
#define BLOCK 64 /* elements */

#define NOINLINE __attribute__((noinline))

/* new_##op##_##n gives the new element. */
#define PLAIN_BLOCK(n, name, op)                                                                   \
	static void name(n *restrict target, const n *restrict operand)                            \
	{                                                                                          \
		for (int i = 0; i < BLOCK; i++)                                                    \
			target[i] = new_##op##_##n(target[i], operand[i]);                         \
	}

#define PLAIN_KERNEL(n, op)                                                                        \
	NOINLINE PLAIN_BLOCK(n, op##_##n##_block, op)                                              \
	NOINLINE PLAIN_WIDE PLAIN_BLOCK(n, op##_##n##_wide, op) static void op##_##n(              \
		void *target, const void *operand, size_t count)                                   \
	{                                                                                          \
		void (*const block)(n *, const n *) =                                              \
			plain_wide() ? op##_##n##_wide : op##_##n##_block;                         \
		const n *v = operand;                                                              \
		n *t = target;                                                                     \
                                                                                                   \
		for (; count >= BLOCK; count -= BLOCK, t += BLOCK, v += BLOCK)                     \
			block(t, v);                                                               \
		for (; count > 0; count--, t++, v++)                                               \
			*t = new_##op##_##n(*t, *v);                                               \
	}

#define COMPUTED(n, id, op, e)                                                                     \
	static inline n new_##op##_##n(n target, n operand)                                        \
	{                                                                                          \
		const n##_value t = n##_get(target), v = n##_get(operand);                         \
                                                                                                   \
		return n##_put(e);                                                                 \
	}                                                                                          \
	PLAIN_KERNEL(n, op)

#define CHOSEN(n, id, op, e)                                                                       \
	static inline n new_##op##_##n(n target, n operand)                                        \
	{                                                                                          \
		const n##_value t = n##_get(target), v = n##_get(operand);                         \
                                                                                                   \
		return (e) ? operand : target;                                                     \
	}                                                                                          \
	PLAIN_KERNEL(n, op)

#define WORD(w)                                                                                    \
	ATOMIC_ARITHMETIC(COMPUTED, w)                                                             \
	ATOMIC_BITWISE(COMPUTED, w)
#define INTEGER(type, n, w) ATOMIC_EXTREMES(CHOSEN, n)
#define COMPLEX(type, n, w) ATOMIC_ARITHMETIC(COMPUTED, n)
#define REAL(type, n, w)                                                                           \
	ATOMIC_ARITHMETIC(COMPUTED, n)                                                             \
	ATOMIC_EXTREMES(CHOSEN, n)

WORD(u8)
WORD(u16)
WORD(u32)
WORD(u64)
WORD(u128)
ATOMIC_INTEGERS(INTEGER)
ATOMIC_REALS(REAL)
ATOMIC_COMPLEXES(COMPLEX)

#define COPY(w)                                                                                    \
	static void write_##w(void *target, const void *operand, size_t count)                     \
	{                                                                                          \
		memcpy(target, operand, count * sizeof(w));                                        \
	}

COPY(u8)
COPY(u16)
COPY(u32)
COPY(u64)
COPY(u128)
COPY(u256)

#define ENTRY(n, id, op, e) [id] = op##_##n,
#define ROW(type, w, ...)   [type] = {[FI_ATOMIC_WRITE] = write_##w, __VA_ARGS__},
#define INTEGER_ROW(type, n, w)                                                                    \
	ROW(type, w, ATOMIC_ARITHMETIC(ENTRY, w) ATOMIC_BITWISE(ENTRY, w) ATOMIC_EXTREMES(ENTRY, n))
#define REAL_ROW(type, n, w)    ROW(type, w, ATOMIC_ARITHMETIC(ENTRY, n) ATOMIC_EXTREMES(ENTRY, n))
#define COMPLEX_ROW(type, n, w) ROW(type, w, ATOMIC_ARITHMETIC(ENTRY, n))

static plain_kernel *const kernels[TYPES][OPS] = {
	ATOMIC_INTEGERS(INTEGER_ROW) ATOMIC_REALS(REAL_ROW) ATOMIC_COMPLEXES(COMPLEX_ROW)};

plain_kernel *plain_find(enum fi_op op, enum fi_datatype type)
{
	if ((unsigned int)op >= OPS || (unsigned int)type >= TYPES)
		return NULL;
	return kernels[type][op];
}
