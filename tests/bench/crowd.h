/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the benchmarks of collectives: kinds of collectives, and numbers of calls. */
#ifndef BENCH_CROWD_H
#define BENCH_CROWD_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clock.h"

#define MEMBERS_MAX 64

enum what { BARRIER, ALLREDUCE, BROADCAST, ALLTOALL, WHATS };

static int member, members;
static enum what what;
static char *from, *to; /* `members` slices of the largest size each */
static size_t room;     /* bytes of a slice */
static bool spread;     /* members are on several hosts */

static void crowd_fail(const char *why)
{
	fprintf(stderr, "bench: member %d: %s\n", member, why);
	exit(EXIT_FAILURE);
}

static void crowd_what(const char *name)
{
	static const char *const names[WHATS] = {"barrier", "allreduce", "broadcast", "alltoall"};

	for (what = 0; what < WHATS && strcmp(names[what], name) != 0; what++)
		;
	if (what == WHATS)
		crowd_fail("what is measured is barrier, allreduce, broadcast or alltoall");
}

static void crowd_buffers(char **sizes)
{
	for (; *sizes; sizes++)
		room = strtoul(*sizes, NULL, 0) > room ? strtoul(*sizes, NULL, 0) : room;
	if (posix_memalign((void **)&from, 4096, room * (size_t)members) ||
	    posix_memalign((void **)&to, 4096, room * (size_t)members))
		crowd_fail("no memory");
	memset(from, 0, room * (size_t)members);
	memset(to, 0, room * (size_t)members);
}

/* Returns whether there are more members than cores. */
static bool crowd_crowded(void)
{
	static long cores;

	if (!cores)
		cores = sysconf(_SC_NPROCESSORS_ONLN);
	return members > cores;
}

/*
 * Returns the calls per repeat. Members that share cores get equal shares only after some 50 ms, so
 * short calls are as many as without sharing. Over a network calls take longer; of short broadcasts a member may be
 * hundreds behind the root, so a repeat has many more.
 */
static int crowd_rounds(size_t size)
{
	int rounds = size <= 4096 ? 2000 : size <= 65536 ? 400 : 40;

	if (spread && (what != BROADCAST || size > 4096))
		return size <= 4096 ? 200 : size <= 65536 ? 40 : 8;
	return crowd_crowded() && size > 4096 ? rounds / 10 : rounds;
}

/* Fills in doubles that are small integers, so sums are exact in any order. */
static void crowd_fill(size_t size)
{
	for (size_t i = 0; i < room * (size_t)members / sizeof(double); i++)
		((double *)from)[i] = (double)(i % 97 + (size_t)member);
	memset(to, 0, room * (size_t)members);
	if (what == BROADCAST && member != 0)
		memset(from, 0, size);
}

static double crowd_expected(size_t i, size_t size)
{
	size_t words = size / sizeof(double);

	if (what == ALLREDUCE)
		return (double)(i % 97 * (size_t)members) + members * (members - 1) / 2.0;
	if (what == BROADCAST)
		return (double)(i % 97);
	return (double)(((size_t)member * words + i % words) % 97 + i / words);
}

/* Checks the result of one call after crowd_fill. */
static void crowd_verify(size_t size)
{
	const double *got = (const double *)(what == BROADCAST ? from : to);
	size_t words = size / sizeof(double) * (what == ALLTOALL ? (size_t)members : 1);

	for (size_t i = 0; i < words && what != BARRIER; i++)
		if (got[i] != crowd_expected(i, size))
			crowd_fail("a wrong result");
}

/* Measures each size. The last member prints "SIZE MICROSECONDS": the first one of a broadcast runs ahead. */
static void crowd_measure(char **sizes, void (*call)(size_t size))
{
	for (; *sizes; sizes++) {
		size_t size = strtoul(*sizes, NULL, 0);
		int rounds = crowd_rounds(size);
		double values[REPEATS];

		crowd_fill(size);
		call(size);
		crowd_verify(size);
		for (int i = -1; i < REPEATS; i++) {
			double start = microseconds();

			for (int round = 0; round < rounds; round++)
				call(size);
			if (i >= 0)
				values[i] = (microseconds() - start) / rounds;
		}
		if (member == members - 1)
			printf("%zu %.4f\n", size, clock_median(values, REPEATS));
	}
}

#endif /* BENCH_CROWD_H */
