/* SPDX-License-Identifier: BSD-2-Clause */
/* Long messages that the peer reads by itself: from our bounce buffer, or by CMA. */
#include <rdma/fi_errno.h>

#include "base/iov.h"
#include "hw/shm/shm.h"
#include "hw/shm/shm_guard.h"
#include "hw/shm/shm_bounce.h"

int shm_rndv_register(struct link *link, enum proto proto, const struct iovec *iov, size_t count,
		      const void *batch, struct fi_rma_iov *at, void **registered)
{
	struct shm_link *s = (struct shm_link *)link;

	if (proto == PROTO_BOUNCE)
		return shm_bounce_put(s, iov, count, batch, at, registered);
	return -FI_ENOSYS;
}

void shm_rndv_deregister(struct link *link, void *registered)
{
	(void)link;
	shm_bounce_end(registered);
}

static ssize_t fetch_memory(struct shm_link *s, struct shm_cma c)
{
	size_t ours = iov_bytes(c.local, c.local_count);
	size_t theirs = iov_bytes(c.remote, c.remote_count);
	int err = shm_cma_copy(s, &c);

	return err ? err : (ssize_t)(ours < theirs ? ours : theirs);
}

ssize_t shm_fetch(struct link *link, const struct iovec *local, size_t local_count,
		  const struct iovec *remote, size_t remote_count)
{
	struct shm_link *s = (struct shm_link *)link;
	struct shm_cma c = {.local = local,
			    .remote = remote,
			    .local_count = local_count,
			    .remote_count = remote_count};
	bool bounced = remote_count && (uintptr_t)remote->iov_base >= SHM_BOUNCE_BASE;
	ssize_t got = bounced ? shm_bounce_take(&s->ring, local, local_count, remote, remote_count)
			      : fetch_memory(s, c);

	/* A peer that closed its worker may have reused the memory before we read it. */
	return got >= 0 && shm_guard_closed(&s->ring) ? -FI_ECONNRESET : got;
}
