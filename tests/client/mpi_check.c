/* SPDX-License-Identifier: BSD-2-Clause */
/* Uses the MPI calls that map to the fabric, with any number of ranks; all bytes are checked. Each
 * rank prints a line at its end: its number, the number of checks, and the libfabric.so.1 it had
 * loaded. With a word it calls collectives only. */
#include "mpi_say.h"

#define MAX_SIZE (4 << 20)
#define STORM    200 /* messages to each other rank at once */

static unsigned char pattern(int from, int tag, int at)
{
	return (unsigned char)(at * 31 + at / 256 + from * 7 + tag * 13);
}

static unsigned char *filled(int from, int tag, int size)
{
	unsigned char *data = malloc(size ? (size_t)size : 1);

	for (int i = 0; i < size; i++)
		data[i] = pattern(from, tag, i);
	return data;
}

static void same_data(const char *what, const unsigned char *data, int from, int tag, int size)
{
	for (int i = 0; i < size; i++)
		if (data[i] != pattern(from, tag, i))
			fail(what, data[i], pattern(from, tag, i));
	checked++;
}

static void same_status(const char *what, MPI_Status *status, int from, int tag, int size)
{
	int count;

	MPI_Get_count(status, MPI_BYTE, &count);
	same(what, status->MPI_SOURCE, from);
	same(what, status->MPI_TAG, tag);
	same(what, count, size);
}

/* Around the ring, with sizes on both sides of likely limits of implementations. */
static void test_sizes(void)
{
	static unsigned char in[MAX_SIZE];
	int to = after(), from = before();

	for (int base = 0; base <= MAX_SIZE; base = base ? base * 2 : 1)
		for (int size = base > 1 ? base - 1 : base; size <= base + 1 && size <= MAX_SIZE;
		     size++) {
			unsigned char *out = filled(rank, base % 1000, size);
			MPI_Status status;

			MPI_Sendrecv(out, size, MPI_BYTE, to, base % 1000, in, MAX_SIZE, MPI_BYTE,
				     from, base % 1000, MPI_COMM_WORLD, &status);
			same_status("ring", &status, from, base % 1000, size);
			same_data("ring", in, from, base % 1000, size);
			free(out);
		}
}

