/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "info/external.h"
#include "info/info.h"

/* ---- Who may have written a file ---- */

static bool of_root_or_self(const char *path)
{
	struct stat is;

	return lstat(path, &is) == 0 && (is.st_uid == 0 || is.st_uid == geteuid());
}

/* May anybody have given the file its name? */
static bool anybody_names(const char *path)
{
	char folder[PATH_MAX];
	struct stat is;

	strncpy(folder, path, sizeof(folder) - 1);
	folder[sizeof(folder) - 1] = '\0';
	if (stat(dirname(folder), &is) || !(is.st_mode & S_IWOTH))
		return false;
	return !(is.st_mode & S_ISVTX) || !of_root_or_self(path);
}

static bool anybody_writes(const char *path, const struct stat *is)
{
	char target[PATH_MAX];

	if (is->st_mode & S_IWOTH || anybody_names(path))
		return true;
	return realpath(path, target) && anybody_names(target);
}

/* ---- Whether it is whole ---- */

/* Reads segment header `i`; false: the file ends before it does. */
static bool read_segment(int fd, const ElfW(Ehdr) * head, int i, ElfW(Phdr) * segment)
{
	off_t at = (off_t)(head->e_phoff + (size_t)i * sizeof(*segment));

	return pread(fd, segment, sizeof(*segment), at) == (ssize_t)sizeof(*segment);
}

static bool holds_segments(int fd, const ElfW(Ehdr) * head, uint64_t size)
{
	ElfW(Phdr) segment;

	for (int i = 0; i < head->e_phnum; i++) {
		if (!read_segment(fd, head, i, &segment))
			return false;
		if (segment.p_type == PT_LOAD &&
		    (segment.p_offset > size || segment.p_filesz > size - segment.p_offset))
			return false;
	}
	return true;
}

static bool is_cut_off(const char *path, uint64_t size)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ElfW(Ehdr) head;
	bool cut_off;

	if (fd < 0)
		return false;
	cut_off = pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
		  memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
		  head.e_phentsize == sizeof(ElfW(Phdr)) && !holds_segments(fd, &head, size);
	close(fd);
	return cut_off;
}

const char *external_check(const char *path)
{
	struct stat is;

	if (!strchr(path, '/') ||
	    stat(path, &is)) /* the dynamic linker looks for it, or says what is wrong */
		return NULL;
	if (!S_ISREG(is.st_mode))
		return "not a regular file";
	if (anybody_writes(path, &is))
		return "all users can write it, or put something else in its place";
	return is_cut_off(path, (uint64_t)is.st_size) ? "the file is cut off" : NULL;
}

/* ---- Loading ---- */

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

/* ---- What external providers say to fi_getinfo ---- */

/* Bits of the providers that this thread asks: one that layers over others asks fi_getinfo. */
static __thread uint32_t asking;
_Static_assert(EXTERNAL_MAX <= 32, "a bit of `asking` each");

static bool is_asked(const struct external *ext, uint32_t bit, const struct query *q)
{
	const struct fi_fabric_attr *attr = q->hints ? q->hints->fabric_attr : NULL;

	if (asking & bit || !provider_name_offered(ext->prov->name, attr ? attr->prov_name : NULL))
		return false;
	if (!FI_VERSION_LT(ext->prov->fi_version, q->version))
		return true;
	return LOG_REFUSE(false, LOG_CORE,
			  "%s: interface version %u.%u requested, this provider has %u.%u",
			  ext->prov->name, FI_MAJOR(q->version), FI_MINOR(q->version),
			  FI_MAJOR(ext->prov->fi_version), FI_MINOR(ext->prov->fi_version));
}

/* The provider that made an entry names in it those below itself, if any: its own name is added. -FI_ENOMEM or 0. */
static int external_info_add_name(char **layers, const char *name)
{
	const char *last = *layers ? strrchr(*layers, ';') : NULL;
	const char *top = last ? last + 1 : *layers;
	char *all;

	if (top && strcasecmp(top, name) == 0)
		return 0;
	if (asprintf(&all, "%s%s%s", top ? *layers : "", top ? ";" : "", name) < 0)
		return -FI_ENOMEM;
	free(*layers);
	*layers = all;
	return 0;
}

/* Completes the entries of a provider. 0, -FI_ENOMEM, or -FI_EINVAL if they lack a part. */
static int external_info_complete(const struct fi_provider *prov, uint32_t version,
				  struct fi_info *list)
{
	for (; list; list = list->next) {
		if (!list->fabric_attr || !list->domain_attr || !list->ep_attr || !list->tx_attr ||
		    !list->rx_attr)
			return LOG_REFUSE(-FI_EINVAL, LOG_CORE, "%s: an entry lacks attributes",
					  prov->name);
		if (external_info_add_name(&list->fabric_attr->prov_name, prov->name))
			return -FI_ENOMEM;
		list->fabric_attr->prov_version = prov->version;
		list->fabric_attr->api_version = version;
	}
	return 0;
}

/* Returns the entries of a provider; NULL: none, for a reason that is logged. */
static struct fi_info *external_info_ask(const struct fi_provider *prov, uint32_t bit,
					 const struct query *q)
{
	struct fi_info *list = NULL;
	int ret;

	asking |= bit;
	ret = prov->getinfo(q->version, q->node, q->service, q->flags, q->hints, &list);
	asking &= ~bit;
	if (ret) {
		LOG_INFO(LOG_CORE, "%s: no entry: %s (%d)", prov->name, fi_strerror(ret), ret);
		return NULL;
	}
	ret = external_info_complete(prov, q->version, list);
	if (!ret)
		return list;
	LOG_WARN(LOG_CORE, "%s: its entries are left out: %s", prov->name, fi_strerror(ret));
	fi_freeinfo(list);
	return NULL;
}

void external_entries(const struct query *q, struct fi_info **list)
{
	size_t count;
	const struct external *ext = external_all(&count);

	*list = NULL;
	for (size_t i = 0; i < count; i++, ext++) {
		if (!is_asked(ext, 1U << i, q))
			continue;
		*list = external_info_ask(ext->prov, 1U << i, q);
		while (*list)
			list = &(*list)->next;
	}
}
