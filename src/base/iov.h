/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory in segments: the part of it that begins `skip` bytes from its start. */
#ifndef WEFT_BASE_IOV_H
#define WEFT_BASE_IOV_H

#include <stddef.h>
#include <sys/uio.h>

size_t iov_bytes(const struct iovec *iov, size_t count);

/* Copies `len` bytes there, or as many as there is room for; how many. */
size_t iov_scatter(const struct iovec *iov, size_t count, size_t skip, const void *from,
		   size_t len);

/*
 * Writes the segments of the next *len bytes to `to`, which has room for `count`; how many there are.
 * *len becomes what they hold: less where the memory ends.
 */
size_t iov_slice(struct iovec *to, const struct iovec *iov, size_t count, size_t skip, size_t *len);

#endif
