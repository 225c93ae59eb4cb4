/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is this valgrind? It has a store of memory of its own, computes long doubles with 64 bits, and makes threads
 * sleep until it is their turn.
 */
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
