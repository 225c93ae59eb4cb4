/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the application as a device knows it, while a transfer needs it. */
#ifndef WEFT_HW_VERBS_MEM_H
#define WEFT_HW_VERBS_MEM_H

#include <sys/uio.h>

#include "base/ranges.h"
#include "hw/verbs/dev/verbs_dev.h"

/* Memory that has this fragment; each user takes it and gives it back. */
struct verbs_mem {
	struct verbs_dev *dev;
	struct ibv_mr *mr;
	bool kept;          /* verbs_cache.h */
	struct range range; /* of what is kept */
};

/* `access`: IBV_ACCESS_ bits. NULL: the device does not take it. */
struct verbs_mem *verbs_mem_get(struct verbs_dev *dev, const struct iovec *iov,
				unsigned int access);
/* NULL is nothing. */
void verbs_mem_put(struct verbs_mem *mem);

/*
 * Registers it anew; what is kept without being in use makes way where no more can be locked. NULL, with errno: the
 * device does not take it.
 */
struct ibv_mr *verbs_mem_register(struct verbs_dev *dev, const struct iovec *iov,
				  unsigned int access);

#endif
