/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/shm/shm_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/forked.h"
#include "base/log.h"

/* No pipes for a receiver that left this many messages in a row: it may not be able to open them. */
#define MISSES_MAX 4u

/*
 * A key is the inode of the pipe and the number of its descriptor in the sender's process, plus 1.
 * The inode tells whether the number still means the same pipe. Returns 0 if `fd` is no pipe.
 */
static uint64_t key_of(int number, int fd)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISFIFO(st.st_mode))
		return 0;
	return (uint64_t)st.st_ino << 32 | ((uint32_t)number + 1);
}

/* Limit (bytes) of pipe buffers for one unprivileged user; SIZE_MAX for root. */
static size_t allowed(void)
{
	FILE *file = geteuid() ? fopen("/proc/sys/fs/pipe-user-pages-soft", "re") : NULL;
	size_t pages = 0;

	if (file) {
		if (fscanf(file, "%zu", &pages) != 1)
			pages = 0;
		fclose(file);
	}
	return pages ? pages * (size_t)sysconf(_SC_PAGESIZE) : SIZE_MAX;
}

/* May one more pipe be made? Our worker and the peers' share half of the limit. */
static bool may_make(struct shm_pipes *all)
{
	if (!all->allowed)
		all->allowed = allowed();
	return all->open < all->allowed / 2 / SHM_PIPE_BYTES / (all->links + 1);
}

/*
 * Does the pipe leave half of the process's descriptors to connections and the application? The kernel gives the
 * lowest free ones: so many are in use.
 */
static bool leaves_half(const struct shm_pipe *p)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) || (rlim_t)p->ends[1] < files.rlim_cur / 2;
}

static bool make(struct shm_pipes *all, struct shm_pipe *p)
{
	if (pipe2(p->ends, O_CLOEXEC | O_NONBLOCK))
		return false;
	errno = EMFILE;
	p->key = leaves_half(p) ? key_of(p->ends[0], p->ends[0]) : 0;
	if (p->key && fcntl(p->ends[1], F_SETPIPE_SZ, SHM_PIPE_BYTES) >= 0 &&
	    !forked_guard(p->ends[0]) && !forked_guard(p->ends[1])) {
		p->open = true;
		all->open++;
		all->forks = forked_count();
		return true;
	}
	LOG_INFO(LOG_EP_DATA, "shm: no pipe of %u bytes: %s", SHM_PIPE_BYTES, fi_strerror(errno));
	forked_close(p->ends[0]);
	forked_close(p->ends[1]);
	return false;
}

/* Descriptors may be short for a while: then few messages pay for another try. */
static bool try_make(struct shm_pipes *all, struct shm_pipe *p)
{
	bool made;

	if (all->making.skip) {
		all->making.skip--;
		return false;
	}
	made = make(all, p);
	trial_judge(&all->making, made);
	return made;
}

/* Closes a pipe. A receiver that still reads it sees POLLHUP, and then discards what it read. */
static void drop(struct shm_pipes *all, struct shm_pipe *p)
{
	char page[4096];

	p->open = p->busy = false;
	all->open--;
	if (all->forks != forked_count())
		return;
	forked_close(p->ends[1]);
	while (read(p->ends[0], page, sizeof(page)) > 0)
		; /* frees our pages: the peer may keep the pipe open */
	forked_close(p->ends[0]);
}

/* Returns the first pipe from index `from` on that is idle, and `open` or not; NULL: none. */
static struct shm_pipe *find_idle(struct shm_pipes *all, unsigned int from, bool open)
{
	for (unsigned int i = 0; i < SHM_PIPES; i++) {
		struct shm_pipe *p = &all->pipe[(from + i) % SHM_PIPES];

		if (!p->busy && p->open == open)
			return p;
	}
	return NULL;
}

/* Returns a pipe to fill, if possible the one that the peer has open; NULL: none. */
static struct shm_pipe *choose(struct shm_pipes *all, struct shm_pipe_user *u)
{
	struct shm_pipe *p = find_idle(all, u->last, true);

	if (!p)
		p = find_idle(all, u->last, false);
	if (!p || (!p->open && !(may_make(all) && try_make(all, p))))
		return NULL;
	u->last = (unsigned int)(p - all->pipe);
	return p;
}

