/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/verbs/dev/verbs_lib.h"

#include <dlfcn.h>
#include <pthread.h>

#define LOG_PROV "verbs"
#include "base/log.h"
#include "base/reason.h"

static struct verbs_lib lib;
static bool loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct verbs_call calls[] = {
#define VERBS_ROW(name) {"ibv_" #name, offsetof(struct verbs_lib, name)},
	VERBS_CALLS(VERBS_ROW)
#undef VERBS_ROW
};

bool verbs_lib_load(const char *library, const struct verbs_call *list, size_t count, void *table)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; handle && i < count; i++) {
		void *at = dlsym(handle, list[i].name);

		if (!at) {
			LOG_WARN(LOG_CORE, "%s has no %s: it is not used", library, list[i].name);
			dlclose(handle);
			return false;
		}
		*(void **)((char *)table + list[i].offset) = at;
	}
	if (!handle)
		LOG_WARN(LOG_CORE, "there are RDMA devices, but %s cannot be loaded: %s", library,
			 dlerror());
	return handle;
}

static void verbs_lib_load_once(void)
{
	loaded = verbs_lib_load("libibverbs.so.1", calls, sizeof(calls) / sizeof(calls[0]), &lib);
	if (loaded)
		reason_given_by(verbs_status_text);
}

const struct verbs_lib *verbs_lib(void)
{
	pthread_once(&once, verbs_lib_load_once);
	return loaded ? &lib : NULL;
}

const char *verbs_status_text(int status)
{
	const struct verbs_lib *here = verbs_lib();

	return here ? here->wc_status_str((enum ibv_wc_status)status) : "unknown";
}
