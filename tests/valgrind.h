/* SPDX-License-Identifier: BSD-2-Clause */
/* Is this valgrind? It has no memory locks, and computes long doubles with 64 bits. */
#ifndef TESTS_VALGRIND_H
#define TESTS_VALGRIND_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool in_valgrind(void)
{
	const char *loaded = getenv("LD_PRELOAD");

	return loaded && strstr(loaded, "vgpreload");
}

#endif
