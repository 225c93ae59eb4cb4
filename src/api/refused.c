/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/refused.h"

#include <rdma/fi_errno.h>

/* The functions ignore their arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define REFUSED(type, name, table, member, parameters, ...)                                        \
	type refused_##member parameters                                                           \
	{                                                                                          \
		return -FI_ENOSYS;                                                                 \
	}
EP_CALLS(REFUSED, REFUSED)
CM_CALLS(REFUSED, REFUSED)
