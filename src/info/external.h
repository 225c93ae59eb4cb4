/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Providers of others: libraries named *-fi.so, loaded when the first call needs to know them and kept until the
 * process ends.
 *
 * A library that cannot be used is logged and passed by: it cannot be loaded, has no fi_prov_ini, its provider lacks a
 * name or a call, was written for another interface, has a name of this library's, or one that another library has.
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

/*
 * Keeps dlopen from files that would hang or end the process, or run what just anybody has put there. Returns why the library is not loaded, or NULL: dlopen may have it, which refuses by itself what is not there, cannot be
 * read or is no ELF file of this machine. Refused are
 * - all but regular files, without a look inside: an open may wait, as that of a FIFO;
 * - a file that all may write, and one in a folder that all may write, except in a sticky one those of root and this user;
 * - a file shorter than the segments that its header lists, as a broken copy is: dlopen would die of it by SIGBUS.
 */
const char *external_check(const char *path);

/*
 * Calls `take` for each file of FI_PROVIDER_PATH, or of the folder beside ours, in order: folders as listed, the files of a folder by name. `path` is
 * valid during the call. `preferred`: the user put a + in front of it.
 */
void external_files_each(void (*take)(const char *path, bool preferred));

/* Of two providers with one name, does the first one found stay? Else the one of higher version. */
bool external_files_first_stays(void);

#endif
