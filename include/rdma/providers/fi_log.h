/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log output.  FI_LOG_LEVEL (none when unset, else warn, trace, info, debug: each with those
 * before it), FI_LOG_PROV and FI_LOG_SUBSYS choose what is written.  Man page: fi_log(3).
 */
#ifndef FI_LOG_H
#define FI_LOG_H

#include <errno.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fi_log_subsys {
	FI_LOG_CORE,
	FI_LOG_FABRIC,
	FI_LOG_DOMAIN,
	FI_LOG_EP_CTRL,
	FI_LOG_EP_DATA,
	FI_LOG_AV,
	FI_LOG_CQ,
	FI_LOG_EQ,
	FI_LOG_MR,
	FI_LOG_CNTR,
};

enum fi_log_level {
	FI_LOG_WARN,
	FI_LOG_TRACE,
	FI_LOG_INFO,
	FI_LOG_DEBUG,
};

/*
 * Not 0 when a message of this provider, level and subsystem would be written; leaves errno alone.
 * fi_log(3)
 */
EXTERNALLY_VISIBLE int
fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
	       enum fi_log_subsys subsys);

/*
 * fi_log_enabled() for a message that may come often: *showtime, 0 at first and the caller's
 * between calls, keeps the time (the library's own unit) before which the answer is 0.
 * fi_log(3)
 */
EXTERNALLY_VISIBLE int
fi_log_ready(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	     uint64_t *showtime);

/* Write one message without testing the levels; use the macros below.  fi_log(3) */
EXTERNALLY_VISIBLE void
fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
       const char *func, int line, const char *fmt, ...)
	FI_FORMAT_PRINTF(6, 7);

/* Message with function name and line if `when` holds; errno comes out as it went in. */
#define WEFT_LOG_IF(when, prov, level, subsystem, ...)					\
	do {										\
		if (when) {								\
			int weft_errno_ = errno;					\
			fi_log(prov, level, subsystem, __func__, __LINE__, __VA_ARGS__); \
			errno = weft_errno_;						\
		}									\
	} while (0)

#define FI_LOG(prov, level, subsystem, ...)						\
	WEFT_LOG_IF(fi_log_enabled(prov, level, subsystem), prov, level, subsystem, __VA_ARGS__)

/* At most one message per place in a while. */
#define FI_LOG_SPARSE(prov, level, subsystem, ...)					\
	do {										\
		static uint64_t weft_showtime_;						\
		WEFT_LOG_IF(fi_log_ready(prov, level, subsystem, &weft_showtime_),	\
			    prov, level, subsystem, __VA_ARGS__);			\
	} while (0)

#define FI_WARN(prov, subsystem, ...)	FI_LOG(prov, FI_LOG_WARN, subsystem, __VA_ARGS__)

#define FI_WARN_SPARSE(prov, subsystem, ...)						\
	FI_LOG_SPARSE(prov, FI_LOG_WARN, subsystem, __VA_ARGS__)

/* One message per place and process, also when several threads arrive together. */
#define FI_WARN_ONCE(prov, subsystem, ...)						\
	do {										\
		static int weft_told_;							\
		WEFT_LOG_IF(fi_log_enabled(prov, FI_LOG_WARN, subsystem) &&		\
			    !__atomic_exchange_n(&weft_told_, 1, __ATOMIC_RELAXED),	\
			    prov, FI_LOG_WARN, subsystem, __VA_ARGS__);			\
	} while (0)

#define FI_INFO(prov, subsystem, ...)	FI_LOG(prov, FI_LOG_INFO, subsystem, __VA_ARGS__)

#define FI_TRACE(prov, subsystem, ...)	FI_LOG(prov, FI_LOG_TRACE, subsystem, __VA_ARGS__)

/* Only in builds with ENABLE_DEBUG; elsewhere the arguments are not even compiled. */
#if defined(ENABLE_DEBUG) && ENABLE_DEBUG
#define FI_DBG(prov, subsystem, ...)	FI_LOG(prov, FI_LOG_DEBUG, subsystem, __VA_ARGS__)
#define FI_DBG_TRACE(prov, subsystem, ...) FI_LOG(prov, FI_LOG_TRACE, subsystem, __VA_ARGS__)
#else
#define FI_DBG(prov, subsystem, ...)		do { } while (0)
#define FI_DBG_TRACE(prov, subsystem, ...)	do { } while (0)
#endif

#ifdef __cplusplus
}
#endif

#endif /* FI_LOG_H */
