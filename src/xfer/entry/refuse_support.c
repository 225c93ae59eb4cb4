/* SPDX-License-Identifier: BSD-2-Clause */
/* For what is not among the capabilities an endpoint was opened with. fi_endpoint(3). */
#include <rdma/fi_errno.h>

#define REFUSAL      (-FI_EOPNOTSUPP)
#define REFUSE_TABLE refuse_support
#include "xfer/entry/refuse.h"