/* Receives in reverse order of sending, by tag alone. */
static void test_tags(void)
{
	enum { TAGS = 50, SIZE = 3000 };
	int to = after(), from = before();
	unsigned char *out[TAGS], in[SIZE];
	MPI_Request request[TAGS];
	MPI_Status status;

	for (int tag = 0; tag < TAGS; tag++) {
		out[tag] = filled(rank, tag, SIZE);
		MPI_Isend(out[tag], SIZE, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request[tag]);
	}
	for (int tag = TAGS - 1; tag >= 0; tag--) {
		MPI_Recv(in, SIZE, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
		same_status("tags", &status, from, tag, SIZE);
		same_data("tags", in, from, tag, SIZE);
	}
	MPI_Waitall(TAGS, request, MPI_STATUSES_IGNORE);
	for (int tag = 0; tag < TAGS; tag++)
		free(out[tag]);
}

/*
 * All ranks send to rank 0, itself included, which receives from any source; each sender's order
 * must hold.
 */
static void test_wildcards(void)
{
	enum { EACH = 20 };
	int size = 100000, next[1024] = {0};
	unsigned char *in = malloc((size_t)size);
	MPI_Request request[EACH];
	unsigned char *out[EACH];
	MPI_Status status;

	for (int i = 0; i < EACH; i++) {
		out[i] = filled(rank, i, i % 2 ? size : 10);
		MPI_Isend(out[i], i % 2 ? size : 10, MPI_BYTE, 0, i, MPI_COMM_WORLD, &request[i]);
	}
	for (int i = 0; rank == 0 && i < EACH * ranks; i++) {
		MPI_Recv(in, size, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		same("order of one sender", status.MPI_TAG, next[status.MPI_SOURCE % 1024]++);
		same_data("wildcards", in, status.MPI_SOURCE, status.MPI_TAG,
			  status.MPI_TAG % 2 ? size : 10);
	}
	MPI_Waitall(EACH, request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < EACH; i++)
		free(out[i]);
	free(in);
}

/* Takes the next message by one of four ways of probing. */
static void take_probed(int way, unsigned char *in, int size, int tag)
{
	int from = before(), found = 0;
	MPI_Message message;
	MPI_Status status;

	if (way == 0)
		MPI_Probe(from, tag, MPI_COMM_WORLD, &status);
	while (way == 1 && !found)
		MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &found, &status);
	if (way == 2)
		MPI_Mprobe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
	while (way == 3 && !found)
		MPI_Improbe(from, tag, MPI_COMM_WORLD, &found, &message, &status);
	same_status("probe", &status, from, tag, size);
	if (way < 2)
		MPI_Recv(in, size, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
	else
		MPI_Mrecv(in, size, MPI_BYTE, &message, &status);
	same_status("receive after probe", &status, from, tag, size);
	same_data("receive after probe", in, from, tag, size);
}

static void test_probes(void)
{
	static const int sizes[] = {0, 8, 5000, 300000};
	unsigned char *in = malloc(300000);
	MPI_Request request;

	for (int i = 0; i < 16; i++) {
		int size = sizes[i / 4], found = 1;
		unsigned char *out = filled(rank, i, size);

		MPI_Iprobe(MPI_ANY_SOURCE, 999, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
		same("probe for what nobody sent", found, 0);
		MPI_Isend(out, size, MPI_BYTE, after(), i, MPI_COMM_WORLD, &request);
		take_probed(i % 4, in, size, i);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		free(out);
	}
	free(in);
}

static int storm_size(int i)
{
	return i % 17 == 0 ? 70000 + i : i % 5 == 0 ? 6000 + i : i;
}

/* All to all at once. With `late` receives the messages are unexpected. */
static void test_storm(int late)
{
	int all = STORM * ranks;
	MPI_Request *requests = malloc(sizeof *requests * 2 * (size_t)all);
	unsigned char **data = malloc(sizeof *data * 2 * (size_t)all);

	for (int i = 0; i < 2 * all; i++) {
		int k = i % all, peer = k % ranks, round = k / ranks, size = storm_size(round);
		int sends = (i < all) == !!late;

		if (i == all && late)
			MPI_Barrier(MPI_COMM_WORLD);
		data[i] = filled(sends ? rank : ranks, round, size);
		if (sends)
			MPI_Isend(data[i], size, MPI_BYTE, peer, round, MPI_COMM_WORLD,
				  &requests[i]);
		else
			MPI_Irecv(data[i], size, MPI_BYTE, peer, round, MPI_COMM_WORLD,
				  &requests[i]);
	}
	MPI_Waitall(2 * all, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 2 * all; i++) {
		int k = i % all, round = k / ranks;

		if ((i < all) != !!late)
			same_data("storm", data[i], k % ranks, round, storm_size(round));
		free(data[i]);
	}
	free(data);
	free(requests);
}

static void test_persistent(void)
{
	enum { SIZE = 20000 };
	static unsigned char out[SIZE], in[SIZE];
	int to = after(), from = before();
	MPI_Request request[2];

	MPI_Send_init(out, SIZE, MPI_BYTE, to, 5, MPI_COMM_WORLD, &request[0]);
	MPI_Recv_init(in, SIZE, MPI_BYTE, from, 5, MPI_COMM_WORLD, &request[1]);
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < SIZE; i++)
			out[i] = pattern(rank, round, i);
		MPI_Startall(2, request);
		MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
		same_data("persistent", in, from, round, SIZE);
	}
	MPI_Request_free(&request[0]);
	MPI_Request_free(&request[1]);
}

/* A cancelled receive, synchronous sends, and strided data. */
static void test_kinds(void)
{
	enum { ROWS = 300, GAP = 3 };
	int grid[ROWS * GAP], column[ROWS], found;
	int to = after(), from = before();
	MPI_Datatype vector;
	MPI_Request request;
	MPI_Status status;

	MPI_Irecv(column, ROWS, MPI_INT, from, 77, MPI_COMM_WORLD, &request);
	MPI_Cancel(&request);
	MPI_Wait(&request, &status);
	MPI_Test_cancelled(&status, &found);
	same("cancelled", found, 1);
	for (int i = 0; i < ROWS * GAP; i++)
		grid[i] = rank * 10000 + i;
	MPI_Type_vector(ROWS, 1, GAP, MPI_INT, &vector);
	MPI_Type_commit(&vector);
	MPI_Issend(grid, 1, vector, to, 78, MPI_COMM_WORLD, &request);
	MPI_Recv(column, ROWS, MPI_INT, from, 78, MPI_COMM_WORLD, &status);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int i = 0; i < ROWS; i++)
		same("vector", column[i], from * 10000 + i * GAP);
	MPI_Type_free(&vector);
}

