/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/verbs/verbs_cmlib.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define LOG_PROV "verbs"
#include "base/forked.h"
#include "base/log.h"

#define NAME "librdmacm.so.1"

static struct verbs_cmlib lib;
static bool loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
	const char *name;
	size_t offset;
} calls[] = {
#define VERBS_CMLIB_ROW(name) {"rdma_" #name, offsetof(struct verbs_cmlib, name)},
	VERBS_CMLIB_CALLS(VERBS_CMLIB_ROW)
#undef VERBS_CMLIB_ROW
};

static void load(void)
{
	void *handle = dlopen(NAME, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; handle && i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *at = dlsym(handle, calls[i].name);

		if (!at) {
			LOG_WARN(LOG_CORE, "%s has no %s: nothing can be connected", NAME,
				 calls[i].name);
			dlclose(handle);
			return;
		}
		*(void **)((char *)&lib + calls[i].offset) = at;
	}
	loaded = handle;
	if (!handle)
		LOG_WARN(LOG_CORE, "%s cannot be loaded: %s", NAME, dlerror());
}

const struct verbs_cmlib *verbs_cmlib(void)
{
	pthread_once(&once, load);
	return loaded ? &lib : NULL;
}

struct rdma_event_channel *verbs_cmlib_channel(void)
{
	struct rdma_event_channel *channel = verbs_cmlib()->create_event_channel();

	if (!channel)
		return NULL;
	if (!fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) &&
	    !fcntl(channel->fd, F_SETFD, FD_CLOEXEC) && !forked_guard(channel->fd))
		return channel;
	verbs_cmlib()->destroy_event_channel(channel);
	errno = ENOMEM;
	return NULL;
}

void verbs_cmlib_drop(struct rdma_event_channel *channel)
{
	forked_release(channel->fd);
	verbs_cmlib()->destroy_event_channel(channel);
}
