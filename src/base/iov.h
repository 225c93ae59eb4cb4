/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of memory segments. `skip` is the byte offset from the start of the list. */
#ifndef WEFT_BASE_IOV_H
#define WEFT_BASE_IOV_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

size_t iov_bytes(const struct iovec *iov, size_t count);

/*
 * Adds up the lengths of a list that an application gave: `first` is the length in its first entry, NULL without a list,
 * and `size` the bytes of an entry. 0 and *sum; -FI_EINVAL: no list, or more than `most` entries; -FI_EMSGSIZE: more than
 * a size_t holds. Logs the reason.
 */
int iov_add_up(const size_t *first, size_t size, size_t count, size_t most, size_t *sum);

/* The same for the member `length` of a list of structures. */
#define IOV_ADD_UP(list, length, count, most, sum)                                                 \
	iov_add_up((list) ? &(list)->length : NULL, sizeof(*(list)), count, most, sum)

/* Copies `len` bytes from `from` to offset `skip`, or as many as fit. Returns the bytes copied. */
size_t iov_scatter(const struct iovec *iov, size_t count, size_t skip, const void *from,
		   size_t len);

/*
 * Writes to `to` (space for `count`) the segments of *len bytes from offset `skip` on. Returns the
 * number of segments; sets *len to their bytes, fewer at the end of the list.
 */
size_t iov_slice(struct iovec *to, const struct iovec *iov, size_t count, size_t skip, size_t *len);

/* Has the list, which may be NULL, a segment of some length at NULL? */
bool iov_at_null(const struct iovec *iov, size_t count);

#endif
