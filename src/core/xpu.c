/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fabric.h>

#include "base/log.h"
#include "core/xpu.h"

int xpu_refuse(uint32_t api, void *const *xpu_ctx, const char *call)
{
	if (FI_VERSION_LT(api, FI_VERSION(2, 7)) || !*xpu_ctx)
		return 0;
	return LOG_REFUSE(-FI_ENOSYS, LOG_DOMAIN,
			  "%s: xpu_ctx %p: no accelerator posts by itself here", call, *xpu_ctx);
}
