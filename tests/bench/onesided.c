/* SPDX-License-Identifier: BSD-2-Clause */
/* One process accesses memory of another on a second core, which only spins in fi_cq_read:
 *
 *     onesided [-s] [-n] PROVIDER write|read|fetch_add SIZE...
 *         one operation until its completion, microseconds; writes use FI_DELIVERY_COMPLETE,
 *         fetch_add is fi_fetch_atomic FI_SUM of uint64
 *     onesided [-s] [-n] PROVIDER write_rare|write_rare_inject SIZE...
 *         writes whose target looks every 100 us, with no flag or FI_INJECT_COMPLETE
 *     onesided [-s] [-n] PROVIDER write_stream|read_stream SIZE...
 *         the same with many in flight, million operations/s
 *     onesided [-s] [-n] PROVIDER put SIZE...
 *         one-way time of a ping-pong of writes, microseconds: each side waits until the last word
 *         of its memory changes; fi_inject_write up to the provider's limit, else fi_write
 *     onesided [-i] [-s] [-n] PROVIDER inject_write|atomic_sum SIZE...
 *         a stream of operations on the same bytes, million operations/s: fi_inject_write,
 *         or fi_atomic FI_SUM of uint64, with -i fi_inject_atomic. The time ends when the last
 *         word, read back, contains all of them.
 *
 * -s: FI_THREAD_SAFE instead of FI_THREAD_DOMAIN. -n: over a network, see pair.h. All but write and
 * read, also as streams, need multiples of 8 bytes.
 * Prints a line "SIZE VALUE" for each size that the operation supports. Status 77: the provider
 * lacks the operation; standard error has the reason. The same file runs on any libfabric.so.1 in
 * LD_LIBRARY_PATH. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/mman.h>
#include "onesided_ways.h"

#define WINDOW  256 /* maximum operations in flight */
#define KEY     7   /* if the provider does not choose keys */
#define RARE_US 100 /* between two looks of a target that looks rarely */

static const struct way *way;
static bool safe, inject;
static char *provider;
static char **sizes; /* ends with NULL */

static size_t room = 8; /* bytes of each buffer: the largest size */
static struct fid_mr *mr;
static struct fi_context2 contexts[WINDOW]; /* of operations */
static struct fi_context2 *idle[WINDOW];    /* unused contexts */
static int idles;
static _Atomic uint32_t *runs; /* runs completed by side 0; in shared memory */

static void progress(void)
{
	struct fi_cq_tagged_entry entry[16];
	ssize_t count = fabric_read(entry, 16);

	for (ssize_t i = 0; i < count; i++)
		idle[idles++] = entry[i].op_context;
}

/* Posts one operation with a completion. */
static void post(ssize_t (*one)(size_t size, void *context), size_t size)
{
	struct fi_context2 *context;
	ssize_t ret;

	while (!idles)
		progress();
	context = idle[--idles];
	while ((ret = one(size, context)) == -FI_EAGAIN)
		progress();
	must(ret, way->name);
}

static void post_injected(size_t size)
{
	ssize_t ret;

	while ((ret = way->post(size, NULL)) == -FI_EAGAIN)
		progress();
	must(ret, way->name);
}

static void complete_all(void)
{
	while (idles < WINDOW)
		progress();
}

/* Each fetch must return the result of the operations before it. */
static void one_at_a_time(size_t size)
{
	post(way->post, size);
	complete_all();
	if (way->counts && *last_word(result, size) != operation - 1)
		pair_fail("a fetch returned a wrong value");
}

/* Reads until the expected value appears, as reads may not be ordered behind other operations. */
static void flush(size_t size, uint64_t expected)
{
	do {
		post(post_look, size);
		complete_all();
	} while (*(uint64_t *)(void *)result != expected);
}

static void work(size_t size, uint64_t count)
{
	for (operation = 1; operation <= count; operation++) {
		if (!way->stream)
			one_at_a_time(size);
		else if (way->injects)
			post_injected(size);
		else
			post(way->post, size);
	}
	if (!way->stream)
		return;
	complete_all();
	if (way->counts)
		flush(size, count);
}

static void put_one(size_t size)
{
	if (size <= info->tx_attr->inject_size) {
		post_injected(size);
		return;
	}
	post(way->post, size);
	complete_all();
}

/* Only the last word tells that a write has come, as in UCX's test. */
static void put_await(size_t size)
{
	while (*(volatile uint64_t *)(void *)last_word(memory, size) != operation)
		progress();
}

static void put_and_answer(size_t size, uint64_t count)
{
	for (operation = 1; operation <= count; operation++) {
		if (side == 0)
			put_one(size);
		put_await(size);
		if (side == 1)
			put_one(size);
	}
}

/* acquire: pairs with the release of side 0 in measure_run */
static void serve(uint32_t run)
{
	while (atomic_load_explicit(runs, memory_order_acquire) != run) {
		double next = microseconds() + RARE_US;

		progress();
		while (way->rare && microseconds() < next)
			;
	}
}

static unsigned char pattern(size_t at, uint32_t run)
{
	return (unsigned char)((at + run) % 251 + 1);
}

