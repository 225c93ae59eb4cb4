/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the libraries of external providers are: FI_PROVIDER_PATH, or the folder beside ours. */
#ifndef WEFT_INFO_EXTERNAL_FILES_H
#define WEFT_INFO_EXTERNAL_FILES_H

#include <stdbool.h>

/*
 * Calls `take` for each file, in order: folders as listed, the files of a folder by name. `path` is
 * valid during the call. `preferred`: the user put a + in front of it.
 */
void external_files_each(void (*take)(const char *path, bool preferred));

/* Of two providers with one name, does the first one found stay? Else the one of higher version. */
bool external_files_first_stays(void);

#endif
