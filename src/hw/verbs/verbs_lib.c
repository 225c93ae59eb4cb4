/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/verbs/verbs_lib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define LOG_PROV "verbs"
#include "base/log.h"

#define NAME "libibverbs.so.1"

static struct verbs_lib lib;
static bool loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
	const char *name;
	size_t offset;
} calls[] = {
#define VERBS_ROW(name) {"ibv_" #name, offsetof(struct verbs_lib, name)},
	VERBS_CALLS(VERBS_ROW)
#undef VERBS_ROW
};

static void load(void)
{
	void *handle = dlopen(NAME, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; handle && i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *at = dlsym(handle, calls[i].name);

		if (!at) {
			LOG_WARN(LOG_CORE, "%s has no %s: RDMA devices are not used", NAME,
				 calls[i].name);
			dlclose(handle);
			return;
		}
		*(void **)((char *)&lib + calls[i].offset) = at;
	}
	loaded = handle;
	if (!handle)
		LOG_WARN(LOG_CORE, "there are RDMA devices, but %s cannot be loaded: %s", NAME,
			 dlerror());
}

const struct verbs_lib *verbs_lib(void)
{
	pthread_once(&once, load);
	return loaded ? &lib : NULL;
}
