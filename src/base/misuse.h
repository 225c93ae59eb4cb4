/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Misuse that only costs instructions to find on the way of a short message: builds with debug checks (make asan) refuse
 * the call and log why; others do not look, and crash.
 */
#ifndef WEFT_BASE_MISUSE_H
#define WEFT_BASE_MISUSE_H

#include "base/log.h"

#if ENABLE_DEBUG
#define MISUSED(wrong, ...)                                                                        \
	({                                                                                         \
		const bool misused_ = (wrong);                                                     \
                                                                                                   \
		if (misused_)                                                                      \
			LOG_WARN(LOG_EP_DATA, __VA_ARGS__);                                        \
		misused_;                                                                          \
	})
#else
#define MISUSED(wrong, ...) (false && (wrong))
#endif

/* A buffer of some length at NULL. */
#define MISUSED_BUFFER(call, buf, len)                                                             \
	MISUSED((len) && !(buf), "%s: %zu bytes at NULL", call, (size_t)(len))

/* The same of a list, which may be NULL. */
#define MISUSED_LIST(call, iov, count)                                                             \
	MISUSED(iov_at_null(iov, count), "%s: a segment of some length at NULL", call)

/* The structure of a ...msg call. */
#define MISUSED_MSG(call, msg) MISUSED(!(msg), "%s: no message", call)

#endif
