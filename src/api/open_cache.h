/* SPDX-License-Identifier: BSD-2-Clause */
/* The object "mr_cache" of fi_open: the registration cache of all providers. fi_mr(3) */
#ifndef WEFT_API_OPEN_CACHE_H
#define WEFT_API_OPEN_CACHE_H

#include <rdma/fabric.h>

/* 0; -FI_EINVAL: there are attributes; -FI_EBADFLAGS. */
int open_cache(size_t attr_len, uint64_t flags, struct fid **fid);

#endif
