/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the process that calls, the kernel's not counted. */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <malloc.h>
#include <stdio.h>

/*
 * Bytes in use: allocated bytes, or those of private pages if that is more (memory mapped by the
 * library itself).
 */
struct use {
	double allocated, pages;
};

static inline struct use memory_use(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	struct mallinfo2 info2;
	struct use use = {0};
	char line[256];

	malloc_trim(0);
	info2 = mallinfo2();
	use.allocated = (double)(info2.uordblks + info2.hblkhd);
	while (status && fgets(line, sizeof line, status))
		if (sscanf(line, "RssAnon: %lf", &use.pages) == 1)
			use.pages *= 1024;
	if (status)
		fclose(status);
	return use;
}

static inline double memory_since(struct use before)
{
	struct use now = memory_use();
	double allocated = now.allocated - before.allocated, pages = now.pages - before.pages;

	return allocated > pages ? allocated : pages;
}

/* Returns kilobytes that no other process shares, and that the process has written. */
static inline double memory_private(void)
{
	FILE *maps = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	double kb = 0;

	while (maps && fgets(line, sizeof line, maps) &&
	       sscanf(line, "Private_Dirty: %lf", &kb) != 1)
		;
	if (maps)
		fclose(maps);
	return kb;
}

#endif /* BENCH_MEMORY_H */
