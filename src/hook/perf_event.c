/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/forked.h"
#include "base/log.h"
#include "hook/layers.h"

static struct perf_event_attr event;
static int counting;          /* atomic: `event` is set */
static pthread_key_t at_exit; /* of a thread: closes its counter; the value is descriptor + 1 */

/* A counter belongs to the thread, and to the process, that opened it. */
static __thread struct {
	bool opened;
	int fd; /* -1: refused */
	unsigned int forks;
} own;

/* In a forked child base/forked has closed it. */
static void close_counter(void *fd_after)
{
	if (own.forks == forked_count())
		forked_close((int)(intptr_t)fd_after - 1);
	own.fd = -1;
}

/* Opens the counter of this thread, with user code alone. Returns its descriptor or -errno. */
static int open_counter(void)
{
	long fd = syscall(SYS_perf_event_open, &event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (forked_guard((int)fd)) {
		close((int)fd);
		return -ENOMEM;
	}
	own.opened = true;
	own.fd = (int)fd;
	own.forks = forked_count();
	pthread_setspecific(at_exit, (void *)(intptr_t)(fd + 1));
	return (int)fd;
}

int perf_event_start(uint32_t type, uint64_t config)
{
	int ret;

	memset(&event, 0, sizeof(event));
	event.size = sizeof(event);
	event.type = type;
	event.config = config;
	event.exclude_kernel = event.exclude_hv = 1;
	ret = pthread_key_create(&at_exit, close_counter);
	if (ret)
		return -ret;
	ret = open_counter();
	if (ret < 0) {
		pthread_key_delete(at_exit);
		return ret;
	}
	__atomic_store_n(&counting, 1, __ATOMIC_RELEASE); /* pairs with perf_events */
	return 0;
}

/* A thread that ends when the library is gone must not call it. */
static __attribute__((destructor)) void forget_threads(void)
{
	if (__atomic_load_n(&counting, __ATOMIC_ACQUIRE))
		pthread_key_delete(at_exit);
}

/* Reads by syscall(2): that is no point where a thread can be cancelled, as no call is. */
uint64_t perf_events(void)
{
	uint64_t count = 0;
	int kept = errno;

	if (!__atomic_load_n(&counting, __ATOMIC_ACQUIRE))
		return 0;
	if ((!own.opened || own.forks != forked_count()) && open_counter() < 0) {
		own.opened = true;
		own.fd = -1;
		own.forks = forked_count();
	}
	if (own.fd < 0 || syscall(SYS_read, own.fd, &count, sizeof(count)) != sizeof(count))
		count = 0;
	errno = kept;
	return count;
}