/* Sets up the buffers: data differs in each run; words count up from 0 by 1. */
static void prepare(size_t size, uint32_t run)
{
	int from = way->post == post_read ? 1 : 0;

	memset(memory, 0, size);
	memset(result, 0, size);
	for (size_t i = 0; i < size && !way->counts && side == from; i++)
		memory[i] = pattern(i, run);
	for (size_t i = 0; i < size / 8 && way->counts && !way->answered && side == 0; i++)
		((uint64_t *)(void *)memory)[i] = 1;
}

static void verify(size_t size, uint32_t run, uint64_t count)
{
	int to = way->post == post_read ? 0 : 1;
	const unsigned char *got = to == 0 ? result : memory;

	if (side != to)
		return;
	if (way->counts && *last_word(memory, size) != count) {
		fprintf(stderr, "bench: %s: %llu of %llu are seen in the end\n", way->name,
			(unsigned long long)*last_word(memory, size), (unsigned long long)count);
		exit(EXIT_FAILURE);
	}
	for (size_t i = 0; i < size && !way->counts; i++)
		if (got[i] != pattern(i, run))
			pair_fail("wrong data");
}

/* Returns microseconds per operation, or million operations/s. */
static double measure_run(size_t size)
{
	static uint32_t run;
	uint64_t count = (uint64_t)pair_rounds(size) * (way->stream ? 4 : 1);
	double start, end;

	prepare(size, ++run);
	pair_sync();
	start = microseconds();
	if (way->answered)
		put_and_answer(size, count);
	else if (side == 0)
		work(size, count);
	else
		serve(run);
	end = microseconds();
	if (side == 0 && way->rare) { /* a read behind them: all are performed */
		post(post_look, size);
		complete_all();
	}
	if (side == 0)
		atomic_store_explicit(runs, run, memory_order_release);
	pair_sync();
	verify(size, run, count);
	if (way->stream)
		return (double)count / (end - start);
	return (end - start) / (double)count / (way->answered ? 2 : 1);
}

/* Both sides get the same result. */
static bool fits(size_t size)
{
	size_t count = SIZE_MAX;
	const char *why = NULL;

	if (way->counts && (size % 8 || !size))
		pair_fail("sizes are multiples of 8 here");
	if (way->valid)
		must(way->valid(ep, FI_UINT64, FI_SUM, &count), "the valid call");
	if (way->injects && size > info->tx_attr->inject_size)
		why = "more than is injected";
	else if (way->valid && size / 8 > count)
		why = "more than one atomic takes";
	if (why && side == 0)
		fprintf(stderr, "bench: %s %s of %zu bytes: %s\n", provider, way->name, size, why);
	return !why;
}

static void measure(size_t size)
{
	double values[REPEATS_MAX];
	int repeats = pair_repeats(size);

	if (!fits(size))
		return;
	measure_run(size);
	for (int i = 0; i < repeats; i++)
		values[i] = measure_run(size);
	if (side == 0)
		printf("%zu %.4f\n", size, clock_median(values, repeats));
}

static void find(void)
{
	struct fi_info *hints = fabric_hints(provider, way->caps, safe);

	hints->tx_attr->op_flags = way->op_flags;
	fabric_offered(fabric_find(hints), "fi_getinfo");
}

static void ask_atomic(void)
{
	size_t count = 0;

	if (way->valid)
		fabric_offered(way->valid(ep, FI_UINT64, FI_SUM, &count), "the valid call");
}

/* mr_mode says whether addresses or offsets are used. FI_MR_ENDPOINT is not offered, as it would
 * require binding the region. */
static void expose(void)
{
	struct {
		uint64_t addr, key;
	} mine = {0};

	if (posix_memalign((void **)&memory, 4096, room) ||
	    posix_memalign((void **)&result, 4096, room))
		pair_fail("no memory");
	memset(memory, 0, room);
	memset(result, 0, room);
	must(fi_mr_reg(domain, memory, room, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr,
		       NULL),
	     "fi_mr_reg");
	if (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		mine.addr = (uintptr_t)memory;
	mine.key = fi_mr_key(mr);
	pair_swap(&mine, &remote, sizeof mine);
}

static void run(void)
{
	for (char **size = sizes; *size; size++)
		room = strtoul(*size, NULL, 0) > room ? strtoul(*size, NULL, 0) : room;
	while (idles < WINDOW) {
		idle[idles] = &contexts[idles];
		idles++;
	}
	find();
	fabric_open();
	ask_atomic();
	fabric_meet();
	expose();
	for (char **size = sizes; *size; size++)
		measure(strtoul(*size, NULL, 0));
	pair_sync();
	fi_close(&mr->fid);
	fabric_close();
}

static const struct way *way_named(const char *name)
{
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
		if (!strcmp(name, ways[i].name) && (!inject || ways[i].injects))
			return &ways[i];
	return NULL;
}

int main(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "isn")) != -1) {
		inject |= opt == 'i';
		safe |= opt == 's';
		pair_network |= opt == 'n';
	}
	if (argc - optind >= 3)
		way = way_named(argv[optind + 1]);
	if (!way) {
		fputs("Usage: onesided [-isn] PROVIDER "
		      "write|write_rare|write_rare_inject|read|fetch_add|put|write_stream|read_stream|inject_write|atomic_sum "
		      "SIZE...\n",
		      stderr);
		return EXIT_FAILURE;
	}
	provider = argv[optind];
	sizes = argv + optind + 2;
	runs = mmap(NULL, sizeof *runs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return runs == MAP_FAILED ? EXIT_FAILURE : pair_run(run);
}
