/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hints compared with a provider, attribute by attribute: either an entry with the attributes granted,
 * or the first hint that cannot be met. fi_getinfo(3), fi_domain(3), fi_endpoint(3).
 */
#ifndef WEFT_INFO_HINTS_H
#define WEFT_INFO_HINTS_H

#include <rdma/fabric.h>
#include <stdbool.h>

#include "info/providers.h"

/* Why a provider is not offered, for the log. */
struct refusal {
	bool of_name; /* the caller named other providers, that is all */
	char text[640];
};

/* Says why; always false. */
bool hints_refuse(struct refusal *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same for a hint with the value asked and what is offered, by their names in fi_tostr. */
bool hints_refuse_value(struct refusal *why, const char *hint, enum fi_type type, uint64_t asked,
			uint64_t offered);

/*
 * Fills capabilities, modes and all attributes of `info`, which comes from fi_allocinfo, but no
 * name and no address. `api` is what the caller passed to fi_getinfo: members younger than that
 * are not read. `hints` may be NULL, and any of its attributes.
 */
bool hints_match(const struct provider *v, uint32_t api, const struct fi_info *hints,
		 struct fi_info *info, struct refusal *why);

#endif
