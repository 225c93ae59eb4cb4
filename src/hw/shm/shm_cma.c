/* SPDX-License-Identifier: BSD-2-Clause */
/* CMA: process_vm_readv and process_vm_writev. */
#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/iov.h"
#include "base/log.h"
#include "hw/shm/shm.h"
#include "link/wire.h"

static ssize_t copy_some(const struct shm_link *s, const struct shm_cma *c)
{
	return c->write ? process_vm_writev(s->pid, c->local, c->local_count, c->remote,
					    c->remote_count, 0)
			: process_vm_readv(s->pid, c->local, c->local_count, c->remote,
					   c->remote_count, 0);
}

/* The kernel moves at most 2 GiB per call: asks for the rest until all has moved. */
static int copy_rest(struct shm_link *s, struct shm_cma *c)
{
	struct iovec local[WIRE_IOV_MAX], remote[WIRE_IOV_MAX];
	struct shm_cma rest = {.local = local, .remote = remote, .write = c->write};
	ssize_t got;

	do {
		size_t ours = SIZE_MAX, theirs = SIZE_MAX;

		rest.local_count = iov_slice(local, c->local, c->local_count, c->moved, &ours);
		rest.remote_count =
			iov_slice(remote, c->remote, c->remote_count, c->moved, &theirs);
		if (!ours || !theirs)
			return 0;
		got = copy_some(s, &rest);
		if (got > 0)
			c->moved += (size_t)got;
	} while (got > 0);
	return got < 0 ? -errno : -FI_EFAULT;
}

/*
 * Has the peer's process ended? The kernel may give its pid to another process. While the peer's
 * socket is open, the pid is the peer's. The socket is polled once per tick of the coarse clock:
 * pids are not given anew within a few milliseconds.
 */
static bool shm_cma_ended(struct shm_link *s)
{
	struct pollfd p = {.fd = s->sock};
	uint64_t now = clock_coarse_ms();

	if (now == s->looked)
		return false;
	if (poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR))
		return true;
	s->looked = now;
	return false;
}

/* The kernel refuses CMA (system call filter, ptrace rules): never use it for this peer again. */
static void shm_cma_give_up(struct shm_link *s, const char *what, int err)
{
	LOG_INFO(LOG_EP_DATA, "shm: %s %d refused: %s; copying through the ring from now on", what,
		 (int)s->pid, fi_strerror(err));
	s->pid = 0;
	s->cma_error = err;
}

int shm_cma_copy(struct shm_link *s, struct shm_cma *c)
{
	ssize_t got;
	int err;

	c->moved = 0;
	if (!s->pid)
		return -FI_ENOSYS;
	if (shm_cma_ended(s))
		return -FI_ECONNRESET;
	got = copy_some(s, c);
	if (got > 0)
		c->moved = (size_t)got;
	if (got >= 0 && (c->moved == iov_bytes(c->local, c->local_count) ||
			 c->moved == iov_bytes(c->remote, c->remote_count)))
		return 0;
	if (got > 0)
		return copy_rest(s, c);
	err = got < 0 ? errno : FI_EFAULT;
	if (err == EPERM || err == ENOSYS)
		shm_cma_give_up(s, c->write ? "process_vm_writev to" : "process_vm_readv from",
				err);
	return -err;
}
