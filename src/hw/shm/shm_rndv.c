/* SPDX-License-Identifier: BSD-2-Clause */
/* Long messages that the peer reads by itself: from our bounce buffer, out of a pipe, or by CMA. */
#include <rdma/fi_errno.h>

#include "base/iov.h"
#include "hw/shm/shm.h"
#include "hw/shm/shm_guard.h"
#include "hw/shm/shm_bounce.h"

static int register_pages(struct shm_link *s, const struct iovec *iov, size_t count,
			  struct fi_rma_iov *at, void **registered)
{
	struct shm_pipe *pipe = s->pid ? shm_pipe_put(&s->own->pipes, &s->pipe, iov, count) : NULL;

	if (!pipe)
		return -FI_ENOSYS;
	for (size_t i = 0; i < count; i++)
		at[i] = (struct fi_rma_iov){.addr = (uintptr_t)iov[i].iov_base,
					    .len = iov[i].iov_len,
					    .key = i == 0 ? pipe->key : 0};
	*registered = pipe;
	return 0;
}

int shm_rndv_register(struct link *link, enum proto proto, const struct iovec *iov, size_t count,
		      const void *batch, struct fi_rma_iov *at, void **registered)
{
	struct shm_link *s = (struct shm_link *)link;

	if (proto == PROTO_BOUNCE)
		return shm_bounce_put(s, iov, count, batch, at, registered);
	return proto == PROTO_PIPE ? register_pages(s, iov, count, at, registered) : -FI_ENOSYS;
}

void shm_rndv_deregister(struct link *link, void *registered)
{
	struct shm_link *s = (struct shm_link *)link;
	struct shm_pipes *all = &s->own->pipes;
	struct shm_pipe *pipe = registered;

	if (pipe >= all->pipe && pipe < all->pipe + SHM_PIPES)
		shm_pipe_end(all, pipe, &s->pipe);
	else
		shm_bounce_end(registered);
}

/* Copies by CMA what the pipe did not deliver, from byte `done` on. 0 or a negative error. */
static int fetch_rest(struct shm_link *s, const struct shm_cma *c, size_t done)
{
	struct iovec local[WIRE_IOV_MAX], remote[WIRE_IOV_MAX];
	struct shm_cma rest = {.local = local, .remote = remote};
	size_t ours = SIZE_MAX, theirs = SIZE_MAX;

	rest.local_count = iov_slice(local, c->local, c->local_count, done, &ours);
	rest.remote_count = iov_slice(remote, c->remote, c->remote_count, done, &theirs);
	return ours && theirs ? shm_cma_copy(s, &rest) : 0;
}

static ssize_t fetch_memory(struct shm_link *s, const struct shm_cma *c, uint64_t key)
{
	size_t ours = iov_bytes(c->local, c->local_count);
	size_t theirs = iov_bytes(c->remote, c->remote_count);
	ssize_t got = 0;
	int err;

	if (key && s->pid)
		got = shm_pipe_take(&s->pipe, s->pid, key, c->local, c->local_count);
	if (got < 0)
		return got;
	err = fetch_rest(s, c, (size_t)got);
	return err ? err : (ssize_t)(ours < theirs ? ours : theirs);
}

ssize_t shm_fetch(struct link *link, const struct iovec *local, size_t local_count,
		  const struct iovec *remote, size_t remote_count, uint64_t key)
{
	struct shm_link *s = (struct shm_link *)link;
	struct shm_cma c = {.local = local,
			    .remote = remote,
			    .local_count = local_count,
			    .remote_count = remote_count};
	bool bounced = remote_count && (uintptr_t)remote->iov_base >= SHM_BOUNCE_BASE;
	ssize_t got = bounced ? shm_bounce_take(&s->ring, local, local_count, remote, remote_count)
			      : fetch_memory(s, &c, key);

	/* A peer that closed its worker may have reused the memory before we read it. */
	return got >= 0 && shm_guard_closed(&s->ring) ? -FI_ECONNRESET : got;
}
