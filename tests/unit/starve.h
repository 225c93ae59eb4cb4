/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits the address space so that large allocations fail and small ones succeed; lifts the limit.
 */
#ifndef UNIT_STARVE_H
#define UNIT_STARVE_H

#include <check.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../valgrind.h"
#include "suite.h"

#define STARVE_ROOM  (1u << 20)  /* bytes left for small allocations */
#define STARVE_LARGE (32u << 10) /* bytes; malloc maps blocks from this size on separately */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STARVE_LIMITS false
#else
#define STARVE_LIMITS true
#endif

static struct rlimit starve_all;

/* False under sanitizers, and under valgrind, which allocates from memory of its own. */
static inline bool starve_possible(void)
{
	return STARVE_LIMITS && !in_valgrind();
}

/* Call before any large allocation. */
static inline void starve_prepare(void)
{
	ck_assert_int_eq(mallopt(M_MMAP_THRESHOLD, STARVE_LARGE), 1);
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &starve_all), 0);
}

static inline void starve_begin(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;
	struct rlimit few = starve_all;

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	few.rlim_cur = pages * 4096 + STARVE_ROOM;
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &few), 0);
}

static inline void starve_end(void)
{
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &starve_all), 0);
}

/* Runs a suite of `starved` alone. Returns main's exit status: 77 where the limit has no effect. */
static inline int starve_run(const char *name, TCase *starved)
{
	Suite *suite = suite_create(name);

	suite_add_tcase(suite, starved);
	if (starve_possible())
		return suite_run(suite);
	srunner_free(srunner_create(suite));
	puts("address space is not what is short here");
	return 77;
}

#endif
