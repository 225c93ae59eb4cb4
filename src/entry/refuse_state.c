/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints that are not enabled yet, or shut down. fi_endpoint(3). */
#include <rdma/fi_errno.h>

#define REFUSAL      (-FI_EOPBADSTATE)
#define REFUSE_TABLE refuse_state
#include "entry/refuse.h"
