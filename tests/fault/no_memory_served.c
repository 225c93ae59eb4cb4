/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=120
 * An endpoint without memory for what other processes' operations need: served.h.
 */
#define LIMIT 110

#include <limits.h>

#include "served.h"

int main(void)
{
	alarm(LIMIT);
	need_provider();
	need_memory();
	served_walk(served_here, NULL, UINT_MAX);
	return EXIT_SUCCESS;
}
