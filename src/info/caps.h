/* SPDX-License-Identifier: BSD-2-Clause */
/* Which capabilities an entry has: those asked, what they imply, what costs nothing. */
#ifndef WEFT_INFO_CAPS_H
#define WEFT_INFO_CAPS_H

#include <rdma/fabric.h>

#include "info/providers.h"

/* What a provider has for a caller of this version: a bit younger than it may mean something else. */
uint64_t caps_offered(const struct provider *v, uint32_t api);

/*
 * What an entry has when `asked`, a subset of `offered`, is wanted; 0: everything. Primary
 * capabilities only as asked, with both directions unless one is named; multicast brings FI_MSG.
 */
uint64_t caps_grant(uint64_t offered, uint64_t asked);

/* The part of `caps` of the endpoint that a context has; `asked` as above. */
uint64_t caps_tx(uint64_t caps, uint64_t asked);
uint64_t caps_rx(uint64_t caps, uint64_t asked);

#endif
