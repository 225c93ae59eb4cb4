/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of an MPI between pairs of ranks, all pairs at once; rank i of N has rank i + N/2:
 *
 *     mpirun ... mpi_rate latency SIZE...   one-way time of a ping-pong, microseconds
 *     mpirun ... mpi_rate rate SIZE...      windows of 64 non-blocking sends into as many receives,
 *                                           and an answer: million messages/s of one pair
 *
 * Prints a line "SIZE VALUE" for each size, the figure of the first pair. */
#include <mpi.h>
#include <string.h>
#include <stdio.h>
#include "clock.h"

#define WINDOW 64

static int rank, ranks, peer;
static char *tx, *rx; /* WINDOW buffers each */
static size_t room;   /* bytes of a buffer: the largest size */

static int is_sender(void)
{
	return rank < ranks / 2;
}

static void rate_fail(const char *why)
{
	if (rank == 0)
		fprintf(stderr, "bench: %s\n", why);
	MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static void put(size_t size)
{
	MPI_Send(tx, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
}

static void get(size_t size)
{
	MPI_Recv(rx, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void ping_pong(size_t size)
{
	if (is_sender())
		put(size);
	get(size);
	if (!is_sender())
		put(size);
}

static void window(size_t size)
{
	MPI_Request requests[WINDOW];

	for (size_t i = 0; i < WINDOW; i++)
		if (is_sender())
			MPI_Isend(tx + i * room, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
				  &requests[i]);
		else
			MPI_Irecv(rx + i * room, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
				  &requests[i]);
	MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
	is_sender() ? get(8) : put(8);
}

/* More than two ranks may share cores, and then need a time slice each now and then. */
static int rounds_of(size_t size)
{
	int rounds = size <= 4096 ? 10000 : size <= 65536 ? 2000 : size <= 1048576 ? 200 : 50;

	return ranks > 2 ? rounds / 10 : rounds;
}

/* Returns one-way microseconds, or million messages/s. */
static double measure(size_t size, int is_rate)
{
	int rounds = is_rate ? rounds_of(size) / 20 : rounds_of(size);
	double start, time;

	MPI_Barrier(MPI_COMM_WORLD);
	start = microseconds();
	for (int i = 0; i < rounds; i++)
		is_rate ? window(size) : ping_pong(size);
	time = microseconds() - start;
	return is_rate ? rounds * WINDOW / time : time / rounds / 2;
}

static void open_buffers(char **sizes)
{
	for (room = 8; *sizes; sizes++)
		room = strtoul(*sizes, NULL, 0) > room ? strtoul(*sizes, NULL, 0) : room;
	if (posix_memalign((void **)&tx, 4096, WINDOW * room) ||
	    posix_memalign((void **)&rx, 4096, WINDOW * room))
		rate_fail("no memory");
	memset(tx, rank + 1, WINDOW * room);
	memset(rx, 0, WINDOW * room);
}

/* What came last must be the peer's bytes. */
static void verify(size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (rx[i] != (char)(peer + 1))
			rate_fail("wrong data received");
}

int main(int argc, char **argv)
{
	int is_rate = argc > 1 && !strcmp(argv[1], "rate");

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 3 || ranks % 2 || (!is_rate && strcmp(argv[1], "latency") != 0))
		rate_fail("usage: mpirun -n EVEN mpi_rate latency|rate SIZE...");
	peer = (rank + ranks / 2) % ranks;
	open_buffers(argv + 2);
	for (char **size = argv + 2; *size; size++) {
		size_t bytes = strtoul(*size, NULL, 0);
		double values[REPEATS];

		for (int i = -1; i < REPEATS; i++)
			values[i < 0 ? 0 : i] = measure(bytes, is_rate);
		if (!is_rate || !is_sender())
			verify(bytes);
		if (rank == 0)
			printf("%zu %.4f\n", bytes, clock_median(values, REPEATS));
	}
	MPI_Finalize();
	return EXIT_SUCCESS;
}
