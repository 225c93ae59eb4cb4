/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the benchmarks of what an operation costs among many: a process with two endpoints, of which `tx`
 * sends and `ep` receives. One thread drives both, so that a figure is the work of both sides and
 * nothing else, whatever other cores do. */
#ifndef BENCH_COST_H
#define BENCH_COST_H

#include "fabric.h"

#define COST_US    200000 /* time for a figure */
#define COST_LEAST 3      /* repeats, however long they take */

static struct fid_ep *tx;
static fi_addr_t tx_addr; /* `peer` is that of `ep` */
static size_t number;     /* how many there are of what is measured */

static void cost_say(const char *what, double value)
{
	printf("%s %zu %.4g\n", what, number, value);
}

/* Returns the median of what `once` returns. */
static inline double cost_median(double (*once)(void))
{
	double values[REPEATS_MAX], end;
	int count = 0;

	once();
	end = microseconds() + COST_US;
	while (count < REPEATS_MAX && (count < COST_LEAST || microseconds() < end))
		values[count++] = once();
	return clock_median(values, count);
}

static uint64_t cost_random(void)
{
	static uint64_t state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static fi_addr_t cost_insert(struct fid_ep *of)
{
	char name[NAME_ROOM];

	fabric_name(of, name);
	return fabric_insert(name);
}

/* Opens both endpoints. What ends in no time ends by a signal. */
static void cost_open(const char *provider, uint64_t caps, bool safe)
{
	alarm(LIMIT);
	setvbuf(stdout, NULL, _IOLBF, 0);
	fabric_offered(fabric_find(fabric_hints(provider, caps, safe)), "fi_getinfo");
	fabric_open();
	tx = fabric_endpoint(NULL);
	peer = cost_insert(ep);
	tx_addr = cost_insert(tx);
}

static void cost_close(void)
{
	fi_close(&tx->fid);
	fabric_close();
}

#endif /* BENCH_COST_H */
