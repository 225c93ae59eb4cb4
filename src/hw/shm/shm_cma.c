/* SPDX-License-Identifier: BSD-2-Clause */
/* CMA: process_vm_readv and process_vm_writev. */
#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/iov.h"
#include "base/log.h"
#include "hw/shm/shm.h"
#include "link/wire.h"

/* Steps over the first `len` bytes of a vector. */
static void advance(struct iovec **iov, size_t *count, size_t len)
{
	while (*count && len >= (*iov)->iov_len) {
		len -= (*iov)->iov_len;
		(*iov)++;
		(*count)--;
	}
	if (*count) {
		(*iov)->iov_base = (char *)(*iov)->iov_base + len;
		(*iov)->iov_len -= len;
	}
}

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
	struct iovec l[WIRE_IOV_MAX], r[WIRE_IOV_MAX], *local = l, *remote = r;
	struct shm_cma left = *c;
	ssize_t got = (ssize_t)c->moved;

	memcpy(l, c->local, c->local_count * sizeof(*l));
	memcpy(r, c->remote, c->remote_count * sizeof(*r));
	while (got > 0) {
		advance(&local, &left.local_count, (size_t)got);
		advance(&remote, &left.remote_count, (size_t)got);
		if (!left.local_count || !left.remote_count)
			return 0;
		left.local = local;
		left.remote = remote;
		got = copy_some(s, &left);
		if (got > 0)
			c->moved += (size_t)got;
	}
	return got < 0 ? -errno : -FI_EFAULT;
}

/*
 * Has the peer's process ended? The kernel may give its pid to another process. While the peer's
 * socket is open, the pid is the peer's. The socket is polled once per tick of the coarse clock:
 * pids are not given anew within a few milliseconds.
 */
static bool ended(struct shm_link *s)
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
static void give_up(struct shm_link *s, const char *what, int err)
{
	LOG_INFO(LOG_EP_DATA, "shm: %s %d refused: %s; copying through the ring from now on", what,
		 (int)s->pid, fi_strerror(err));
	s->pid = 0;
	s->cma_error = err;
	s->link.fetches = false;
	s->link.helped_min = SIZE_MAX;
}

int shm_cma_copy(struct shm_link *s, struct shm_cma *c)
{
	ssize_t got;
	int err;

	c->moved = 0;
	if (!s->pid)
		return -FI_ENOSYS;
	if (ended(s))
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
		give_up(s, c->write ? "process_vm_writev to" : "process_vm_readv from", err);
	return -err;
}
