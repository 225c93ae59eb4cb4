/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls beyond the capabilities of the endpoint. fi_endpoint(3). */
#include <rdma/fi_errno.h>

#define REFUSAL      (-FI_EOPNOTSUPP)
#define REFUSE_TABLE refuse_support
#include "entry/refuse.h"
