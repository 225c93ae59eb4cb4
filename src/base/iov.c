/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/iov.h"

#include <rdma/fi_errno.h>
#include <stdint.h>

#include "base/copy.h"
#include "base/log.h"

size_t iov_bytes(const struct iovec *iov, size_t count)
{
	size_t len = 0;

	while (count-- > 0)
		len += iov++->iov_len;
	return len;
}

int iov_add_up(const size_t *first, size_t size, size_t count, size_t most, size_t *sum)
{
	size_t total = 0;

	if (count > most || (count && !first))
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_DATA,
				  "a list of %zu segments%s; at most %zu are possible", count,
				  first ? "" : " at NULL", most);
	for (size_t i = 0; i < count; i++) {
		size_t len = *(const size_t *)((const char *)first + i * size);

		if (__builtin_add_overflow(total, len, &total))
			return LOG_REFUSE(
				-FI_EMSGSIZE, LOG_EP_DATA,
				"segment %zu of %zu has length %zu: the sum is more than %zu", i,
				count, len, SIZE_MAX);
	}
	*sum = total;
	return 0;
}

bool iov_at_null(const struct iovec *iov, size_t count)
{
	for (size_t i = 0; iov && i < count; i++)
		if (iov[i].iov_len && !iov[i].iov_base)
			return true;
	return false;
}

size_t iov_slice(struct iovec *to, const struct iovec *iov, size_t count, size_t skip, size_t *len)
{
	size_t used = 0, done = 0;

	for (size_t i = 0; i < count && done < *len; i++) {
		size_t piece = iov[i].iov_len;

		if (skip >= piece) {
			skip -= piece;
			continue;
		}
		piece -= skip;
		if (piece > *len - done)
			piece = *len - done;
		/* No arithmetic of pointers: a segment of another process may begin at 0. */
		to[used++] = (struct iovec){(void *)((uintptr_t)iov[i].iov_base + skip), piece};
		done += piece;
		skip = 0;
	}
	*len = done;
	return used;
}

size_t iov_scatter(const struct iovec *iov, size_t count, size_t skip, const void *from, size_t len)
{
	size_t done = 0;

	for (size_t i = 0; i < count && done < len; i++) {
		struct iovec at;
		size_t piece = len - done;

		if (iov_slice(&at, &iov[i], 1, skip, &piece)) {
			copy_bytes(at.iov_base, (const char *)from + done, piece);
			done += piece;
			skip = 0;
		} else {
			skip -= iov[i].iov_len;
		}
	}
	return done;
}
