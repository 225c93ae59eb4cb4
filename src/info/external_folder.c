/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "info/external.h"

#ifdef WEFT_STATIC

/* The code of the archive lies in a program, whose path dladdr knows only as the user has called it. */
char *external_folder(void)
{
	return NULL;
}

#else

char *external_folder(void)
{
	static const char within;
	char *folder;
	Dl_info self;

	if (!dladdr(&within, &self))
		return NULL;
	/* What a relative path leads to depends on the folder the process is in. */
	if (*self.dli_fname != '/') {
		LOG_INFO(LOG_CORE, "no folder of providers: the library was loaded as \"%s\"",
			 self.dli_fname);
		return NULL;
	}
	if (asprintf(&folder, "%.*s/libfabric",
		     (int)(strrchr(self.dli_fname, '/') - self.dli_fname), self.dli_fname) < 0)
		return NULL;
	return folder;
}

#endif
