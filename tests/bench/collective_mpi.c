/* SPDX-License-Identifier: BSD-2-Clause */
/* Collectives of an MPI, measured as in collective.c: mpirun ... collective_mpi WHAT SIZE... */
#include <mpi.h>
#include "crowd.h"

static void call(size_t size)
{
	int bytes = (int)size, words = (int)(size / sizeof(double));

	if (what == BARRIER)
		MPI_Barrier(MPI_COMM_WORLD);
	else if (what == ALLREDUCE)
		MPI_Allreduce(from, to, words, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	else if (what == BROADCAST)
		MPI_Bcast(from, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
	else
		MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

/* Returns the number of ranks on this rank's host. */
static int neighbours(void)
{
	MPI_Comm here;
	int count;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
	MPI_Comm_size(here, &count);
	MPI_Comm_free(&here);
	return count;
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &member);
	MPI_Comm_size(MPI_COMM_WORLD, &members);
	spread = neighbours() < members;
	if (argc < 3)
		crowd_fail("usage: collective_mpi barrier|allreduce|broadcast|alltoall SIZE...");
	crowd_what(argv[1]);
	crowd_buffers(argv + 2);
	crowd_measure(argv + 2, call);
	MPI_Finalize();
	return EXIT_SUCCESS;
}
