/* SPDX-License-Identifier: BSD-2-Clause */
/* Clock, and the median of several measurements. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdlib.h>
#include <time.h>

#define REPEATS     11  /* repeats whose median is reported */
#define REPEATS_MAX 201 /* maximum for short repeats */

static double microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int clock_order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static inline double clock_median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof values[0], clock_order);
	return values[count / 2];
}

#endif /* BENCH_CLOCK_H */