static void test_rooted(MPI_Comm comm, int *in, int *out, int count)
{
	for (int root = 0; root < ranks; root++) {
		for (int i = 0; i < count; i++)
			in[i] = rank == root ? root * 3 + i : -1;
		MPI_Bcast(in, count, MPI_INT, root, comm);
		for (int i = 0; i < count; i++)
			same("bcast", in[i], root * 3 + i);
		for (int i = 0; i < count; i++)
			in[i] = rank + i;
		MPI_Gather(in, count, MPI_INT, out, count, MPI_INT, root, comm);
		for (int i = 0; rank == root && i < count * ranks; i++)
			same("gather", out[i], i / count + i % count);
		MPI_Scatter(out, count, MPI_INT, in, count, MPI_INT, root, comm);
		for (int i = 0; i < count; i++)
			same("scatter", in[i], rank + i);
	}
}

static void test_collectives(MPI_Comm comm, int count)
{
	int sum = ranks * (ranks - 1) / 2, all = count * ranks;
	int *in = malloc(sizeof *in * (size_t)all), *out = malloc(sizeof *out * (size_t)all);

	test_rooted(comm, in, out, count);
	for (int i = 0; i < all; i++)
		in[i] = rank + i;
	MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm);
	for (int i = 0; i < count; i++)
		same("allreduce", out[i], sum + i * ranks);
	MPI_Allgather(in, count, MPI_INT, out, count, MPI_INT, comm);
	for (int i = 0; i < all; i++)
		same("allgather", out[i], i / count + i % count);
	MPI_Reduce_scatter_block(in, out, count, MPI_INT, MPI_SUM, comm);
	for (int i = 0; i < count; i++)
		same("reduce_scatter", out[i], sum + (rank * count + i) * ranks);
	MPI_Scan(in, out, count, MPI_INT, MPI_MAX, comm);
	for (int i = 0; i < count; i++)
		same("scan", out[i], rank + i);
	for (int i = 0; i < all; i++)
		in[i] = rank * 1000 + i / count;
	MPI_Alltoall(in, count, MPI_INT, out, count, MPI_INT, comm);
	for (int i = 0; i < all; i++)
		same("alltoall", out[i], i / count * 1000 + rank);
	MPI_Barrier(comm);
	free(in);
	free(out);
}

static void test_posted(void)
{
	test_storm(0);
}

static void test_unexpected(void)
{
	test_storm(1);
}

/* The storm comes first, so that all ranks connect during it. */
static void (*const tests[])(void) = {
	test_posted, test_sizes,      test_tags,       test_wildcards,
	test_probes, test_unexpected, test_persistent, test_kinds,
};

int main(int argc, char **argv)
{
	MPI_Comm other;

	start(&argc, &argv);
	/* A barrier after each test: wildcards must not match messages of the next test. */
	for (size_t i = 0; argc == 1 && i < sizeof tests / sizeof tests[0]; i++) {
		tests[i]();
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	for (int count = 1; count <= 50000; count *= 7)
		test_collectives(other, count);
	MPI_Comm_free(&other);
	say_passed();
	MPI_Finalize();
	return 0;
}
