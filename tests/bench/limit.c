/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of the machine between two processes on two cores, without a library:
 *
 *     limit line         passing a cache line, mean over 256 lines
 *     limit copy SIZE..  copying the bytes into shared memory, passing a line, copying them out
 *     limit queue SIZE.. the same, each message of up to 64 KiB behind the one before, in 256 KiB, as in a queue
 *     limit cma SIZE..   passing a cache line, then reading the bytes by one process_vm_readv
 *     limit ring         million lines/s through a ring of lines
 *     limit claims       the same in windows of 64, each line claimed as if others sent, too, then an answer
 *     limit vmread SIZE..   one process_vm_readv of the bytes while the other side spins
 *     limit vmwrite SIZE..  one process_vm_writev
 *     limit halves SIZE..   one process_vm_writev of a half while the other side does a process_vm_readv of the other half
 *
 * Prints a line "SIZE VALUE" for each size. Times are microseconds for half a round trip, for vmread,
 * vmwrite and halves microseconds per call. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include "pair.h"

#define MAX_SIZE (4u << 20)
#define RING     256          /* lines; a power of two */
#define WINDOW   64           /* lines */
#define QUEUE    (256u << 10) /* bytes; longer messages than a quarter have one place */
#define PACKET   40u          /* bytes of a header and a payload of 8 */

/*
 * What a side writes for the other one: its number of messages, small messages in the same line.
 * Each message uses the next of many lines, as in a queue: some lines are half as fast again as
 * others, depending on their address, so a single line would measure chance.
 */
struct line {
	_Alignas(64) _Atomic uint32_t count;
	char payload[60];
};

struct shared {
	struct line line[RING][2];
	struct line ring[RING];
	_Alignas(64) _Atomic uint32_t claim[RING]; /* of a line: the pass that may write it */
	_Alignas(64) _Atomic uint32_t taken;
	_Alignas(4096) char room[2][MAX_SIZE];
};

static struct shared *shared;
static char **args;
static uint32_t pass; /* messages exchanged so far, each way */
static char *tx, *rx; /* private buffers */
static struct {
	pid_t pid;
	char *buffer;
} peer;

/* acquire: pairs with the release in hand_over of the other side */
static void await_pass(void)
{
	while (atomic_load_explicit(&shared->line[pass % RING][!side].count,
				    memory_order_acquire) != pass)
		;
}

static void hand_over(void)
{
	atomic_store_explicit(&shared->line[pass % RING][side].count, pass, memory_order_release);
}

static void line_put(size_t size)
{
	(void)size;
	hand_over();
}

static void line_get(size_t size)
{
	(void)size;
	await_pass();
}

static char *slot(int whose, size_t size)
{
	return size <= sizeof shared->line[0][0].payload ? shared->line[pass % RING][whose].payload
							 : shared->room[whose];
}

static void copy_put(size_t size)
{
	memcpy(slot(side, size), tx, size);
	hand_over();
}

static void copy_get(size_t size)
{
	await_pass();
	memcpy(rx, slot(!side, size), size);
}

static char *place(int whose, size_t size)
{
	return shared->room[whose] +
	       (size <= QUEUE / 4 ? pass * (size + 64) % (QUEUE - size) / 64 * 64 : 0);
}

static void queue_put(size_t size)
{
	memcpy(place(side, size), tx, size);
	hand_over();
}

static void queue_get(size_t size)
{
	await_pass();
	memcpy(rx, place(!side, size), size);
}

static void vm_read(size_t size)
{
	struct iovec local = {rx, size}, remote = {peer.buffer, size};

	if (process_vm_readv(peer.pid, &local, 1, &remote, 1, 0) != (ssize_t)size)
		pair_fail("process_vm_readv is not allowed here");
}

static void vm_write(size_t size)
{
	struct iovec local = {tx, size}, remote = {peer.buffer, size};

	if (process_vm_writev(peer.pid, &local, 1, &remote, 1, 0) != (ssize_t)size)
		pair_fail("process_vm_writev is not allowed here");
}

static void cma_get(size_t size)
{
	await_pass();
	vm_read(size);
}

struct way {
	const char *name;
	double (*once)(size_t size); /* returns the reported value */
	void (*put)(size_t size);
	void (*get)(size_t size);
};

static const struct way *way;

static double latency(size_t size)
{
	int passes = pair_rounds(size);
	double start = microseconds();

	for (int i = 0; i < passes; i++) {
		pass++;
		if (side == 0)
			way->put(size);
		way->get(size);
		if (side == 1)
			way->put(size);
	}
	return (microseconds() - start) / passes / 2;
}

/* Side 1 spins until told that the last call is done. */
static double call(size_t size)
{
	int passes = pair_rounds(size);
	double start = microseconds(), end;

	pass++;
	for (int i = 0; i < passes && side == 0; i++)
		way->put(size);
	end = microseconds();
	side == 0 ? hand_over() : await_pass();
	return (end - start) / passes;
}

