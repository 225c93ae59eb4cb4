/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "info/external.h"
#include "info/info.h"

#define OLDEST_API FI_VERSION(1, 3) /* structures of older providers are not served */

static struct external known[EXTERNAL_MAX]; /* written while loading, then constant */
static size_t known_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread bool loading; /* a provider's fi_prov_ini may call fi_getinfo */

static void end_provider(const struct external *ext)
{
	if (ext->prov->cleanup)
		ext->prov->cleanup();
}

/* The code stays: threads of the application may still run in it. */
__attribute__((destructor)) static void end_all(void)
{
	while (known_count)
		end_provider(&known[--known_count]);
}

static bool is_complete(const char *path, const struct fi_provider *prov)
{
	if (!prov) {
		LOG_INFO(LOG_CORE, "%s: fi_prov_ini returns NULL: it cannot run here", path);
		return false;
	}
	if (prov->name && *prov->name && prov->getinfo && prov->fabric)
		return true;
	return LOG_REFUSE(false, LOG_CORE,
			  "%s: its provider has no name, no getinfo or no fabric call", path);
}

static bool is_usable(const char *path, const struct fi_provider *prov)
{
	if (FI_VERSION_LT(prov->fi_version, OLDEST_API) ||
	    FI_VERSION_LT(INFO_NEWEST_API, prov->fi_version))
		return LOG_REFUSE(
			false, LOG_CORE,
			"%s: provider %.60s is for interface %u.%u, supported are %u.%u to %u.%u",
			path, prov->name, FI_MAJOR(prov->fi_version), FI_MINOR(prov->fi_version),
			FI_MAJOR(OLDEST_API), FI_MINOR(OLDEST_API), FI_MAJOR(INFO_NEWEST_API),
			FI_MINOR(INFO_NEWEST_API));
	if (strpbrk(prov->name, ";,^") || provider_is_layer(prov->name))
		return LOG_REFUSE(false, LOG_CORE, "%s: a provider may not be called \"%.60s\": %s",
				  path, prov->name,
				  provider_is_layer(prov->name) ? "this library has one"
								: "lists of names");
	return true;
}

static struct external *find_known(const char *name)
{
	for (size_t i = 0; i < known_count; i++) {
		if (strcasecmp(known[i].prov->name, name) == 0)
			return &known[i];
	}
	return NULL;
}

/* Does `next` replace `first`, whose name it has? */
static bool external_replaces(const struct external *next, const struct external *first)
{
	if (next->preferred != first->preferred)
		return next->preferred;
	return !external_files_first_stays() &&
	       FI_VERSION_LT(first->prov->version, next->prov->version);
}

/* Keeps `next`, or the provider that has its name already: then *next is the one not kept. */
static bool external_keep(struct external *next, const char *path)
{
	struct external *first = find_known(next->prov->name), tmp;

	if (!first && known_count == EXTERNAL_MAX)
		return LOG_REFUSE(false, LOG_CORE, "%s: more than %d providers", path,
				  EXTERNAL_MAX);
	if (!first) {
		known[known_count++] = *next;
		return true;
	}
	if (external_replaces(next, first)) {
		tmp = *first;
		*first = *next;
		*next = tmp;
	}
	return LOG_REFUSE(false, LOG_CORE,
			  "%s: there are two providers \"%.60s\": %u.%u is used, %u.%u is not",
			  path, next->prov->name, FI_MAJOR(first->prov->version),
			  FI_MINOR(first->prov->version), FI_MAJOR(next->prov->version),
			  FI_MINOR(next->prov->version));
}

static struct external *find_loaded(const void *handle)
{
	for (size_t i = 0; i < known_count; i++) {
		if (known[i].handle == handle)
			return &known[i];
	}
	return NULL;
}

/* Asks a loaded library for its provider. */
static bool init_provider(struct external *ext, const char *path)
{
	struct fi_provider *(*init)(void);

	*(void **)&init = dlsym(ext->handle, "fi_prov_ini");
	if (!init)
		return LOG_REFUSE(false, LOG_CORE, "%s: there is no fi_prov_ini in it", path);
	ext->prov = init();
	return is_complete(path, ext->prov);
}

static void *open_library(const char *path)
{
	const char *why = external_check(path);
	void *handle;

	if (why)
		return LOG_REFUSE(NULL, LOG_CORE, "a provider could not be loaded: %s: %s", path,
				  why);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		LOG_WARN(LOG_CORE, "a provider could not be loaded: %s", dlerror());
	return handle;
}

static void load_file(const char *path, bool preferred)
{
	struct external next = {.handle = open_library(path), .preferred = preferred};
	struct external *same = next.handle ? find_loaded(next.handle) : NULL;

	if (!next.handle)
		return;
	if (same) {
		same->preferred |= preferred;
	} else if (init_provider(&next, path)) {
		LOG_INFO(LOG_CORE, "%s: provider %.60s, version %u.%u", path, next.prov->name,
			 FI_MAJOR(next.prov->version), FI_MINOR(next.prov->version));
		if (is_usable(path, next.prov) && external_keep(&next, path))
			return;
		end_provider(&next);
	}
	dlclose(next.handle);
}

static void load_all(void)
{
	loading = true;
	external_files_each(load_file);
	loading = false;
}

void external_load(void)
{
	if (!loading)
		pthread_once(&once, load_all);
}

const struct external *external_all(size_t *count)
{
	external_load();
	*count = loading ? 0 : known_count;
	return known;
}

const struct fi_provider *external_find(const char *prov_name)
{
	const char *last = strrchr(prov_name, ';'), *top = last ? last + 1 : prov_name;
	const struct external *ext;
	size_t count;

	external_all(&count);
	ext = count ? find_known(top) : NULL;
	return ext ? ext->prov : NULL;
}
