/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plain kernels. Blocks of a fixed number of elements are vectorized even by compilers that
 * avoid the extra code for remainders (gcc -O2); a loop over single elements handles the rest.
 */
#include "atomic/atomic.h"
#include "atomic/atomic_rows.h"
#include "atomic/atomic_types.h"

/* ---- Attributes and pragmas of compiler and processor ---- */

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

/* ---- Kernels ---- */

#define BLOCK 64 /* elements */

typedef void plain_block(void *target, const void *operand);

/* Not inlined: it would be a third of each kernel. `block` NULL: no vectors. */
static __attribute__((noinline)) void plain_run(void *target, const void *operand, size_t count,
						size_t size, plain_block *block, plain_kernel *rest)
{
	const char *v = operand;
	char *t = target;

	for (; block && count >= BLOCK; count -= BLOCK, t += BLOCK * size, v += BLOCK * size)
		block(t, v);
	rest(t, v, count);
}

/* Generators of one element's result, a loop over any number, a block. */
#define ONE(n, op, result)                                                                         \
	static inline n op##_##n##_one(n target, n operand)                                        \
	{                                                                                          \
		const n##_value t = n##_get(target), v = n##_get(operand);                         \
                                                                                                   \
		return result;                                                                     \
	}
#define LOOP(n, op, name)                                                                          \
	static void name(void *target, const void *operand, size_t count)                          \
	{                                                                                          \
		const n *v = operand;                                                              \
                                                                                                   \
		PLAIN_SCALAR                                                                       \
		for (size_t i = 0; i < count; i++)                                                 \
			((n *)target)[i] = op##_##n##_one(((n *)target)[i], v[i]);                 \
	}
#define UNIT(n, op, name, attributes)                                                              \
	static attributes void name(void *restrict target, const void *restrict operand)           \
	{                                                                                          \
		const n *v = operand;                                                              \
                                                                                                   \
		PLAIN_TIGHT                                                                        \
		for (int i = 0; i < BLOCK; i++)                                                    \
			((n *)target)[i] = op##_##n##_one(((n *)target)[i], v[i]);                 \
	}

/* Kinds of kernels: vectors on any machine and wide ones; wide ones only; no vectors. */
#define VECTOR(n, op)                                                                              \
	LOOP(n, op, op##_##n##_rest)                                                               \
	UNIT(n, op, op##_##n##_block, PLAIN_ANY)                                                   \
	UNIT(n, op, op##_##n##_wide, PLAIN_WIDE)                                                   \
	static void op##_##n(void *target, const void *operand, size_t count)                      \
	{                                                                                          \
		plain_run(target, operand, count, sizeof(n),                                       \
			  plain_wide() ? op##_##n##_wide : op##_##n##_block, op##_##n##_rest);     \
	}
#define WIDE(n, op)                                                                                \
	LOOP(n, op, op##_##n##_rest)                                                               \
	UNIT(n, op, op##_##n##_wide, PLAIN_WIDE)                                                   \
	static void op##_##n(void *target, const void *operand, size_t count)                      \
	{                                                                                          \
		plain_run(target, operand, count, sizeof(n),                                       \
			  plain_wide() ? op##_##n##_wide : NULL, op##_##n##_rest);                 \
	}
#define SCALAR(n, op) LOOP(n, op, op##_##n)

#define KIND_u8(n, op)   VECTOR(n, op)
#define KIND_i8(n, op)   VECTOR(n, op)
#define KIND_u16(n, op)  VECTOR(n, op)
#define KIND_i16(n, op)  VECTOR(n, op)
#define KIND_u32(n, op)  VECTOR(n, op)
#define KIND_i32(n, op)  VECTOR(n, op)
#define KIND_u64(n, op)  VECTOR(n, op)
#define KIND_i64(n, op)  VECTOR(n, op)
#define KIND_u128(n, op) SCALAR(n, op)
#define KIND_i128(n, op) SCALAR(n, op)
#define KIND_f32(n, op)  VECTOR(n, op)
#define KIND_f64(n, op)  VECTOR(n, op)
#define KIND_f80(n, op)  SCALAR(n, op)
#define KIND_f16(n, op)  WIDE(n, op)
#define KIND_bf16(n, op) WIDE(n, op)
#define KIND_e4m3(n, op) SCALAR(n, op)
#define KIND_e5m2(n, op) SCALAR(n, op)
#define KIND_cf32(n, op) VECTOR(n, op)
#define KIND_cf64(n, op) VECTOR(n, op)
#define KIND_cf80(n, op) SCALAR(n, op)

#define COMPUTED(n, id, op, e)                                                                     \
	ONE(n, op, n##_put(e))                                                                     \
	KIND_##n(n, op)
#define TRUTH(n, id, op, e)                                                                        \
	ONE(n, op, n##_truth(e))                                                                   \
	KIND_##n(n, op)
#define CHOSEN(n, id, op, e)                                                                       \
	ONE(n, op, (e) ? operand : target)                                                         \
	KIND_##n(n, op)

#define NUMBER(n)                                                                                  \
	ATOMIC_ARITHMETIC(COMPUTED, n)                                                             \
	ATOMIC_LOGICAL(TRUTH, n)
#define WORD(n)                                                                                    \
	NUMBER(n)                                                                                  \
	ATOMIC_BITWISE(COMPUTED, n)
#define INTEGER(type, n, w) ATOMIC_EXTREMES(CHOSEN, n)
#define COMPLEX(type, n, w) NUMBER(n)
#define REAL(type, n, w)                                                                           \
	NUMBER(n)                                                                                  \
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
#define COMPLEX_ROW(type, n, w)                                                                    \
	[type] = {[FI_ATOMIC_WRITE] = write_##w,                                                   \
		  ATOMIC_ARITHMETIC(ENTRY, n) ATOMIC_LOGICAL(ENTRY, n)},
#define REAL_ROW(type, n, w)                                                                       \
	[type] = {[FI_ATOMIC_WRITE] = write_##w,                                                   \
		  ATOMIC_ARITHMETIC(ENTRY, n) ATOMIC_LOGICAL(ENTRY, n) ATOMIC_EXTREMES(ENTRY, n)},
#define INTEGER_ROW(type, n, w)                                                                    \
	[type] = {[FI_ATOMIC_WRITE] = write_##w,                                                   \
		  ATOMIC_ARITHMETIC(ENTRY, w) ATOMIC_LOGICAL(ENTRY, w) ATOMIC_BITWISE(ENTRY, w)    \
			  ATOMIC_EXTREMES(ENTRY, n)},

static plain_kernel *const kernels[ATOMIC_TYPES][ATOMIC_OPS] = {
	ATOMIC_INTEGERS(INTEGER_ROW) ATOMIC_REALS(REAL_ROW) ATOMIC_COMPLEXES(COMPLEX_ROW)};

plain_kernel *plain_find(enum fi_op op, enum fi_datatype type)
{
	if ((unsigned int)op >= ATOMIC_OPS || (unsigned int)type >= ATOMIC_TYPES)
		return NULL;
	return kernels[type][op];
}
