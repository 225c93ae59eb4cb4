/* SPDX-License-Identifier: BSD-2-Clause */
/* Loops that kernels share. Apart from the kernels, so that no compiler makes copies after all. */
#include "atomic/atomic_each.h"

void atomic_each_u8(const struct atomic_args *a, atomic_step *step)
{
	each_u8(a, step);
}

void atomic_each_u16(const struct atomic_args *a, atomic_step *step)
{
	each_u16(a, step);
}

/* No processor exchanges that much. */
void atomic_each_u256(const struct atomic_args *a, atomic_step *step)
{
	atomic_locked(a, 32, step);
}
