/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory is registered for write protection, and none is ever protected: that makes no fault of anybody's
 * ours to resolve, and is allowed to every user. What was discarded is told before it happens, the
 * rest after it. Between the change and the reading of the event the kernel refuses to work on the memory
 * (-EAGAIN), before it looks at what it is asked: this is what tells that nothing is on the way. Kernels
 * before 5.16 lose count of that.
 */
#include "base/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/forked.h"

#define EVENTS (UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_REMAP)

/* Headers in use may be older: UFFD_USER_MODE_ONLY, and UFFD_FEATURE_EXACT_ADDRESS of Linux 5.18. */
#define USER_FAULTS_ONLY 1
#define EXACT_ADDRESS    (1u << 11)

#define NEEDED (EVENTS | UFFD_FEATURE_PAGEFAULT_FLAG_WP | EXACT_ADDRESS)
#define BATCH  16
#define STACK  (256u << 10) /* bytes of the thread's */

uintptr_t watch_floor(uintptr_t at)
{
	return at & -(uintptr_t)sysconf(_SC_PAGESIZE);
}

uintptr_t watch_ceil(uintptr_t at)
{
	return watch_floor(at + (uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

static struct uffdio_range pages(uintptr_t from, uintptr_t to)
{
	return (struct uffdio_range){watch_floor(from), watch_ceil(to) - watch_floor(from)};
}

bool watch_arm(const struct watch *w, uintptr_t from, uintptr_t to)
{
	struct uffdio_register arg = {.range = pages(from, to), .mode = UFFDIO_REGISTER_MODE_WP};

	return !ioctl(w->fd, UFFDIO_REGISTER, &arg);
}

void watch_disarm(const struct watch *w, uintptr_t from, uintptr_t to)
{
	struct uffdio_range arg = pages(from, to);

	ioctl(w->fd, UFFDIO_UNREGISTER, &arg);
}

/* Zero pages for no memory at all, which is wrong. */
bool watch_quiet(const struct watch *w)
{
	struct uffdio_zeropage arg = {.range = {0, 0}};

	return ioctl(w->fd, UFFDIO_ZEROPAGE, &arg) && errno == EINVAL;
}

static void tell(struct watch *w, const struct uffd_msg *msg)
{
	switch (msg->event) {
	case UFFD_EVENT_UNMAP:
	case UFFD_EVENT_REMOVE:
		w->changed(w->arg, msg->arg.remove.start, msg->arg.remove.end);
		break;
	case UFFD_EVENT_REMAP:
		w->changed(w->arg, msg->arg.remap.from, msg->arg.remap.from + msg->arg.remap.len);
		break;
	default: /* none was asked for */
		break;
	}
}

/* The thread that caused an event goes on once it is read, so it is told under the same lock. */
static void hear(struct watch *w)
{
	struct uffd_msg msg[BATCH];
	ssize_t n;

	pthread_mutex_lock(w->lock);
	while ((n = read(w->fd, msg, sizeof(msg))) > 0)
		for (size_t i = 0; i < (size_t)n / sizeof(msg[0]); i++)
			tell(w, &msg[i]);
	pthread_mutex_unlock(w->lock);
}

/*
 * A thread that frees memory may be waiting for this one, with any locks: here nothing is allocated, freed or
 * logged. Until the descriptor is closed all of it has to be heard.
 */
static void *listen_on(void *arg)
{
	struct watch *w = arg;
	struct pollfd fds[] = {{w->fd, POLLIN, 0}, {w->stop, POLLIN, 0}};

	while (!(fds[1].revents & POLLIN)) {
		poll(fds, 2, -1);
		hear(w);
	}
	close(w->fd);
	return NULL;
}

static int start(struct watch *w)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	/* No handler of the application's runs there: it might free something. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&w->thread, &attr, listen_on, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!err)
		pthread_setname_np(w->thread, "weft-watch");
	return -err;
}

/* 0 or a negative error; what the kernel can tell of is agreed on. */
static int agree(int fd)
{
	struct uffdio_api api = {.api = UFFD_API, .features = EVENTS};

	if (ioctl(fd, UFFDIO_API, &api))
		return -errno;
	return (api.features & NEEDED) == NEEDED ? 0 : -FI_EOPNOTSUPP;
}

int watch_open(struct watch *w)
{
	int err;

	w->fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_FAULTS_ONLY);
	if (w->fd < 0)
		return -errno;
	err = agree(w->fd);
	if (err)
		goto close_fd;
	w->stop = eventfd(0, EFD_CLOEXEC);
	if (w->stop < 0) {
		err = -errno;
		goto close_fd;
	}
	/* A child that kept it would keep us waiting for somebody to hear. */
	err = forked_guard(w->fd);
	if (err)
		goto close_stop;
	err = start(w);
	if (!err)
		return 0;
	forked_release(w->fd);
close_stop:
	close(w->stop);
close_fd:
	close(w->fd);
	return err;
}

void watch_close(struct watch *w)
{
	forked_release(w->fd);
	eventfd_write(w->stop, 1);
	pthread_join(w->thread, NULL);
	close(w->stop);
}
