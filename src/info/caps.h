/* SPDX-License-Identifier: BSD-2-Clause */
/* Capabilities of an entry: those asked for, those they imply, those that cost nothing. */
#ifndef WEFT_INFO_CAPS_H
#define WEFT_INFO_CAPS_H

#include <rdma/fabric.h>

#include "info/providers.h"

/* Returns the provider's capabilities without bits that are younger than `api`. */
uint64_t caps_offered(const struct provider *v, uint32_t api);

/*
 * Returns `caps` with the directions that they mean: all of a kind of operation, messages or
 * one-sided ones, of which they name none. fi_getinfo(3)
 */
uint64_t caps_complete(uint64_t caps);

/*
 * Returns the capabilities to grant if `asked`, a subset of `offered`, is wanted; 0: all. Grants
 * primary capabilities only as asked, in both directions unless one is named. Multicast implies
 * FI_MSG.
 */
uint64_t caps_grant(uint64_t offered, uint64_t asked);

/* Return the part of an endpoint's `caps` that a context has; `asked` as above. */
uint64_t caps_tx(uint64_t caps, uint64_t asked);
uint64_t caps_rx(uint64_t caps, uint64_t asked);

#endif
