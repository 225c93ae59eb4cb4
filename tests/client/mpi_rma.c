/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI_Put and MPI_Get with every way of synchronization, contiguous and strided, with any number of
 * ranks; all data and the memory around it are checked. Each rank prints a line at its end: its
 * number, the number of checks, and the libfabric.so.1 it had loaded.
 *
 *     mpi_rma create|allocate */
#include "mpi_window.h"

static unsigned char pattern(int from, int round, int at)
{
	return (unsigned char)(at * 31 + at / 256 + from * 7 + round * 13 + 1);
}

/* Puts and gets back at an odd offset; the bytes on both sides must stay unchanged. */
static void put_get(const struct way *way, int size, int round)
{
	static unsigned char out[ROOM], in[ROOM], own[ROOM];
	int at = round % 29;

	fill_own(0xee);
	for (int i = 0; i < size; i++)
		out[i] = pattern(rank, round, i);
	way->begin();
	MPI_Put(out, size, MPI_BYTE, after(), at, size, MPI_BYTE, win);
	way->end();
	read_own(own, 0, ROOM);
	for (int i = 0; i < size; i++)
		if (own[at + i] != pattern(before(), round, i))
			fail(way->name, own[at + i], pattern(before(), round, i));
	for (int i = 0; i < at; i++)
		same("before the data", own[i], 0xee);
	for (int i = at + size; i < at + size + 32; i++)
		same("behind the data", own[i], 0xee);
	memset(in, 0, sizeof in);
	way->begin();
	MPI_Get(in + 1, size, MPI_BYTE, after(), at, size, MPI_BYTE, win);
	way->end();
	for (int i = 0; i < size; i++)
		if (in[1 + i] != out[i])
			fail("get", in[1 + i], out[i]);
	same("get, before the data", in[0], 0);
	same("get, behind the data", in[1 + size], 0);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void test_sizes(void)
{
	int round = 0;

	for (int base = 1; base <= MAX_SIZE; base *= base < 4096 ? 2 : 4)
		for (int size = base > 2 ? base - 1 : base; size <= base + 1 && size <= MAX_SIZE;
		     size++, round++)
			for (size_t w = round % 3; w < WAYS; w += base < 4096 ? 1 : 3)
				put_get(&ways[w], size, round);
}

/* Many operations in flight, each with a request. */
static void test_requests(void)
{
	enum { COUNT = 64, SIZE = 3000 };
	static unsigned char out[COUNT][SIZE], in[COUNT][SIZE];
	MPI_Request request[COUNT];

	fill_own(0xee);
	MPI_Win_lock_all(0, win);
	for (int k = 0; k < COUNT; k++) {
		for (int i = 0; i < SIZE; i++)
			out[k][i] = pattern(rank, k, i);
		MPI_Rput(out[k], SIZE, MPI_BYTE, after(), k * SIZE, SIZE, MPI_BYTE, win,
			 &request[k]);
	}
	MPI_Waitall(COUNT, request, MPI_STATUSES_IGNORE);
	MPI_Win_flush_all(win);
	for (int k = 0; k < COUNT; k++)
		MPI_Rget(in[k], SIZE, MPI_BYTE, after(), k * SIZE, SIZE, MPI_BYTE, win,
			 &request[k]);
	MPI_Waitall(COUNT, request, MPI_STATUSES_IGNORE);
	MPI_Win_unlock_all(win);
	for (int k = 0; k < COUNT; k++)
		same("data of a request", memcmp(in[k], out[k], SIZE), 0);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- strided data ---- */

/* Blocks of two ints, four apart: put into the same layout, and got back packed. */
static void vectors(const struct way *way, int blocks)
{
	int count = blocks * 4, *out = malloc(sizeof *out * (size_t)count);
	int *own = malloc(sizeof *own * (size_t)count);
	MPI_Datatype vector;

	MPI_Type_vector(blocks, 2, 4, MPI_INT, &vector);
	MPI_Type_commit(&vector);
	for (int i = 0; i < count; i++)
		out[i] = rank * 1000000 + i;
	fill_own(0xee);
	way->begin();
	MPI_Put(out, 1, vector, after(), 0, 1, vector, win);
	way->end();
	read_own(own, 0, sizeof *own * (size_t)count);
	for (int i = 0; i < count; i++)
		same("vector", own[i], i % 4 < 2 ? before() * 1000000 + i : (int)0xeeeeeeee);
	way->begin();
	MPI_Get(own, blocks * 2, MPI_INT, after(), 0, 1, vector, win);
	way->end();
	for (int i = 0; i < blocks * 2; i++)
		same("packed", own[i], rank * 1000000 + i / 2 * 4 + i % 2);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Type_free(&vector);
	free(own);
	free(out);
}

static void test_vectors(void)
{
	for (size_t w = 0; w < WAYS; w++)
		for (int blocks = 1; blocks <= 4096; blocks *= 16)
			vectors(&ways[w], blocks);
}

int main(int argc, char **argv)
{
	bool allocate = argc > 1 && !strcmp(argv[1], "allocate");

	start(&argc, &argv);
	open_window(allocate);
	test_sizes();
	test_requests();
	test_vectors();
	close_window(allocate);
	say_passed();
	MPI_Finalize();
	return 0;
}
