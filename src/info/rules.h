/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes that depend on nothing but the type of the endpoint, a row each. */
#ifndef WEFT_INFO_RULES_H
#define WEFT_INFO_RULES_H

#include <rdma/fabric.h>
#include <stdbool.h>

#include "info/hints.h"

/* Limits the rest of the library keeps to. */
#define RULES_INJECT_MAX  4096 /* bytes */
#define RULES_IOV_MAX     16
#define RULES_CONTEXT_MAX 64    /* of a scalable endpoint, each way */
#define RULES_SIZE_MAX    65536 /* operations of a context under way */
#define RULES_CQ_DATA     8     /* bytes */
/* Of a bare queue pair: what every device has, see device_ops.limit for what one may lack. */
#define RULES_RC_INJECT   64 /* bytes */
#define RULES_RC_IOV_MAX  4
#define RULES_RC_SIZE_MAX 8192
#define RULES_RC_MSG_MAX  (UINT64_C(1) << 31) /* bytes */
/* Bytes of the longest datagram: the length field of the IP packet, less the headers it counts. */
#define RULES_DGRAM_MAX  65507
#define RULES_DGRAM_MAX6 65527

/* Holds the hints against the rows for the type of `info`, which is set, and fills it accordingly. */
bool rules_match(uint32_t api, const struct fi_info *hints, struct fi_info *info,
		 struct refusal *why);

#endif
