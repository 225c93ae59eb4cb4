/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 16-byte elements: one instruction where the processor has it, else under locks. The compiler's
 * library is not used: it may use locks, which other processes do not see.
 */
#include "atomic/atomic_each.h"

#define WIDE 16 /* bytes */

typedef unsigned __int128 wide __attribute__((may_alias));

#if defined(__x86_64__)

#include <cpuid.h>

/*
 * Needs cmpxchg16b, and AVX: processor makers guarantee that movdqa loads atomically on processors
 * with AVX. (An exchange could load too, but not from read-only memory.) cpuid is slow on virtual
 * machines, so the result is kept; concurrent first calls find the same.
 */
static bool processor_can(void)
{
	static int known; /* 1: it can; -1: it cannot; 0: not known */
	const unsigned int need = bit_CMPXCHG16B | bit_AVX;
	unsigned int a, b, c, d;
	int can = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (can == 0) {
		can = __get_cpuid(1, &a, &b, &c, &d) && (c & need) == need ? 1 : -1;
		__atomic_store_n(&known, can, __ATOMIC_RELAXED);
	}
	return can > 0;
}

/* Acquire, like all loads on x86. */
static inline wide atomic_wide_load(const wide *p)
{
	uint64_t value __attribute__((vector_size(WIDE)));

	__asm__ volatile("movdqa %1, %0" : "=x"(value) : "m"(*p) : "memory");
	return (wide)value;
}

/* If *p == *old, sets *p = new, else *old = *p. Acquire and release, as all locked instructions. */
static inline bool atomic_wide_exchange(wide *p, wide *old, wide new)
{
	uint64_t low = (uint64_t)*old, high = (uint64_t)(*old >> 64);
	bool done;

	__asm__ volatile("lock cmpxchg16b %1"
			 : "=@ccz"(done), "+m"(*p), "+a"(low), "+d"(high)
			 : "b"((uint64_t) new), "c"((uint64_t)(new >> 64))
			 : "memory");
	*old = (wide)high << 64 | low;
	return done;
}

#elif defined(__aarch64__)

#include <sys/auxv.h>

static bool processor_can(void)
{
	return true;
}

/*
 * If *p == *old, sets *p = new, else *old = *p. Acquire and release. A pair is loaded as a whole only if
 * the store that belongs to the load succeeds, so it is stored in either case.
 */
static inline bool atomic_wide_exchange(wide *p, wide *old, wide new)
{
	uint64_t low, high, to_low, to_high;
	uint32_t failed;
	wide found;

	__asm__ volatile("1:	ldaxp	%[low], %[high], %[p]\n"
			 "	cmp	%[low], %[old_low]\n"
			 "	ccmp	%[high], %[old_high], #0, eq\n"
			 "	csel	%[to_low], %[new_low], %[low], eq\n"
			 "	csel	%[to_high], %[new_high], %[high], eq\n"
			 "	stlxp	%w[failed], %[to_low], %[to_high], %[p]\n"
			 "	cbnz	%w[failed], 1b"
			 : [low] "=&r"(low), [high] "=&r"(high), [to_low] "=&r"(to_low),
			   [to_high] "=&r"(to_high), [failed] "=&r"(failed), [p] "+Q"(*p)
			 : [old_low] "r"((uint64_t)*old), [old_high] "r"((uint64_t)(*old >> 64)),
			   [new_low] "r"((uint64_t) new), [new_high] "r"((uint64_t)(new >> 64))
			 : "cc", "memory");
	found = (wide)high << 64 | low;
	if (found == *old)
		return true;
	*old = found;
	return false;
}

/* Acquire. */
static inline wide load_pair(const wide *p)
{
	uint64_t low, high;

	__asm__ volatile("ldp	%0, %1, %2\n"
			 "	dmb	ishld"
			 : "=r"(low), "=r"(high)
			 : "Q"(*p)
			 : "memory");
	return (wide)high << 64 | low;
}

/*
 * Processors with LSE2 load an aligned pair at once. On others a value that is found twice was there
 * between the two loads, unless three changes came meanwhile and brought both halves back; the exchange
 * notices even that. (An exchange could load, too, but not from read-only memory.)
 */
static inline wide atomic_wide_load(const wide *p)
{
	bool whole = getauxval(AT_HWCAP) & HWCAP_USCAT;
	wide value = load_pair(p), again = value;

	while (!whole && value != (again = load_pair(p)))
		value = again;
	return value;
}

#endif

#if defined(__x86_64__) || defined(__aarch64__)

void atomic_each_u128(const struct atomic_args *args, atomic_step *step)
{
	const struct atomic_args a = *args;
	wide *target = a.target;

	if (!atomic_aligned(&a, WIDE) || !processor_can()) {
		atomic_locked(args, WIDE, step);
		return;
	}
	for (size_t i = 0; i < a.count; i++) {
		const void *v = atomic_at(a.operand, i, WIDE), *c = atomic_at(a.compare, i, WIDE);
		wide old = atomic_wide_load(&target[i]), new = old;

		while (step(&new, v, c) && !atomic_wide_exchange(&target[i], &old, new))
			new = old;
		if (a.result)
			memcpy(atomic_at(a.result, i, WIDE), &old, WIDE);
	}
}

#else

void atomic_each_u128(const struct atomic_args *a, atomic_step *step)
{
	atomic_locked(a, WIDE, step);
}

#endif
