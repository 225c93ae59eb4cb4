/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI_Accumulate and its relatives, with any number of ranks; all results are checked. Each rank
 * prints a line at its end: its number, the number of checks, and the libfabric.so.1 it had loaded.
 *
 *     mpi_accumulate create|allocate [no-max]
 *
 * no-max leaves out MPI_MAX: Open MPI 4.1 aborts if the transport does not support it. */
#include "mpi_window.h"

/* Open MPI 4.1 crashes, over any transport, in MPI_Compare_and_swap of a rank with itself or with a
 * rank whose window part is mapped, as MPI_Win_allocate does on one host. */
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#define SWAPS_LOCALLY 0
#else
#define SWAPS_LOCALLY 1
#endif

static bool with_max = true;

/* Stores an integer in an array of any of the three types, so that results are exact. */
static void set_value(void *array, MPI_Datatype type, int i, long value)
{
	if (type == MPI_INT)
		((int *)array)[i] = (int)value;
	else if (type == MPI_LONG)
		((long *)array)[i] = value;
	else
		((double *)array)[i] = (double)value;
}

static long get_value(const void *array, MPI_Datatype type, int i)
{
	if (type == MPI_INT)
		return ((const int *)array)[i];
	if (type == MPI_LONG)
		return ((const long *)array)[i];
	return (long)((const double *)array)[i];
}

/* Returns element i after every rank r has applied `op` with (r + 1) * 10 + i to -5. */
static long combined(MPI_Op op, int i)
{
	if (op == MPI_SUM)
		return -5 + 10L * ranks * (ranks + 1) / 2 + (long)ranks * i;
	return ranks * 10L + i;
}

