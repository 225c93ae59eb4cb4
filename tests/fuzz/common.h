/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all fuzzers share: a log whose lines are formatted and dropped, and when the objects under test are closed. Most
 * inputs find those of the one before. Some close everything in good order, as the end of the run does: LeakSanitizer
 * finds what is left then.
 */
#ifndef FUZZ_COMMON_H
#define FUZZ_COMMON_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <unistd.h>

#include "base/log.h"
#include "input.h"

static bool log_all(const char *prov, int level, int subsys)
{
	(void)prov, (void)subsys;
	return level <= FI_LOG_INFO;
}

static void log_drop(const struct log_place *place, const char *msg)
{
	(void)place;
	MUST(strlen(msg) < 4096);
}

static const struct log_sink log_sink = {.enabled = log_all, .write = log_drop};

/* Does an input of this length close everything? By its length, so that it does so when it is repeated. */
static inline bool ends_all(size_t size)
{
	return size % 16 == 0;
}

static inline unsigned int lowest_fd(void)
{
	int fd = dup(STDERR_FILENO);

	MUST(fd >= 0);
	close(fd);
	return (unsigned int)fd;
}

/* Closes an object, if it is open. */
#define CLOSE(object)                                                                              \
	do {                                                                                       \
		if (object)                                                                        \
			MUST(!fi_close(&(object)->fid));                                           \
		(object) = NULL;                                                                   \
	} while (0)

#endif
