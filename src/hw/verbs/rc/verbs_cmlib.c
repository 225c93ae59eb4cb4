/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/verbs/rc/rc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#include "base/forked.h"
#include "hw/verbs/dev/verbs_lib.h"

static struct verbs_cmlib lib;
static bool loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct verbs_call calls[] = {
#define VERBS_CMLIB_ROW(name) {"rdma_" #name, offsetof(struct verbs_cmlib, name)},
	VERBS_CMLIB_CALLS(VERBS_CMLIB_ROW)
#undef VERBS_CMLIB_ROW
};

static void verbs_cmlib_load(void)
{
	loaded = verbs_lib_load("librdmacm.so.1", calls, sizeof(calls) / sizeof(calls[0]), &lib);
}

const struct verbs_cmlib *verbs_cmlib(void)
{
	pthread_once(&once, verbs_cmlib_load);
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
