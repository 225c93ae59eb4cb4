/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares hints with a provider, attribute by attribute: yields an entry with the granted
 * attributes, or the first hint that cannot be met. fi_getinfo(3), fi_domain(3), fi_endpoint(3).
 */
#ifndef WEFT_INFO_HINTS_H
#define WEFT_INFO_HINTS_H

#include <rdma/fabric.h>
#include <stdbool.h>

#include "info/providers.h"

/* Why a provider is not offered, for the log. */
struct refusal {
	bool of_name; /* only because the caller named other providers */
	char text[640];
};

/* Writes the reason; always returns false. */
bool hints_refuse(struct refusal *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same for a hint: names the value asked for and the values offered, as fi_tostr does. */
bool hints_refuse_value(struct refusal *why, const char *hint, enum fi_type type, uint64_t asked,
			uint64_t offered);

/* Returns the bits that an mr_mode stands for, which may be one of the two old names. */
int hints_mr_bits(int mr_mode);

/*
 * Fills in capabilities, modes and all attributes of `info` (from info_blank), but no name and no
 * address. `api` is the caller's version: younger members of the hints are not read. `hints` and
 * its attributes may be NULL. Returns false, with a reason, if a hint cannot be met.
 */
bool hints_match(const struct provider *v, uint32_t api, const struct fi_info *hints,
		 struct fi_info *info, struct refusal *why);

/*
 * May an endpoint of provider `v` (NULL: unknown) be opened with `info`, which an application may have changed?
 * Returns false, with a reason, if it says more than fi_getinfo would grant.
 */
bool hints_allow(const struct provider *v, uint32_t api, const struct fi_info *info,
		 struct refusal *why);

/* Capabilities of an entry: those asked for, those they imply, those that cost nothing. */

/* Returns the provider's capabilities without bits that are younger than `api`. */
uint64_t caps_offered(const struct provider *v, uint32_t api);

/*
 * Returns `caps` with the directions that they mean: all of a kind of operation, messages or
 * one-sided ones, of which they name none. fi_getinfo(3)
 */
uint64_t caps_complete(uint64_t caps);

/*
 * Returns the capabilities to grant if `asked`, a subset of `offered`, is wanted; 0: all. Grants primary capabilities
 * only as asked, in both directions unless one is named. Multicast implies FI_MSG.
 */
uint64_t caps_grant(uint64_t offered, uint64_t asked);

/* Return the part of an endpoint's `caps` that a context has; `asked` as above. */
uint64_t caps_tx(uint64_t caps, uint64_t asked);
uint64_t caps_rx(uint64_t caps, uint64_t asked);

#endif
