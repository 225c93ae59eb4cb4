/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A framework for tests that use the public interface alone. A program is a table of cases. Each
 * case runs in one or more processes, forked before they use the library. The processes of a case
 * exchange data over sockets. The macros below check results; the first failed check ends the case.
 *
 *	static void hello(struct api *a) { ... a->rank, a->ranks ... }
 *	static const struct api_case cases[] = {{"hello", hello, 2}, {"alone", alone, 1}};
 *	int main(int argc, char **argv) { return api_main(argc, argv, cases, API_COUNT(cases)); }
 *
 * Arguments name the cases to run. HW names the provider; the default is "weft". OTHER=1 says that
 * the tests run against another library: features it does not offer are skipped.
 */
#ifndef API_H
#define API_H

#include <inttypes.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef API_LIMIT
#define API_LIMIT 10 /* seconds that a case may take, times SLOWER */
#endif
#define API_SKIP 77
#ifndef API_RANKS
#define API_RANKS 8 /* maximum number of processes of a case */
#endif
#define API_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * State of one process of a case. Rank 0 has a socket to each other rank, the others one to rank 0.
 */
struct api {
	int rank, ranks;
	int socks[API_RANKS];
	void *shared;             /* API_SHARED bytes shared by all processes, zero at the start */
	void (*progress)(void *); /* called while waiting for another process; may be NULL */
	void *progress_arg;
};

#define API_SHARED (16u << 20)

struct api_case {
	const char *name;
	void (*run)(struct api *a);
	int ranks;
	const char *env[2]; /* "NAME=value", set before the case runs */
};

/* Position and name of the running case, printed when a check fails or the time is over. */
static const char *api_at_file = "?";
static int api_at_line;
static const char *api_name = "?";
static int api_rank;

static inline const char *api_provider(void)
{
	const char *hw = getenv("HW");

	return hw && *hw ? hw : "weft";
}

/* Returns whether the provider uses the network path although all processes are on this host. */
static inline bool api_networked(void)
{
	return strcmp(api_provider(), "shm") != 0 && strcmp(api_provider(), "weft") != 0;
}

/*
 * Returns how often to repeat a step whose repetition only raises the chance to find a bug: `times`
 * divided by the setting FEWER. All processes of a case get the same number.
 */
static inline unsigned int api_times(unsigned int times)
{
	const char *fewer = getenv("FEWER");
	unsigned int by = fewer ? (unsigned int)atoi(fewer) : 1;

	return by <= 1 ? times : times > by ? times / by : 1;
}

/*
 * Returns `len` divided by FEWER, for transfers that are long only to be thorough. The result stays
 * above 1 MiB, so that a device still splits the transfer (VERBS_WRITE_MAX in src/hw/verbs).
 */
static inline size_t api_long(size_t len)
{
	const size_t least = (1u << 20) + 3;
	size_t shorter = api_times((unsigned int)len);

	if (len <= least)
		return len;
	return shorter > least ? shorter : least;
}

static inline bool api_other(void)
{
	return getenv("OTHER") != NULL;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static inline void api_at(const char *file, int line)
{
	/* Called from any thread. */
	__atomic_store_n(&api_at_file, file, __ATOMIC_RELAXED);
	__atomic_store_n(&api_at_line, line, __ATOMIC_RELAXED);
}

static inline __attribute__((noreturn)) void api_fail(const char *what)
{
	fprintf(stderr, "%s:%d: %s, rank %d: %s\n", api_at_file, api_at_line, api_name, api_rank,
		what);
	_exit(1);
}

static inline __attribute__((noreturn)) void api_skip(const char *why)
{
	fprintf(stderr, "%s: skipped: %s\n", api_name, why);
	_exit(API_SKIP);
}

static inline const char *api_word(int64_t value)
{
	return value < 0 && value > -1000 ? fi_strerror((int)-value) : "";
}

static inline void api_check_eq(int64_t got, int64_t want, const char *text)
{
	char line[512];

	if (got == want)
		return;
	snprintf(line, sizeof(line), "%s: got %" PRId64 " (%#" PRIx64 ") %s, wanted %" PRId64 " %s",
		 text, got, (uint64_t)got, api_word(got), want, api_word(want));
	api_fail(line);
}

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		api_at(__FILE__, __LINE__);                                                        \
		if (!(cond))                                                                       \
			api_fail("not so: " #cond);                                                \
	} while (0)
#define CHECK_EQ(got, want)                                                                        \
	do {                                                                                       \
		api_at(__FILE__, __LINE__);                                                        \
		api_check_eq((int64_t)(got), (int64_t)(want), #got " == " #want);                  \
	} while (0)
#define OK(call) CHECK_EQ(call, 0)

/* ---- Exchanging data between processes: over sockets, without the library ------------------- */

static inline void api_tell(struct api *a, int rank, const void *buf, size_t len)
{
	if (send(a->socks[rank], buf, len, MSG_NOSIGNAL) != (ssize_t)len)
		api_fail("another process is gone");
}

/* Receives `len` bytes from `rank`. Calls a->progress meanwhile, if set. */
static inline void api_hear(struct api *a, int rank, void *buf, size_t len)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = recv(a->socks[rank], (char *)buf + have, len - have,
				 a->progress ? MSG_DONTWAIT : 0);

		if (n == 0)
			api_fail("another process is gone");
		if (n > 0)
			have += (size_t)n;
		else if (a->progress)
			a->progress(a->progress_arg);
	}
}

/* Returns whether data from `rank` can be read. */
static inline bool api_heard(struct api *a, int rank)
{
	char byte;

	return recv(a->socks[rank], &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Allgather: each process gives `len` bytes and gets those of all, in the order of ranks. */
static inline void api_swap(struct api *a, const void *mine, void *all, size_t len)
{
	char *to = all;

	memcpy(to + (size_t)a->rank * len, mine, len);
	if (a->rank) {
		api_tell(a, 0, mine, len);
		api_hear(a, 0, all, len * (size_t)a->ranks);
		return;
	}
	for (int i = 1; i < a->ranks; i++)
		api_hear(a, i, to + (size_t)i * len, len);
	for (int i = 1; i < a->ranks; i++)
		api_tell(a, i, all, len * (size_t)a->ranks);
}

/* Barrier: returns when all processes have called it. */
static inline void api_meet_all(struct api *a)
{
	char all[API_RANKS], mine = 1;

	if (a->ranks > 1)
		api_swap(a, &mine, all, 1);
}

#define api_meet(a) (api_at(__FILE__, __LINE__), api_meet_all(a))

/* Barrier without progress: operations under way do not advance. */
static inline void api_meet_still(struct api *a)
{
	void (*progress)(void *) = a->progress;

	a->progress = NULL;
	api_meet(a);
	a->progress = progress;
}

static inline double api_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#include "lib/run.h"

#endif
