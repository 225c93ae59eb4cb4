/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory is registered for write protection but never protected: no access faults, and every user may do it. The kernel
 * reports a discard before it happens, other changes afterwards. Between a change and the reading of its event the
 * kernel refuses requests for the memory with -EAGAIN before it checks their arguments; watch_quiet relies on that.
 * Kernels before 5.16 miscount changes in progress.
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

/* Missing in older headers: UFFD_USER_MODE_ONLY; UFFD_FEATURE_EXACT_ADDRESS of Linux 5.18. */
#define USER_FAULTS_ONLY 1
#define EXACT_ADDRESS    (1u << 11)
/* USERFAULTFD_IOC_NEW of Linux 6.1. */
#define DEVICE_NEW _IO(0xAA, 0x00)

#define OPEN_FLAGS (O_CLOEXEC | O_NONBLOCK | USER_FAULTS_ONLY)

#define NEEDED (EVENTS | UFFD_FEATURE_PAGEFAULT_FLAG_WP | EXACT_ADDRESS)
#define BATCH  16
#define STACK  (256u << 10) /* stack size (bytes) of the thread */

uintptr_t watch_floor(uintptr_t at)
{
	return at & -(uintptr_t)sysconf(_SC_PAGESIZE);
}

uintptr_t watch_ceil(uintptr_t at)
{
	uintptr_t rest = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;

	return watch_floor(at <= UINTPTR_MAX - rest ? at + rest : UINTPTR_MAX);
}

static struct uffdio_range watch_pages(uintptr_t from, uintptr_t to)
{
	return (struct uffdio_range){watch_floor(from), watch_ceil(to) - watch_floor(from)};
}

bool watch_arm(const struct watch *w, uintptr_t from, uintptr_t to)
{
	struct uffdio_register arg = {.range = watch_pages(from, to),
				      .mode = UFFDIO_REGISTER_MODE_WP};
	struct fid_mem_monitor *m = w->monitor;

	return m ? !m->export_ops->subscribe(m, (void *)from, to - from)
		 : !ioctl(w->fd, UFFDIO_REGISTER, &arg);
}

void watch_leave(const struct watch *w, uintptr_t from, uintptr_t to)
{
	if (w->monitor)
		w->monitor->export_ops->unsubscribe(w->monitor, (void *)from, to - from);
}

void watch_disarm(const struct watch *w, uintptr_t from, uintptr_t to)
{
	struct uffdio_range arg = watch_pages(from, to);

	if (!w->monitor)
		ioctl(w->fd, UFFDIO_UNREGISTER, &arg);
}

/* Asks for zero pages in an empty range: EINVAL, or EAGAIN while a change is in progress. */
bool watch_quiet(const struct watch *w)
{
	struct uffdio_zeropage arg = {.range = {0, 0}};

	return w->monitor || (ioctl(w->fd, UFFDIO_ZEROPAGE, &arg) && errno == EINVAL);
}

bool watch_valid(const struct watch *w, uintptr_t from, uintptr_t to)
{
	struct fid_mem_monitor *m = w->monitor;

	return !m || m->export_ops->valid(m, (void *)from, to - from);
}

void watch_report(struct watch *w, uintptr_t from, uintptr_t to)
{
	pthread_mutex_lock(w->lock);
	w->changed(w->arg, watch_floor(from), watch_ceil(to));
	pthread_mutex_unlock(w->lock);
}

static void watch_report_event(struct watch *w, const struct uffd_msg *msg)
{
	switch (msg->event) {
	case UFFD_EVENT_UNMAP:
	case UFFD_EVENT_REMOVE:
		w->changed(w->arg, msg->arg.remove.start, msg->arg.remove.end);
		break;
	case UFFD_EVENT_REMAP:
		w->changed(w->arg, msg->arg.remap.from, msg->arg.remap.from + msg->arg.remap.len);
		break;
	default: /* other events are not enabled */
		break;
	}
}

/* Under one lock: once an event is read, the thread that caused it continues. */
static void watch_hear(struct watch *w)
{
	struct uffd_msg msg[BATCH];
	ssize_t n;

	pthread_mutex_lock(w->lock);
	while ((n = read(w->fd, msg, sizeof(msg))) > 0)
		for (size_t i = 0; i < (size_t)n / sizeof(msg[0]); i++)
			watch_report_event(w, &msg[i]);
	pthread_mutex_unlock(w->lock);
}

/*
 * A thread that frees memory may wait for this thread and hold any locks. So this thread allocates,
 * frees and logs nothing. It reads all events until it closes the descriptor.
 */
static void *listen_on(void *arg)
{
	struct watch *w = arg;
	struct pollfd fds[] = {{w->fd, POLLIN, 0}, {w->stop, POLLIN, 0}};

	while (!(fds[1].revents & POLLIN)) {
		poll(fds, 2, -1);
		watch_hear(w);
	}
	close(w->fd);
	return NULL;
}

static int watch_start(struct watch *w)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	/* Blocks all signals: a handler of the application could free memory in this thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&w->thread, &attr, listen_on, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!err)
		pthread_setname_np(w->thread, "weft-watch");
	return -err;
}

/* Enables the events. Returns 0 or a negative error. */
static int watch_agree(int fd)
{
	struct uffdio_api api = {.api = UFFD_API, .features = EVENTS};

	if (ioctl(fd, UFFDIO_API, &api))
		return -errno;
	return (api.features & NEEDED) == NEEDED ? 0 : -FI_EOPNOTSUPP;
}

/*
 * Opens a userfaultfd, or returns a negative error. Where the system call is forbidden, as in many
 * containers, its device may be there (Linux 6.1). Rights on that decide who may use it.
 */
static int open_fd(void)
{
	int fd = (int)syscall(SYS_userfaultfd, OPEN_FLAGS), device, err;

	if (fd >= 0)
		return fd;
	err = -errno;
	device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	if (device < 0)
		return err;
	fd = ioctl(device, DEVICE_NEW, OPEN_FLAGS);
	err = -errno;
	close(device);
	return fd < 0 ? err : fd;
}

/* Lets the kernel report. 0 or a negative error. */
static int watch_kernel(struct watch *w)
{
	int err;

	w->fd = open_fd();
	if (w->fd < 0)
		return w->fd;
	err = watch_agree(w->fd);
	if (err)
		goto close_fd;
	w->stop = eventfd(0, EFD_CLOEXEC);
	if (w->stop < 0) {
		err = -errno;
		goto close_fd;
	}
	/* A child's copy would keep the userfaultfd open, and our threads would wait for a reader. */
	err = forked_guard(w->fd);
	if (err)
		goto close_stop;
	err = watch_start(w);
	if (!err)
		return 0;
	forked_release(w->fd);
close_stop:
	close(w->stop);
close_fd:
	close(w->fd);
	return err;
}

int watch_open(struct watch *w)
{
	int err = monitor_open(w, &w->monitor);

	if (err || w->monitor)
		return err;
	err = watch_kernel(w);
	if (err)
		monitor_close(w, NULL);
	return err;
}

void watch_close(struct watch *w)
{
	if (!w->monitor) {
		forked_release(w->fd);
		eventfd_write(w->stop, 1);
		pthread_join(w->thread, NULL);
		close(w->stop);
	}
	monitor_close(w, w->monitor);
}
