/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/shm/shm_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/forked.h"
#include "base/log.h"

#define PIPE_BYTES (1 << 20) /* pages it may hold; as much as any user may ask for */
/* Whoever left so many in a row is not allowed to take them, most likely, or wants none. */
#define MISSES_MAX 4u

/* Numbers of descriptors are the sender's: which file is meant is told by the number that the kernel gave it. */
static uint64_t key_of(int number, int fd)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISFIFO(st.st_mode))
		return 0;
	return (uint64_t)st.st_ino << 32 | ((uint32_t)number + 1);
}

static bool make(struct shm_pipe *p)
{
	if (pipe2(p->ends, O_CLOEXEC | O_NONBLOCK))
		return false;
	p->key = key_of(p->ends[0], p->ends[0]);
	if (!p->key || fcntl(p->ends[1], F_SETPIPE_SZ, PIPE_BYTES) < 0 ||
	    forked_guard(p->ends[0]) || forked_guard(p->ends[1])) {
		LOG_INFO(LOG_EP_DATA, "shm: no pipe of %d bytes: %s", PIPE_BYTES,
			 fi_strerror(errno));
		forked_close(p->ends[0]);
		forked_close(p->ends[1]);
		return false;
	}
	p->open = true;
	++*p->count;
	return true;
}

static int left_in(int fd)
{
	int bytes = 0;

	return ioctl(fd, FIONREAD, &bytes) ? 0 : bytes;
}

uint64_t shm_pipe_put(struct shm_pipe *p, const struct iovec *iov, size_t count)
{
	if (p->busy || p->misses >= MISSES_MAX || (!p->open && *p->count >= SHM_PIPES_MAX))
		return 0;
	if (!p->open && !make(p)) {
		p->misses = MISSES_MAX;
		return 0;
	}
	if (vmsplice(p->ends[1], iov, count, SPLICE_F_NONBLOCK) <= 0) {
		p->misses++;
		return 0;
	}
	p->busy = true;
	return p->key;
}

void shm_pipe_close(struct shm_pipe *p)
{
	if (!p->open)
		return;
	forked_close(p->ends[0]);
	forked_close(p->ends[1]);
	p->open = p->busy = false;
	--*p->count;
}

void shm_pipe_end(struct shm_pipe *p)
{
	p->busy = false;
	if (!left_in(p->ends[0])) {
		p->misses = 0;
		return;
	}
	/* The peer may be about to read it: it is not to find the next one. */
	p->misses++;
	shm_pipe_close(p);
}

/* ---- The peer --------------------------------------------------------------------------------- */

void shm_pipe_forget(struct shm_pipe_end *e)
{
	if (e->key)
		forked_close(e->fd);
	e->key = 0;
}

#if defined(SYS_pidfd_open) && defined(SYS_pidfd_getfd)
static int descriptor_of(pid_t pid, int number)
{
	int fd, process = (int)syscall(SYS_pidfd_open, pid, 0);

	if (process < 0)
		return -1;
	fd = (int)syscall(SYS_pidfd_getfd, process, number, 0);
	close(process);
	return fd;
}
#else
static int descriptor_of(pid_t pid, int number)
{
	(void)pid;
	(void)number;
	return -1;
}
#endif

static bool find(struct shm_pipe_end *e, pid_t pid, uint64_t key)
{
	int number = (int)(uint32_t)key - 1, fd;

	if (e->key == key)
		return true;
	shm_pipe_forget(e);
	fd = descriptor_of(pid, number);
	if (fd < 0)
		return false;
	if (key_of(number, fd) != key || forked_guard(fd)) {
		close(fd);
		return false;
	}
	*e = (struct shm_pipe_end){.fd = fd, .key = key};
	return true;
}

/* Whoever withdraws a message closes the pipe: what was read until then is good. */
static short state_of(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) < 0 ? POLLERR : p.revents;
}

ssize_t shm_pipe_take(struct shm_pipe_end *e, pid_t pid, uint64_t key, const struct iovec *local,
		      size_t count)
{
	ssize_t got;
	short state;

	/* Never wait there: whatever is in it was put there before we were told. */
	if (!find(e, pid, key) || !left_in(e->fd))
		return 0;
	got = readv(e->fd, local, (int)count);
	state = state_of(e->fd);
	if (state) /* what is left in it keeps pages of the sender's */
		shm_pipe_forget(e);
	if (got <= 0)
		return 0;
	return state & (POLLHUP | POLLERR) ? -FI_ECONNRESET : got;
}
