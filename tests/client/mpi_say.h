/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the MPI programs of this folder: counting checks, failing, and naming the library that
 * was loaded. */
#ifndef MPI_SAY_H
#define MPI_SAY_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static long checked;

static inline void fail(const char *what, long a, long b)
{
	fprintf(stderr, "rank %d: %s: %ld, expected %ld\n", rank, what, a, b);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static inline void same(const char *what, long a, long b)
{
	checked++;
	if (a != b)
		fail(what, a, b);
}

static inline int after(void)
{
	return (rank + 1) % ranks;
}

static inline int before(void)
{
	return (rank + ranks - 1) % ranks;
}

static inline void start(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

/* Prints the last line of a rank, with the libfabric.so.1 mapped into this process, or "none". */
static inline void say_passed(void)
{
	char line[4096], path[4096] = "none";
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof line, maps))
		if (strstr(line, "/libfabric.so"))
			sscanf(strchr(line, '/'), "%4095[^\n]", path);
	if (maps)
		fclose(maps);
	printf("rank %d of %d: %ld checks passed with %s\n", rank, ranks, checked, path);
	fflush(stdout);
}

#endif /* MPI_SAY_H */
