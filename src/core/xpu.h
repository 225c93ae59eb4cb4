/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts of accelerators that post operations by themselves (FI_XPU, from API 2.7). No transport
 * has them: objects that ask for one are refused. fi_domain(3)
 */
#ifndef WEFT_CORE_XPU_H
#define WEFT_CORE_XPU_H

#include <stdint.h>

/*
 * `xpu_ctx` is the member of an attribute structure, which callers of an older interface (`api`) do
 * not have: it is not read then. `call` is for the log. 0, or -FI_ENOSYS for a context.
 */
int xpu_refuse(uint32_t api, void *const *xpu_ctx, const char *call);

#endif
