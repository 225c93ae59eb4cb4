/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/verbs/dev/verbs_dev.h"

#include <errno.h>
#include <stdlib.h>

#define LOG_PROV "verbs"
#include "base/forked.h"
#include "base/log.h"

struct ibv_mr *verbs_mem_register(struct verbs_dev *dev, const struct iovec *iov,
				  unsigned int access)
{
	struct ibv_mr *mr = dev->lib->reg_mr(dev->pd, iov->iov_base, iov->iov_len, (int)access);
	int err = errno;

	if (!mr && err == ENOMEM && verbs_cache_spare(dev)) {
		mr = dev->lib->reg_mr(dev->pd, iov->iov_base, iov->iov_len, (int)access);
		err = errno;
	}
	errno = err;
	return mr;
}

/* Makes a registration for one use, outside the cache. */
static struct verbs_mem *get_alone(struct verbs_dev *dev, const struct iovec *iov,
				   unsigned int access)
{
	struct verbs_mem *mem = malloc(sizeof(*mem));

	if (!mem)
		return NULL;
	mem->dev = dev;
	mem->kept = false;
	/* With on-demand paging only memory that the peer reads needs a registration. */
	if (dev->anywhere && !(access & IBV_ACCESS_REMOTE_READ))
		mem->mr = dev->anywhere;
	else
		mem->mr = verbs_mem_register(dev, iov, access);
	if (mem->mr)
		return mem;
	LOG_INFO(LOG_MR, "%s does not register %zu bytes at %p: %s%s", dev->name, iov->iov_len,
		 iov->iov_base, fi_strerror(errno),
		 errno == ENOMEM ? " (how much memory may be locked? ulimit -l)" : "");
	free(mem);
	return NULL;
}

struct verbs_mem *verbs_mem_get(struct verbs_dev *dev, const struct iovec *iov, unsigned int access)
{
	struct verbs_mem *mem = NULL;

	if (!dev->anywhere || access & IBV_ACCESS_REMOTE_READ)
		mem = verbs_cache_get(dev, iov, access);
	return mem ? mem : get_alone(dev, iov, access);
}

void verbs_mem_put(struct verbs_mem *mem)
{
	bool ours = mem && mem->dev->forked == forked_count();

	if (!mem)
		return;
	if (mem->kept) {
		/* A forked child leaves the cache alone: another thread may have held its lock. */
		if (ours)
			verbs_cache_put(mem);
		return;
	}
	if (ours && mem->mr != mem->dev->anywhere)
		mem->dev->lib->dereg_mr(mem->mr);
	free(mem);
}
