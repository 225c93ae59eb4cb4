/* SPDX-License-Identifier: BSD-2-Clause */
/* The window of the one-sided MPI programs, and all ways of synchronizing access to it. */
#ifndef MPI_WINDOW_H
#define MPI_WINDOW_H

#include <stdbool.h>
#include "mpi_say.h"

#define MAX_SIZE (1 << 20)
#define ROOM     (MAX_SIZE + 64)

static unsigned char *memory; /* this rank's part of the window */
static MPI_Win win;

/*
 * ---- Synchronization: this rank accesses the next rank, the previous rank accesses this one ----
 */

static inline void fence_begin(void)
{
	MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
}

static inline void fence_end(void)
{
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

static inline void lock_begin(void)
{
	MPI_Win_lock(MPI_LOCK_SHARED, after(), 0, win);
}

static inline void lock_end(void)
{
	MPI_Win_unlock(after(), win);
	MPI_Barrier(MPI_COMM_WORLD);
}

static inline void exclusive_begin(void)
{
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, after(), 0, win);
}

static inline void flush_begin(void)
{
	MPI_Win_lock_all(0, win);
}

static inline void flush_end(void)
{
	MPI_Win_flush(after(), win);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
}

static inline void group_of(int other, MPI_Group *group)
{
	MPI_Group all;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &other, group);
	MPI_Group_free(&all);
}

static inline void pscw_begin(void)
{
	MPI_Group to, from;

	group_of(after(), &to);
	group_of(before(), &from);
	MPI_Win_post(from, 0, win);
	MPI_Win_start(to, 0, win);
	MPI_Group_free(&to);
	MPI_Group_free(&from);
}

static inline void pscw_end(void)
{
	MPI_Win_complete(win);
	MPI_Win_wait(win);
}

static const struct way {
	const char *name;
	void (*begin)(void);
	void (*end)(void);
} ways[] = {
	{"fence", fence_begin, fence_end},        {"lock", lock_begin, lock_end},
	{"exclusive", exclusive_begin, lock_end}, {"flush", flush_begin, flush_end},
	{"pscw", pscw_begin, pscw_end},
};

#define WAYS (sizeof ways / sizeof ways[0])

/* Writes this rank's part under a lock, as MPI's separate memory model requires. */
static inline void fill_own(int byte)
{
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
	memset(memory, byte, ROOM);
	MPI_Win_unlock(rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
}

static inline void read_own(void *copy, size_t at, size_t size)
{
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	memcpy(copy, memory + at, size);
	MPI_Win_unlock(rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
}

/*
 * Opens a window in malloc'ed memory, or in memory of the MPI library, which may be shared among
 * ranks of a host.
 */
static inline void open_window(bool allocate)
{
	char reason[MPI_MAX_ERROR_STRING];
	int err, len;

	/*
	 * If a rank aborts, mpirun may lose its output: each rank prints the reason and exits
	 * normally.
	 */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (allocate) {
		err = MPI_Win_allocate(ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	} else {
		memory = malloc(ROOM);
		err = MPI_Win_create(memory, ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	}
	if (err) {
		MPI_Error_string(err, reason, &len);
		printf("no window: %s\n", reason);
		MPI_Finalize();
		exit(EXIT_FAILURE);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static inline void close_window(bool allocate)
{
	MPI_Win_free(&win);
	if (!allocate)
		free(memory);
}

#endif /* MPI_WINDOW_H */
