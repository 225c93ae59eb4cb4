/* SPDX-License-Identifier: BSD-2-Clause */
/* What it costs to enter something and to find it among many (see cost.h):
 *
 *     tables -n PROVIDER vector NUMBER    addresses, of which none is used: inserting ("insert") and removing
 *                                         ("remove") so many; among them inserting one that is there
 *                                         ("known") and fi_av_lookup ("lookup")
 *     tables PROVIDER regions NUMBER      registering ("register") and closing ("close") so many regions;
 *                                         fi_write of 8 bytes into one of them ("write")
 *     tables PROVIDER waiters NUMBER      from fi_cntr_add until the one of so many threads that waits for this
 *                                         value has returned from fi_cntr_wait ("wake")
 *
 * -n: over a network. Prints lines "WHAT NUMBER VALUE", nanoseconds of one. Status 77: the provider
 * is not available, or does not take so many. The same file runs on any libfabric.so.1 in
 * LD_LIBRARY_PATH. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <rdma/fi_rma.h>
#include "addresses.h"
#include "cost.h"

#define BATCH       64
#define THREADS_MAX 64
#define REGION      64 /* bytes */

static fi_addr_t *where;
static struct fid_av *vector;

/* Returns nanoseconds of one of `count` since `start`. */
static double each(double start, size_t count)
{
	return (microseconds() - start) * 1000 / (double)count;
}

/* ---- Addresses ------------------------------------------------------------------------------- */

static struct sockaddr_in *names;

/* Returns nanoseconds of an address. */
static double vector_fill(void)
{
	struct fi_av_attr attr = {.type = FI_AV_UNSPEC, .count = 1};
	double start;

	must(fi_av_open(domain, &attr, &vector, NULL), "fi_av_open");
	start = microseconds();
	for (size_t i = 0; i < number; i++)
		if (fi_av_insert(vector, &names[i], 1, &where[i], 0, NULL) != 1)
			pair_fail("fi_av_insert refused an address");
	return each(start, number);
}

static double vector_insert(void)
{
	double took = vector_fill();

	fi_close(&vector->fid);
	return took;
}

static double vector_remove(void)
{
	double start, took;

	vector_fill();
	start = microseconds();
	for (size_t i = 0; i < number; i++)
		must(fi_av_remove(vector, &where[i], 1, 0), "fi_av_remove");
	took = each(start, number);
	fi_close(&vector->fid);
	return took;
}

static double vector_known(void)
{
	double start = microseconds();
	fi_addr_t found;

	for (size_t i = 0; i < BATCH; i++)
		if (fi_av_insert(vector, &names[cost_random() % number], 1, &found, 0, NULL) != 1)
			pair_fail("fi_av_insert refused an address");
	return each(start, BATCH);
}

static double vector_lookup(void)
{
	double start = microseconds();
	struct sockaddr_in found;

	for (size_t i = 0; i < BATCH; i++) {
		size_t len = sizeof found, at = cost_random() % number;

		must(fi_av_lookup(vector, where[at], &found, &len), "fi_av_lookup");
		if (found.sin_port != names[at].sin_port)
			pair_fail("fi_av_lookup found another address");
	}
	return each(start, BATCH);
}

static void vectors(void)
{
	where = calloc(number, sizeof *where);
	names = calloc(number, sizeof *names);
	if (!where || !names)
		pair_fail("no memory");
	addresses_make(names, 0, number);
	cost_say("insert", cost_median(vector_insert));
	cost_say("remove", cost_median(vector_remove));
	vector_fill();
	cost_say("lookup", cost_median(vector_lookup));
	cost_say("known", cost_median(vector_known));
	fi_close(&vector->fid);
}

/* ---- Regions --------------------------------------------------------------------------------- */

static struct fid_mr **regions;
static char (*memory)[REGION];

static void regions_register(void)
{
	for (size_t i = 0; i < number; i++) {
		must(fi_mr_reg(domain, memory[i], REGION, FI_REMOTE_WRITE, 0, i + 1, 0, &regions[i],
			       NULL),
		     "fi_mr_reg");
		if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
			must(fi_mr_bind(regions[i], &ep->fid, 0), "fi_mr_bind");
			must(fi_mr_enable(regions[i]), "fi_mr_enable");
		}
	}
}

