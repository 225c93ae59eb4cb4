/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log: one line per message, each in one write(2) to standard error.
 *
 * FI_LOG_LEVEL sets how much is logged (unset: nothing, not even warnings). FI_LOG_PROV and FI_LOG_SUBSYS are comma
 * lists of the providers and subsystems that log; a leading ^ makes them lists of those that do not.
 *
 * Use the macros: LOG_WARN(LOG_EP_CTRL, "peer %s: version %u, ours is %u", ...). They add the newline and keep errno. A
 * file of one transport defines LOG_PROV as the transport's name before it includes this header. All others log as
 * "core", which a list in FI_LOG_PROV without ^ does not silence.
 */
#ifndef WEFT_BASE_LOG_H
#define WEFT_BASE_LOG_H

#include <rdma/providers/fi_log.h>
#include <stdbool.h>
#include <stdint.h>

/* The subsystems of the public interface by our names. */
enum log_subsys {
	LOG_CORE = FI_LOG_CORE,
	LOG_FABRIC = FI_LOG_FABRIC,
	LOG_DOMAIN = FI_LOG_DOMAIN,
	LOG_EP_CTRL = FI_LOG_EP_CTRL,
	LOG_EP_DATA = FI_LOG_EP_DATA,
	LOG_AV = FI_LOG_AV,
	LOG_CQ = FI_LOG_CQ,
	LOG_EQ = FI_LOG_EQ,
	LOG_MR = FI_LOG_MR,
	LOG_CNTR = FI_LOG_CNTR,
	LOG_SUBSYS_COUNT
};

#define LOG_LEVEL_COUNT (FI_LOG_DEBUG + 1)

#ifndef LOG_PROV
#define LOG_PROV "core"
#endif

/* Source of a message; valid during the call. */
struct log_place {
	const char *prov;
	int level;  /* enum fi_log_level */
	int subsys; /* enum log_subsys */
	const char *func;
	int line;
};

/* Replaces the filters and the output; see log_redirect. */
struct log_sink {
	bool (*enabled)(const char *prov, int level, int subsys);
	bool (*ready)(const char *prov, int level, int subsys, uint64_t *showtime);
	void (*write)(const struct log_place *place, const char *msg); /* msg is formatted text */
};

/* For each level a bit per subsystem. All bits are set until the environment is read. */
extern uint32_t log_mask[LOG_LEVEL_COUNT];

/* Return the name, as in messages and filters ("warn", "core"), or "Unknown". */
const char *log_level_name(int level);
const char *log_subsys_name(int subsys);

/* Does FI_LOG_PROV allow this provider? */
bool log_names(const char *prov);

/* The full check, for any provider name: the sink's, or without a sink the filters'. */
bool log_allowed(const char *prov, int level, int subsys);
bool log_filter(const char *prov, int level, int subsys);

/* The same for messages limited in rate; *showtime belongs to the caller, 0 at first. */
bool log_ready(const char *prov, int level, int subsys, uint64_t *showtime);

/* Has FI_LOG_INTERVAL passed since the last true? Of several threads at once, one gets true. */
bool log_due(uint64_t *showtime);

/* Will a message of this file be written? If not, costs one load and a test. */
#define log_enabled(level, subsys)                                                                 \
	(__builtin_expect((log_mask[level] >> (subsys)) & 1U, 0) &&                                \
	 log_allowed(LOG_PROV, level, subsys))

/* Writes without checking the filters. */
void log_write(const struct log_place *place, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Writes formatted text to standard error, even if a sink is set. */
void log_put(const struct log_place *place, const char *msg);

#define LOG_AT(level, subsys, ...)                                                                 \
	do {                                                                                       \
		if (log_enabled(level, subsys))                                                    \
			log_write(                                                                 \
				&(struct log_place){LOG_PROV, level, subsys, __func__, __LINE__},  \
				__VA_ARGS__);                                                      \
	} while (0)

#define LOG_WARN(subsys, ...) LOG_AT(FI_LOG_WARN, subsys, __VA_ARGS__)
/* Says by LOG_WARN why a call is refused, and is the error: return LOG_REFUSE(-FI_EINVAL, LOG_CQ, "size %zu ...", ...). */
#define LOG_REFUSE(error, subsys, ...)                                                             \
	({                                                                                         \
		LOG_WARN(subsys, __VA_ARGS__);                                                     \
		(error);                                                                           \
	})
/*
 * As LOG_WARN, for what a peer can bring about, or anybody who reaches an endpoint: each such line of the sources writes one message in
 * FI_LOG_INTERVAL, however often they do it.
 */
#define LOG_PEER(subsys, ...)                                                                      \
	do {                                                                                       \
		static uint64_t peer_showtime;                                                     \
                                                                                                   \
		if (log_enabled(FI_LOG_WARN, subsys) && log_due(&peer_showtime))                   \
			log_write(&(struct log_place){LOG_PROV, FI_LOG_WARN, subsys, __func__,     \
						      __LINE__},                                   \
				  __VA_ARGS__);                                                    \
	} while (0)

#define LOG_INFO(subsys, ...)  LOG_AT(FI_LOG_INFO, subsys, __VA_ARGS__)
#define LOG_DEBUG(subsys, ...) LOG_AT(FI_LOG_DEBUG, subsys, __VA_ARGS__)

/* For base/env.c: the variables' values, NULL when unset. Keeps the strings. */
void log_setup(const char *level, const char *prov, const char *subsys);

/* Sends all messages to `sink` (static, or never freed) from now on; NULL: to standard error again. */
void log_redirect(const struct log_sink *sink);

/*
 * Misuse that only costs instructions to find on the way of a short message: builds with debug checks (make asan) refuse
 * the call and log why; others do not look, and crash.
 */
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
