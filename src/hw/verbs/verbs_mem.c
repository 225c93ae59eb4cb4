/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/verbs/verbs_mem.h"

#include <errno.h>
#include <stdlib.h>

#define LOG_PROV "verbs"
#include "base/forked.h"
#include "base/log.h"

struct verbs_mem *verbs_mem_get(struct verbs_dev *dev, const struct iovec *iov, unsigned int access)
{
	struct verbs_mem *mem = malloc(sizeof(*mem));

	if (!mem)
		return NULL;
	mem->dev = dev;
	mem->mr = dev->lib->reg_mr(dev->pd, iov->iov_base, iov->iov_len, (int)access);
	if (mem->mr)
		return mem;
	LOG_INFO(LOG_MR, "%s does not register %zu bytes at %p: %s%s", dev->name, iov->iov_len,
		 iov->iov_base, fi_strerror(errno),
		 errno == ENOMEM ? " (how much memory may be locked? ulimit -l)" : "");
	free(mem);
	return NULL;
}

void verbs_mem_put(struct verbs_mem *mem)
{
	if (!mem)
		return;
	if (mem->dev->forked == forked_count())
		mem->dev->lib->dereg_mr(mem->mr);
	free(mem);
}