static void regions_close(void)
{
	for (size_t i = 0; i < number; i++)
		must(fi_close(&regions[i]->fid), "fi_close");
}

static double region_register(void)
{
	double start = microseconds(), took;

	regions_register();
	took = each(start, number);
	regions_close();
	return took;
}

static double region_close(void)
{
	double start;

	regions_register();
	start = microseconds();
	regions_close();
	return each(start, number);
}

static double region_write(void)
{
	static struct fi_context2 context;
	static char from[8] = "written";
	struct fi_cq_tagged_entry entry;
	double start = microseconds();

	for (size_t i = 0; i < BATCH; i++) {
		size_t at = cost_random() % number;
		uint64_t addr =
			info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)memory[at] : 0;
		ssize_t ret;

		while ((ret = fi_write(tx, from, sizeof from, NULL, peer, addr,
				       fi_mr_key(regions[at]), &context)) == -FI_EAGAIN)
			fabric_read(&entry, 1);
		must(ret, "fi_write");
		while (fabric_read(&entry, 1) != 1)
			;
	}
	return each(start, BATCH);
}

static void all_regions(void)
{
	regions = calloc(number, sizeof *regions);
	memory = calloc(number, sizeof *memory);
	if (!regions || !memory)
		pair_fail("no memory");
	memset(memory, 1, number * sizeof *memory);
	cost_say("register", cost_median(region_register));
	cost_say("close", cost_median(region_close));
	regions_register();
	cost_say("write", cost_median(region_write));
	regions_close();
}

/* ---- Counters -------------------------------------------------------------------------------- */

static struct fid_cntr *counter;
static _Atomic uint64_t woken; /* the last value that a thread has waited for */
static _Atomic bool ended;
static uint64_t added;

/* Release: pairs with the acquire in `wake`. */
static void *wait_for_mine(void *arg)
{
	for (uint64_t value = (uint64_t)(uintptr_t)arg + 1; !ended; value += number) {
		must(fi_cntr_wait(counter, value, -1), "fi_cntr_wait");
		atomic_store_explicit(&woken, value, memory_order_release);
	}
	return NULL;
}

static double wake(void)
{
	double start = microseconds();

	for (size_t i = 0; i < BATCH; i++) {
		must(fi_cntr_add(counter, 1), "fi_cntr_add");
		for (added++; atomic_load_explicit(&woken, memory_order_acquire) != added;)
			sched_yield();
	}
	return each(start, BATCH);
}

static void waiters(void)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
	pthread_t threads[THREADS_MAX];
	struct fid_ep *counted;

	fabric_offered(fi_cntr_open(domain, &attr, &counter, NULL), "fi_cntr_open");
	counted = fabric_endpoint(counter);
	for (size_t i = 0; i < number; i++)
		if (pthread_create(&threads[i], NULL, wait_for_mine, (void *)i))
			pair_fail("pthread_create");
	cost_say("wake", cost_median(wake));
	ended = true;
	must(fi_cntr_add(counter, 2 * THREADS_MAX), "fi_cntr_add");
	for (size_t i = 0; i < number; i++)
		pthread_join(threads[i], NULL);
	fi_close(&counted->fid);
	fi_close(&counter->fid);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
		uint64_t caps;
		bool safe;
		size_t most;
	} ways[] = {
		{"vector", vectors, FI_MSG, false, 1000000},
		{"regions", all_regions, FI_MSG | FI_RMA, false, 1000000},
		{"waiters", waiters, FI_MSG, true, THREADS_MAX},
	};

	if (argc > 1 && !strcmp(argv[1], "-n")) {
		pair_network = true;
		argc--;
		argv++;
	}
	number = argc == 4 ? strtoul(argv[3], NULL, 0) : 0;
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		if (!number || strcmp(argv[2], ways[i].name) != 0 || number > ways[i].most)
			continue;
		cost_open(argv[1], ways[i].caps, ways[i].safe);
		ways[i].run();
		cost_close();
		return EXIT_SUCCESS;
	}
	fputs("Usage: tables [-n] PROVIDER vector|regions|waiters NUMBER\n", stderr);
	return EXIT_FAILURE;
}
