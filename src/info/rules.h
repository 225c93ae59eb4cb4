/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes that depend only on the endpoint type, one row each. */
#ifndef WEFT_INFO_RULES_H
#define WEFT_INFO_RULES_H

#include <rdma/fabric.h>
#include <stdbool.h>

#include "base/addr.h"
#include "info/hints.h"

/* Limits that the rest of the library keeps. */
#define RULES_INJECT_MAX  4096 /* bytes */
#define RULES_IOV_MAX     16
#define RULES_CONTEXT_MAX 64    /* contexts of a scalable endpoint, per direction */
#define RULES_SIZE_MAX    65536 /* outstanding operations of a context */
#define RULES_CQ_DATA     8     /* bytes */
/* Of a plain queue pair: every device can do this, but see device_ops.limit. */
#define RULES_RC_INJECT   64 /* bytes */
#define RULES_RC_IOV_MAX  4
#define RULES_RC_SIZE_MAX 8192
#define RULES_RC_MSG_MAX  (UINT64_C(1) << 31) /* bytes */
/* Longest datagram (bytes): the IP length field minus the headers it includes. */
#define RULES_DGRAM_MAX  65507
#define RULES_DGRAM_MAX6 65527

static inline size_t rules_dgram_max(const struct addr *source)
{
	return source->kind == ADDR_IN6 ? RULES_DGRAM_MAX6 : RULES_DGRAM_MAX;
}

/* Compares the hints with the rules for the type of `info` (set before); fills in `info`. */
bool rules_match(uint32_t api, const struct fi_info *hints, struct fi_info *info,
		 struct refusal *why);

/*
 * Checks attributes of the endpoint and its contexts that an application opens one with, and may have changed: those
 * that need more than the provider has. Not default flags, keys and numbers of contexts, which have errors of their own.
 */
bool rules_allow(uint32_t api, const struct fi_info *info, struct refusal *why);

#endif
