/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Providers of others: libraries named *-fi.so, loaded when the first call needs to know them and
 * kept until the process ends.
 *
 * A library that cannot be used is logged and passed by: it cannot be loaded, has no fi_prov_ini, its
 * provider lacks a name or a call, was written for another interface, has a name of this library's,
 * or one that another library has.
 */
#ifndef WEFT_INFO_EXTERNAL_H
#define WEFT_INFO_EXTERNAL_H

#include <rdma/providers/fi_prov.h>
#include <stdbool.h>
#include <stddef.h>

#include "info/resolve.h"

#define EXTERNAL_MAX 32 /* limit of providers */

struct external {
	struct fi_provider *prov; /* the library's; never changes */
	void *handle;             /* of dlopen */
	bool preferred;           /* the user prefers its file to others of the name */
};

/* Loads the libraries, once; they define their parameters then. From any thread. */
void external_load(void);

/*
 * Loads the libraries if that is not done. Returns the providers in the order they were found, and
 * sets *count; none while the calling thread is loading them. From any thread.
 */
const struct external *external_all(size_t *count);

/* Returns the provider that opens fabrics of `prov_name`, by its top layer; NULL: none. */
const struct fi_provider *external_find(const char *prov_name);

/*
 * Sets *list to the entries of all providers that the names in the hints and FI_PROVIDER leave in, in
 * the order of the providers; NULL: there are none. Does not ask one that the calling thread is
 * asking already: it may itself ask fi_getinfo for what it layers over.
 */
void external_entries(const struct query *q, struct fi_info **list);

#endif
