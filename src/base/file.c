/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct blocked {
	sigset_t before;  /* the thread's mask */
	sigset_t pending; /* signals pending before the call: the application blocks them */
};

/* Blocks the signals in this thread only: the kernel sends them to the calling thread. */
static void file_block(struct blocked *b)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, &b->before);
	sigemptyset(&b->pending);
	sigpending(&b->pending);
}

/* Consumes the signal that the call's error brings. */
static void file_consume(const struct blocked *b, int number)
{
	const struct timespec now = {0};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	if (!sigismember(&b->pending, number))
		sigtimedwait(&set, NULL, &now);
}

/* Consumes the signal if the call caused one; restores the mask. Keeps errno. */
static void file_release(const struct blocked *b, bool failed)
{
	int err = errno;

	if (failed && err == EFBIG)
		file_consume(b, SIGXFSZ);
	else if (failed && err == EPIPE)
		file_consume(b, SIGPIPE);
	pthread_sigmask(SIG_SETMASK, &b->before, NULL);
	errno = err;
}

/* Is this a regular file of this user alone, which no other name leads to? */
static bool is_own(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1;
}

int file_open_own(const char *path, int flags)
{
	/* Not to wait for the reader of a FIFO. Truncated only when it is known whose file it is. */
	int fd = open(path, (flags & ~O_TRUNC) | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		      0600);
	int err;

	if (fd < 0)
		return -errno;
	if (!is_own(fd))
		err = -EPERM;
	else
		err = flags & O_TRUNC && ftruncate(fd, 0) ? -errno : 0;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int file_resize(int fd, off_t len)
{
	struct blocked b;
	int ret;

	file_block(&b);
	ret = ftruncate(fd, len);
	file_release(&b, ret < 0);
	return ret;
}

ssize_t file_write_at(int fd, const void *buf, size_t len, off_t at)
{
	struct blocked b;
	ssize_t ret;

	file_block(&b);
	ret = pwrite(fd, buf, len, at);
	file_release(&b, ret < 0);
	return ret;
}

ssize_t file_write(int fd, const void *buf, size_t len)
{
	struct blocked b;
	ssize_t ret;

	file_block(&b);
	ret = write(fd, buf, len);
	file_release(&b, ret < 0);
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
