/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

struct held {
	sigset_t before; /* the thread's mask */
	bool pending;    /* the signal was pending before the call: the application blocks it */
};

static void one_signal(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGXFSZ);
}

/* Blocks SIGXFSZ in this thread only: the kernel sends it to the calling thread. */
static void hold(struct held *h)
{
	sigset_t set;

	one_signal(&set);
	pthread_sigmask(SIG_BLOCK, &set, &h->before);
	h->pending = sigpending(&set) == 0 && sigismember(&set, SIGXFSZ);
}

/* Consumes the signal if the call caused one; restores the mask. Keeps errno. */
static void release(const struct held *h, bool failed)
{
	const struct timespec now = {0};
	int err = errno;
	sigset_t set;

	one_signal(&set);
	if (failed && err == EFBIG && !h->pending)
		sigtimedwait(&set, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &h->before, NULL);
	errno = err;
}

int file_resize(int fd, off_t len)
{
	struct held h;
	int ret;

	hold(&h);
	ret = ftruncate(fd, len);
	release(&h, ret < 0);
	return ret;
}

ssize_t file_write_at(int fd, const void *buf, size_t len, off_t at)
{
	struct held h;
	ssize_t ret;

	hold(&h);
	ret = pwrite(fd, buf, len, at);
	release(&h, ret < 0);
	return ret;
}

ssize_t file_write(int fd, const void *buf, size_t len)
{
	struct held h;
	ssize_t ret;

	hold(&h);
	ret = write(fd, buf, len);
	release(&h, ret < 0);
	return ret;
}

int file_write_all(int fd, const void *buf, size_t len)
{
	while (len) {
		ssize_t wrote = file_write(fd, buf, len);

		if (wrote < 0 && errno != EINTR)
			return -errno;
		if (wrote > 0) {
			buf = (const char *)buf + wrote;
			len -= (size_t)wrote;
		}
	}
	return 0;
}
