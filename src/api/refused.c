/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/refused.h"

#include <rdma/fi_errno.h>

/* The functions ignore their arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define REFUSED(kind, type, name, table, member, arguments, ...)                                   \
	type refused_##member ROW_PARAMETERS(arguments)                                            \
	{                                                                                          \
		return -FI_ENOSYS;                                                                 \
	}
EP_CALLS(REFUSED)
CM_CALLS(REFUSED)