struct shm_pipe *shm_pipe_put(struct shm_pipes *all, struct shm_pipe_user *u,
			      const struct iovec *iov, size_t count)
{
	struct shm_pipe *p = u->misses < MISSES_MAX ? choose(all, u) : NULL;

	if (!p)
		return NULL;
	p->busy = vmsplice(p->ends[1], iov, count, SPLICE_F_NONBLOCK) > 0;
	if (p->busy)
		return p;
	u->misses++;
	drop(all, p);
	return NULL;
}

void shm_pipe_end(struct shm_pipes *all, struct shm_pipe *p, struct shm_pipe_user *u)
{
	int left = 0;

	p->busy = false;
	if (!ioctl(p->ends[0], FIONREAD, &left) && !left) {
		u->misses = 0;
		return;
	}
	u->misses++;
	drop(all, p); /* the peer may be about to read it, and must not find the next message */
}

void shm_pipe_close_all(struct shm_pipes *all)
{
	for (unsigned int i = 0; i < SHM_PIPES; i++)
		if (all->pipe[i].open)
			drop(all, &all->pipe[i]);
}

/* ---- Receiver -------------------------------------------------------------------------------- */

void shm_pipe_forget(struct shm_pipe_user *u)
{
	if (u->key)
		forked_close(u->fd);
	u->key = 0;
}

/* Returns the device of the kernel's anonymous pipes, or 0. */
static dev_t pipe_device(void)
{
	struct stat st = {.st_dev = 0};
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return 0;
	if (fstat(ends[0], &st))
		st.st_dev = 0;
	close(ends[0]);
	close(ends[1]);
	return st.st_dev;
}

/*
 * Is the file of `place` (O_PATH) the anonymous pipe that the key names? Asks only the kernel: the
 * peer may have put a file there whose file system is a process that never answers.
 */
static bool is_pipe(int place, uint64_t key, dev_t device)
{
	struct statx st;

	return !statx(place, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st) &&
	       S_ISFIFO(st.stx_mode) && (uint32_t)st.stx_ino == key >> 32 &&
	       makedev(st.stx_dev_major, st.stx_dev_minor) == device;
}

/*
 * Opens the pipe anew, for reading: descriptors of one opening share their flags, and the peer could
 * clear O_NONBLOCK. Returns a descriptor or a negative error; -FI_ECONNRESET: the sender closed it.
 */
static int pipe_of(pid_t pid, uint64_t key)
{
	int fd = -FI_ECONNRESET, place;
	dev_t device = pipe_device();
	char path[64];

	if (!device)
		return -FI_EMFILE;
	snprintf(path, sizeof(path), "/proc/%d/fd/%u", (int)pid, (uint32_t)key - 1);
	place = open(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return errno == ENOENT ? -FI_ECONNRESET : -errno;
	if (is_pipe(place, key, device)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	}
	close(place);
	return fd;
}

/* Opens the pipe as u->fd. 0 or a negative error; -FI_ECONNRESET: the sender closed it. */
static int find(struct shm_pipe_user *u, pid_t pid, uint64_t key)
{
	int fd;

	if (u->key == key)
		return 0;
	shm_pipe_forget(u);
	fd = pipe_of(pid, key);
	if (fd < 0)
		return fd;
	if (forked_guard(fd)) {
		close(fd);
		return -FI_ENOMEM;
	}
	u->fd = fd;
	u->key = key;
	return 0;
}

static short state_of(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n;

	do
		n = poll(&p, 1, 0);
	while (n < 0 && errno == EINTR);
	return n < 0 ? POLLERR : p.revents;
}

ssize_t shm_pipe_take(struct shm_pipe_user *u, pid_t pid, uint64_t key, const struct iovec *local,
		      size_t count)
{
	int err = find(u, pid, key);
	ssize_t got;
	short state;

	if (err)
		return err == -FI_ECONNRESET ? err : 0;
	got = readv(u->fd, local, (int)count); /* never waits: see pipe_of */
	state = state_of(u->fd);
	if (state) /* bytes left in the pipe keep the sender's pages */
		shm_pipe_forget(u);
	if (state & (POLLHUP | POLLERR)) /* the sender closed it: message recalled */
		return -FI_ECONNRESET;
	return got > 0 ? got : 0;
}