static double halves(size_t size)
{
	int passes = pair_rounds(size);
	double start = microseconds();

	for (int i = 0; i < passes; i++)
		side == 0 ? vm_write(size / 2) : vm_read(size - size / 2);
	pass++; /* the slower side ends it */
	hand_over();
	await_pass();
	return (microseconds() - start) / passes;
}

/* A slot is full when its count is the number of its pass; `taken` is the reader's progress. */
static double ring_rate(size_t size)
{
	uint32_t lines = (uint32_t)pair_rounds(size) * 20, end = pass + lines, room = 0;
	double start = microseconds();

	while (pass != end) {
		struct line *at = &shared->ring[++pass % RING];

		if (side == 0) {
			while (!room)
				room = RING -
				       (pass - 1 -
					atomic_load_explicit(&shared->taken, memory_order_acquire));
			room--;
			memcpy(at->payload, tx, 8);
			atomic_store_explicit(&at->count, pass, memory_order_release);
		} else {
			while (atomic_load_explicit(&at->count, memory_order_acquire) != pass)
				__builtin_ia32_pause();
			memcpy(rx, at->payload, 8);
			if (pass % (RING / 4) == 0 || pass == end)
				atomic_store_explicit(&shared->taken, pass, memory_order_release);
		}
	}
	return lines / (microseconds() - start);
}

/* Where a side notes the message of this pass for itself, as a library does for its application. */
static char *note(void)
{
	return rx + pass % RING * sizeof(struct line);
}

/* Claims the line of this pass by a locked instruction, fills it, hands it over and notes that. */
static void put_claimed(void)
{
	struct line *at = &shared->ring[pass % RING];
	_Atomic uint32_t *claim = &shared->claim[pass % RING];
	uint32_t before = atomic_load_explicit(claim, memory_order_relaxed);

	if (!atomic_compare_exchange_strong(claim, &before, pass))
		pair_fail("a line was claimed by somebody else");
	memcpy(at->payload, tx, PACKET);
	atomic_store_explicit(&at->count, pass, memory_order_release);
	memcpy(note(), tx, sizeof *at);
}

static void get_claimed(void)
{
	struct line *at = &shared->ring[pass % RING];

	while (atomic_load_explicit(&at->count, memory_order_acquire) != pass)
		;
	memcpy(note(), at, sizeof *at);
}

/* The least that a stream of client.c does. `taken` is the answer to a window. */
static double claimed_rate(size_t size)
{
	int windows = pair_windows(size);
	double start = microseconds();

	for (int i = 0; i < windows; i++) {
		for (int j = 0; j < WINDOW; j++) {
			pass++;
			side == 0 ? put_claimed() : get_claimed();
		}
		if (side == 1)
			atomic_store_explicit(&shared->taken, pass, memory_order_release);
		while (atomic_load_explicit(&shared->taken, memory_order_acquire) != pass)
			;
	}
	return windows * WINDOW / (microseconds() - start);
}

static const struct way ways[] = {
	{"line", latency, line_put, line_get},    {"copy", latency, copy_put, copy_get},
	{"queue", latency, queue_put, queue_get}, {"cma", latency, line_put, cma_get},
	{"ring", ring_rate, NULL, NULL},          {"vmread", call, vm_read, NULL},
	{"vmwrite", call, vm_write, NULL},        {"halves", halves, NULL, NULL},
	{"claims", claimed_rate, NULL, NULL},
};

static void measure(size_t size)
{
	double values[REPEATS];

	for (int i = -1; i < REPEATS; i++) {
		double value = way->once(size);

		values[i < 0 ? 0 : i] = value;
		pair_sync();
	}
	if (side == 0)
		printf("%zu %.4f\n", size, clock_median(values, REPEATS));
}

static void run(void)
{
	struct {
		pid_t pid;
		char *buffer;
	} mine;

	if (posix_memalign((void **)&tx, 4096, MAX_SIZE) ||
	    posix_memalign((void **)&rx, 4096, MAX_SIZE))
		pair_fail("no memory");
	memset(tx, side + 1, MAX_SIZE);
	memset(rx, side + 1, MAX_SIZE);
	mine.pid = getpid();
	mine.buffer = tx;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	pair_swap(&mine, &peer, sizeof mine);
	if (!*args)
		measure(8);
	for (char **size = args; *size; size++) {
		if (strtoul(*size, NULL, 0) > MAX_SIZE)
			pair_fail("sizes go up to 4 MiB");
		measure(strtoul(*size, NULL, 0));
	}
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return EXIT_FAILURE;
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
		if (!strcmp(argv[1], ways[i].name))
			way = &ways[i];
	if (!way)
		return EXIT_FAILURE;
	args = argv + 2;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (shared == MAP_FAILED)
		return EXIT_FAILURE;
	return pair_run(run);
}
