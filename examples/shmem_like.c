/* SPDX-License-Identifier: BSD-2-Clause */
/* Several processes use the calls of shmem.h, as an OpenSHMEM program would: each puts into its
 * neighbours' memory, gets from it and updates it, and checks the changes that others made to
 * its own.
 *
 *   shmem_like -n 4 -p shm
 *
 * The program starts the processes itself. */
#include "shmem.h"

#define WORDS   5000 /* words of a put */
#define STRIDE  3
#define TICKETS 200 /* tickets drawn by each process */
#define SWAPS   200 /* swaps by each process */

static int me(void)
{
	return team.rank;
}

static int after(int steps)
{
	return (team.rank + steps) % team.size;
}

static int before(int steps)
{
	return (team.rank + team.size - steps % team.size) % team.size;
}

static uint64_t word(int pe, size_t i)
{
	return (uint64_t)(pe + 1) << 32 | (i + 1);
}

/* Waits until all processes have done their checks; then one of them prints a line. */
static void done(const char *what)
{
	shmem_barrier_all();
	if (me() == 0)
		printf("%d processes: %s\n", team.size, what);
}

static void expect(const char *what, uint64_t value, uint64_t wanted)
{
	if (value != wanted)
		fail("%s: %#llx, expected %#llx", what, (unsigned long long)value,
		     (unsigned long long)wanted);
}

static void put_and_get(void)
{
	static uint64_t source[WORDS], copy[WORDS];
	uint64_t *dest = shmem_malloc(sizeof source);

	for (size_t i = 0; i < WORDS; i++)
		source[i] = word(me(), i);
	shmem_put64(dest, source, WORDS, after(1));
	shmem_barrier_all();
	for (size_t i = 0; i < WORDS; i++)
		expect("put by the one before", dest[i], word(before(1), i));
	done("each put 5000 words to the next one, and found those of the one before");
	shmem_get64(copy, dest, WORDS, after(2));
	for (size_t i = 0; i < WORDS; i++)
		expect("get", copy[i], word(after(1), i));
	done("each got what another had been given");
}

static void put_strided(void)
{
	uint64_t *dest = shmem_malloc(WORDS * sizeof *dest), source[WORDS];
	size_t count = WORDS / STRIDE;

	for (size_t i = 0; i < WORDS; i++)
		source[i] = word(me(), i);
	shmem_iput64(dest, source, STRIDE, 2, count, after(1));
	shmem_barrier_all();
	for (size_t i = 0; i < count * STRIDE; i++)
		expect("strided put", dest[i], i % STRIDE ? 0 : word(before(1), i / STRIDE * 2));
	done("each put single words, three apart, and found those of the one before");
}

/* Each process draws numbers from one counter at process 0 and marks each in a list there: at
 * the end each number has been drawn once. */
static void draw_tickets(void)
{
	uint64_t *counter = shmem_malloc(sizeof *counter), ticket, last = 0;
	uint64_t *drawn = shmem_malloc((size_t)team.size * TICKETS * sizeof *drawn);

	for (int i = 0; i < TICKETS; i++) {
		ticket = shmem_fetch(FI_SUM, counter, 1, 0);
		if (i && ticket <= last)
			fail("ticket %llu after %llu", (unsigned long long)ticket,
			     (unsigned long long)last);
		last = ticket;
		shmem_update(FI_SUM, &drawn[ticket], 1, 0);
	}
	shmem_barrier_all();
	expect("all tickets", shmem_fetch(FI_ATOMIC_READ, counter, 0, 0),
	       (uint64_t)team.size * TICKETS);
	for (int i = 0; me() == 0 && i < team.size * TICKETS; i++)
		expect("times a ticket was drawn", drawn[i], 1);
	done("each drew 200 tickets by fetch-and-add, and no two were alike");
}

/* Each process swaps its numbers into one word at process 0, in two ways. No number is lost or
 * duplicated: the sum of the numbers swapped out and left equals the sum swapped in. */
static void swap_values(void)
{
	uint64_t *cell = shmem_malloc(sizeof *cell), *balance = shmem_malloc(sizeof *balance);
	uint64_t left = 0;

	for (size_t i = 0; i < SWAPS; i++) {
		uint64_t value = word(me(), i);

		left += value;
		left -= i % 2 ? shmem_swap(cell, value, 0)
			      : shmem_fetch(FI_ATOMIC_WRITE, cell, value, 0);
	}
	shmem_update(FI_SUM, balance, left, 0);
	shmem_barrier_all();
	if (me() == 0)
		expect("balance of the swaps", *balance, *cell);
	done("each swapped 200 values into one word, and none was lost");
}

int main(int argc, char **argv)
{
	const char *provider = NULL;
	int opt, count = 4;

	while ((opt = getopt(argc, argv, "n:p:h")) != -1) {
		if (opt == 'n')
			count = atoi(optarg);
		else if (opt == 'p')
			provider = optarg;
		else
			count = 0;
		if (count >= 1 && count <= TEAM_MAX)
			continue;
		fputs("Usage: shmem_like [-n PROCESSES] [-p PROVIDER]\n",
		      opt == 'h' ? stdout : stderr);
		return opt == 'h' ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	team_start(count, "shmem_like");
	shmem_init(provider);
	put_and_get();
	put_strided();
	draw_tickets();
	swap_values();
	shmem_finalize();
	return EXIT_SUCCESS;
}