/* All ranks to all ranks at the same time; operations that do not commute one after the other. */
static void accumulate(MPI_Datatype type, MPI_Op op, int count)
{
	static double out[20000], own[20000];
	int size;

	MPI_Type_size(type, &size);
	for (int i = 0; i < count; i++) {
		set_value(own, type, i, -5);
		set_value(out, type, i, (rank + 1) * 10L + i);
	}
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
	memcpy(memory, own, (size_t)count * (size_t)size);
	MPI_Win_unlock(rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int round = 0; round < ranks; round++) {
		for (int r = 0; r < ranks && (op != MPI_REPLACE || round == rank); r++)
			if (op == MPI_REPLACE || r == (rank + round) % ranks) {
				MPI_Win_lock(MPI_LOCK_SHARED, r, 0, win);
				MPI_Accumulate(out, count, type, r, 0, count, type, op, win);
				MPI_Win_unlock(r, win);
			}
		if (op == MPI_REPLACE)
			MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	read_own(own, 0, (size_t)count * (size_t)size);
	for (int i = 0; i < count; i++)
		same("accumulate", get_value(own, type, i), combined(op, i));
}

static void test_accumulate(void)
{
	MPI_Datatype types[] = {MPI_INT, MPI_LONG, MPI_DOUBLE};
	MPI_Op ops[] = {MPI_SUM, MPI_REPLACE, MPI_MAX};

	for (int t = 0; t < 3; t++)
		for (int o = 0; o < (with_max ? 3 : 2); o++)
			for (int count = 1; count <= 20000; count *= 27)
				accumulate(types[t], ops[o], count);
}

/* Around the ring: returns old values and stores new ones; MPI_NO_OP only fetches. */
static void get_accumulate(const struct way *way, int count)
{
	static long out[5000], old[5000];

	fill_own(0xee);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
	for (int i = 0; i < count; i++)
		((long *)memory)[i] = rank * 100 + i;
	MPI_Win_unlock(rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < count; i++)
		out[i] = 3 * i + 1;
	way->begin();
	MPI_Get_accumulate(out, count, MPI_LONG, old, count, MPI_LONG, after(), 0, count, MPI_LONG,
			   MPI_SUM, win);
	way->end();
	for (int i = 0; i < count; i++)
		same("old value", old[i], after() * 100 + i);
	MPI_Barrier(MPI_COMM_WORLD);
	way->begin();
	MPI_Get_accumulate(NULL, 0, MPI_LONG, old, count, MPI_LONG, after(), 0, count, MPI_LONG,
			   MPI_NO_OP, win);
	way->end();
	for (int i = 0; i < count; i++)
		same("new value", old[i], after() * 100 + 4 * i + 1);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void test_get_accumulate(void)
{
	for (size_t w = 0; w < WAYS; w++)
		for (int count = 1; count <= 5000; count *= 17)
			get_accumulate(&ways[w], count);
}

/* Each ticket is drawn once; each rank marks the tickets it got. */
static void test_tickets(void)
{
	enum { EACH = 200 };
	long one = 1, ticket, last = -1, *own = malloc(ROOM);
	int mark = 1;

	fill_own(0);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < EACH; i++) {
		MPI_Fetch_and_op(&one, &ticket, MPI_LONG, 0, 0, MPI_SUM, win);
		MPI_Win_flush(0, win);
		same("tickets grow", ticket > last && ticket < EACH * ranks, 1);
		last = ticket;
		MPI_Accumulate(&mark, 1, MPI_INT, 0, 64 + ticket * 4, 1, MPI_INT, MPI_SUM, win);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	read_own(own, 0, ROOM);
	for (int i = 0; rank == 0 && i < EACH * ranks; i++)
		same("times a ticket was drawn", ((int *)own)[16 + i], 1);
	same("tickets", rank ? 0 : own[0], rank ? 0 : EACH * ranks);
	free(own);
}

/* A lock made of compare-and-swap protects a counter that uses get and put. */
static void test_swap_lock(void)
{
	enum { EACH = 50, COUNT_AT = 128 };
	long mine = rank + 1, none = 0, got, count, *own = malloc(ROOM);

	fill_own(0);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < (rank || SWAPS_LOCALLY ? EACH : 0); i++) {
		do {
			MPI_Compare_and_swap(&mine, &none, &got, MPI_LONG, 0, 0, win);
			MPI_Win_flush(0, win);
		} while (got != 0);
		MPI_Get(&count, 1, MPI_LONG, 0, COUNT_AT, 1, MPI_LONG, win);
		MPI_Win_flush(0, win);
		count++;
		MPI_Put(&count, 1, MPI_LONG, 0, COUNT_AT, 1, MPI_LONG, win);
		MPI_Win_flush(0, win);
		MPI_Fetch_and_op(&none, &got, MPI_LONG, 0, 0, MPI_REPLACE, win);
		MPI_Win_flush(0, win);
		same("holder of the lock", got, mine);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	read_own(own, 0, ROOM);
	same("count under a swapped lock", own[COUNT_AT / 8],
	     rank ? 0 : EACH * (ranks - !SWAPS_LOCALLY));
	free(own);
}

/* MPI's exclusive lock protects the same kind of counter. */
static void test_exclusive(void)
{
	enum { EACH = 50 };
	long count, *own = malloc(ROOM);

	fill_own(0);
	for (int i = 0; i < EACH; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Get(&count, 1, MPI_LONG, 0, 8, 1, MPI_LONG, win);
		MPI_Win_flush(0, win);
		count++;
		MPI_Put(&count, 1, MPI_LONG, 0, 8, 1, MPI_LONG, win);
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	read_own(own, 0, ROOM);
	same("count under MPI's lock", own[1], rank ? 0 : EACH * ranks);
	free(own);
}

int main(int argc, char **argv)
{
	bool allocate = argc > 1 && !strcmp(argv[1], "allocate");

	with_max = argc < 3 || strcmp(argv[2], "no-max") != 0;
	start(&argc, &argv);
	open_window(allocate);
	test_accumulate();
	test_get_accumulate();
	test_tickets();
	if (!allocate || SWAPS_LOCALLY)
		test_swap_lock();
	test_exclusive();
	close_window(allocate);
	say_passed();
	MPI_Finalize();
	return 0;
}
