/* SPDX-License-Identifier: BSD-2-Clause */
/* Loops shared by kernels. In a file of their own, or the compiler would inline them into each. */
#include "atomic/atomic_each.h"

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
