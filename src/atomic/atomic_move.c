/* SPDX-License-Identifier: BSD-2-Clause */
/* The atomic kernels that move words, whatever their type. */
#include "atomic/atomic_make.h"

static inline bool atomic_move_keep(void *t, const void *v, const void *c)
{
	(void)t;
	(void)v;
	(void)c;
	return false;
}

#define READ(w, each)                                                                              \
	void atomic_read_##w(const struct atomic_args *a)                                          \
	{                                                                                          \
		each(a, atomic_move_keep);                                                         \
	}

#define REPLACE(w)                                                                                 \
	static inline bool replace_##w(void *t, const void *v, const void *c)                      \
	{                                                                                          \
		(void)c;                                                                           \
		*(w *)t = *(const w *)v;                                                           \
		return true;                                                                       \
	}

/* If the old value is not wanted, a store is enough. */
#define WRITE(w)                                                                                   \
	void atomic_write_##w(const struct atomic_args *args)                                      \
	{                                                                                          \
		const struct atomic_args a = *args;                                                \
		w##_shared *target = a.target;                                                     \
                                                                                                   \
		if (a.result || !atomic_aligned(&a, sizeof(w))) {                                  \
			each_##w(args, replace_##w);                                               \
			return;                                                                    \
		}                                                                                  \
		for (size_t i = 0; i < a.count; i++)                                               \
			__atomic_store_n(&target[i],                                               \
					 *(const w *)atomic_at(a.operand, i, sizeof(w)),           \
					 __ATOMIC_RELEASE);                                        \
	}

#define WRITE_WIDE(w)                                                                              \
	void atomic_write_##w(const struct atomic_args *a)                                         \
	{                                                                                          \
		atomic_each_##w(a, replace_##w);                                                   \
	}

#define NARROW(w)                                                                                  \
	READ(w, each_##w)                                                                          \
	REPLACE(w)                                                                                 \
	WRITE(w)
#define WIDE(w)                                                                                    \
	READ(w, atomic_each_##w)                                                                   \
	REPLACE(w)                                                                                 \
	WRITE_WIDE(w)

NARROW(u8)
NARROW(u16)
NARROW(u32)
NARROW(u64)
WIDE(u128)
WIDE(u256)
