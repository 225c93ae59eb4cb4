/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <rdma/providers/fi_prov.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/env.h"
#include "base/log.h"
#include "info/external.h"

/*
 * Where external providers are looked for if the user names none: the folder libfabric beside this library, LIBDIR/libfabric
 * of the installation, which need not exist; free it. NULL: the library is part of a program (the archive), was loaded by a
 * relative path, or memory is out.
 */
#ifdef WEFT_STATIC

/* The code of the archive lies in a program, whose path dladdr knows only as the user has called it. */
static char *external_folder(void)
{
	return NULL;
}

#else

static char *external_folder(void)
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

#define SUFFIX "-" FI_LIB_SUFFIX

static int is_library(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len >= strlen(SUFFIX) && strcmp(entry->d_name + len - strlen(SUFFIX), SUFFIX) == 0;
}

/* Unlike alphasort the same in every locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Returns 0, or an error of errno if there is no such folder. */
static int each_in_folder(const char *folder, void (*take)(const char *path, bool preferred))
{
	struct dirent **found;
	char *path;
	int count = scandir(folder, &found, is_library, by_name);

	if (count < 0)
		return errno;
	for (int i = 0; i < count; i++) {
		if (asprintf(&path, "%s/%s", folder, found[i]->d_name) >= 0) {
			take(path, false);
			free(path);
		}
		free(found[i]);
	}
	free(found);
	return 0;
}

/* A part of FI_PROVIDER_PATH: a folder, or a file. */
static void each_of_part(const char *part, void (*take)(const char *path, bool preferred))
{
	int error;

	if (*part == '+') {
		take(part + 1, true);
		return;
	}
	error = each_in_folder(part, take);
	if (error == ENOTDIR)
		take(part, false);
	else if (error)
		LOG_WARN(LOG_CORE, "FI_PROVIDER_PATH: %s: %s", part, fi_strerror(error));
}

static void each_of_path(const char *path, void (*take)(const char *path, bool preferred))
{
	path += *path == '@';
	while (*path) {
		size_t len = strcspn(path, ":");
		char *part = strndup(path, len);

		if (part && *part)
			each_of_part(part, take);
		free(part);
		path += len + (path[len] == ':');
	}
}

static void each_of_default(void (*take)(const char *path, bool preferred))
{
	char *folder = external_folder();

	if (folder)
		each_in_folder(folder, take);
	free(folder);
}

void external_files_each(void (*take)(const char *path, bool preferred))
{
	const char *path = env_get()->provider_path;

	/* The process has rights that its user may not give to code. */
	if (getauxval(AT_SECURE)) {
		LOG_WARN(LOG_CORE, "no external providers%s%s: the program runs with raised rights",
			 path ? ", FI_PROVIDER_PATH=" : "", path ? path : "");
		return;
	}
	if (path)
		each_of_path(path, take);
	else
		each_of_default(take);
}

bool external_files_first_stays(void)
{
	const char *path = env_get()->provider_path;

	return path && *path == '@';
}
